-- How many of the service's own secrets each master key wraps.
select master_key_id, count(*) as keys from ledger.service_keys group by 1 order by 1
