-- A partner asked for a link.
insert into ledger.connect_links (
    link_id, stream_id, token_hash, partner_id, state, issued_at, expires_at, partner_user_id
)
select * from unnest(
    $1::text[], $2::uuid[], $3::bytea[], $4::text[], $5::text[], $6::timestamptz[],
    $7::timestamptz[], $8::text[]
)
