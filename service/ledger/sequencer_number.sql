-- Numbers the oldest committed events: a rollback takes the numbers back, so there are no gaps.
with batch as (
    select append_id from ledger.pending order by append_id limit $2
), taken as (
    delete from ledger.pending using batch
    where pending.append_id = batch.append_id
    returning pending.append_id
), numbered as (
    insert into ledger.log (position, append_id)
    select $1 + row_number() over (order by append_id), append_id from taken
    returning position
)
update ledger.head set size = size + (select count(*) from numbered) where id = 1
returning size
