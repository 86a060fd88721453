-- The names of partners.
select partner_id, name, status from ledger.partners where partner_id = any($1::text[])
