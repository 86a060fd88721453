-- The first to come draws the service's secrets; everyone after reads them.
insert into ledger.service_keys (name, wrapped, master_key_id)
select * from unnest($1::text[], $2::bytea[], $3::text[])
on conflict do nothing
