-- The link with this token hash, and whether it has expired by the database's clock.
select *, expires_at <= clock_timestamp() as expired
from ledger.connect_links
where token_hash = $1 and expires_at is not null
