-- A batch of data keys that an older master key wraps, held until they are wrapped anew. One that is
-- being destroyed is passed over: it is gone, or comes again in the next round.
select key_id::text as name, wrapped, master_key_id
from ledger.data_keys
where master_key_id <> $1 and key_id > $2::uuid
order by key_id
limit $3
for update skip locked
