-- Numbers the oldest committed events: a rollback takes the numbers back, so there are no gaps.
-- An event that is gone leaves a hash of null, which the log refuses.
with batch as (
    select append_id from ledger.pending order by append_id limit $2
), taken as (
    delete from ledger.pending using batch
    where pending.append_id = batch.append_id
    returning pending.append_id
), placed as (
    select $1 + row_number() over (order by append_id) as position, append_id from taken
), numbered as (
    insert into ledger.log (position, append_id, leaf_hash)
    select
        p.position,
        p.append_id,
        ledger.leaf_hash(
            p.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state
        )
    from placed as p
    left join ledger.events as e using (append_id)
    returning position, leaf_hash
)
select leaf_hash from numbered order by position
