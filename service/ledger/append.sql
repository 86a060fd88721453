-- Appends a batch: events and the queue of the unnumbered, public ids, data keys; one round trip.
with batch as (
    select *
    from unnest($1::uuid[], $2::bigint[], $3::text[], $4::bytea[])
    with ordinality as batch (originator_id, originator_version, topic, state, nr)
), appended as (
    insert into ledger.events (originator_id, originator_version, topic, state)
    select originator_id, originator_version, topic, state from batch order by nr
    returning append_id
), queued as (
    insert into ledger.pending (append_id) select append_id from appended
), named as (
    insert into ledger.public_ids (public_id) select unnest($5::text[])
), keyed as (
    insert into ledger.data_keys (key_id, wrapped, master_key_id)
    select * from unnest($6::uuid[], $7::bytea[], $8::text[])
)
select append_id from appended order by append_id
