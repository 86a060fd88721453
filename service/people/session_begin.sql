-- A session begins, and what is long over is forgotten.
with forgotten as (
    delete from ledger.sessions where expires_at < now() - interval '1 day'
), used as (
    delete from ledger.sign_in_links where expires_at < now() - interval '1 day'
)
insert into ledger.sessions (
    token_hash, session_id, address_hash, wrapped, master_key_id, started_at, expires_at
) values ($1, $2, $3, $4, $5, now(), now() + $6::interval)
