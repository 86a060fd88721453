-- How many data keys each master key wraps.
select master_key_id, count(*) as keys from ledger.data_keys group by 1 order by 1
