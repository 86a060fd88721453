-- Notes a sign-in link to be sent, unless its address was sent enough of them lately.
insert into ledger.sign_in_links (
    link_id, token_hash, address_hash, wrapped, master_key_id, asked_at, expires_at, mail_next_at
)
select $1, $2, $3, $4, $5, now(), now() + $6::interval, now()
where $7 > (
    select count(*) from ledger.sign_in_links
    where address_hash = $3 and asked_at > now() - $6::interval
)
