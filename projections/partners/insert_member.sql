-- People were added to partners' teams.
insert into ledger.members (member_id, partner_id, address_hash, added_at)
select * from unnest($1::text[], $2::text[], $3::bytea[], $4::timestamptz[])
