-- How many sessions that can still be used each master key wraps.
select master_key_id, count(*) as keys from ledger.sessions
where expires_at > now() group by 1 order by 1
