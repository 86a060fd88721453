-- name: context
-- What creating claims decides on, a row a command in the order asked: the entity, the last event of the
-- partner's connection to it, and the claim that this natural key already made, with the key it is
-- sealed under, unless that came back after the claim was erased. An event with a MAC below $4 comes with
-- its position, by which it counts (`Binding.retired`). One round trip for a whole batch, without a lock. Each is looked up by itself (`offset 0`), so that a plan that was made for empty tables
-- reads no whole one later.
select
    e.entity_id, e.name, e.established,
    c.append_id as connection_id, c.originator_version as version, c.topic, c.state, c.mac,
    case
        when coalesce(c.mac, '') < $4
            then (select l.position from ledger.log as l where l.append_id = c.append_id)
    end as connection_position,
    made.append_id as made_id, made.state as made, made.mac as made_mac,
    case
        when coalesce(made.mac, '') < $4
            then (select l.position from ledger.log as l where l.append_id = made.append_id)
    end as made_position,
    k.key_id, k.wrapped, k.master_key_id
from unnest($1::text[], $2::uuid[], $3::uuid[])
    with ordinality as asked (entity_id, connection, stream_id, nr)
left join lateral (
    select l.entity_id, l.name, l.established
    from ledger.entities as l where l.entity_id = asked.entity_id offset 0
) as e on true
left join lateral (
    select l.append_id, l.originator_version, l.topic, l.state, l.mac
    from ledger.events as l
    where l.originator_id = asked.connection
    order by l.originator_version desc limit 1
) as c on true
left join lateral (
    select l.append_id, l.state, l.mac
    from ledger.events as l
    where l.originator_id = asked.stream_id and l.originator_version = 1 offset 0
) as made on true
left join lateral (
    select l.key_id, l.wrapped, l.master_key_id
    from ledger.data_keys as l
    where
        l.key_id = asked.stream_id
        and not exists(
            select from ledger.events as e
            where e.originator_id = l.key_id and e.topic = 'PersonalDataErased' offset 0
        )
    offset 0
) as k on true
order by asked.nr

-- name: hand_overs_done
-- Removes hand-overs that were made.
delete from ledger.hand_overs where position = any($1::bigint[])

-- name: hand_overs_due
-- Is anything due? Takes no lock and draws no transaction id.
select 1 from ledger.hand_overs where next_attempt_at <= $1 limit 1

-- name: hand_overs_note
-- Messages to hand over, due now: an event of a clock that was ahead is dated later than that.
insert into ledger.hand_overs (position, stream_id, noted_at, next_attempt_at)
select noted.position, noted.stream_id, least(noted.at, now()), least(noted.at, now())
from unnest($1::bigint[], $2::uuid[], $3::timestamptz[]) as noted (position, stream_id, at)
on conflict do nothing

-- name: hand_overs_remove
-- Removes a message's hand-over and those after it in its stream, which are set aside.
with removed as (
    delete from ledger.hand_overs
    where
        stream_id = (select f.stream_id from ledger.hand_overs as f where f.position = $1)
        and position >= $1
    returning position, stream_id
)
select position, stream_id, position = $1 as is_first from removed order by position

-- name: hand_overs_take
-- Counts an attempt of the hand-overs that have been due longest, the first of each stream, and
-- returns them with their events: one that was tried before, or at most $2 that were not, until
-- their events have $3 bytes. They are due again at $4, should this process be cut off.
with due as (
    select h.position, h.attempts, h.next_attempt_at
    from ledger.hand_overs as h
    where
        h.next_attempt_at <= $1
        and not exists(
            select from ledger.hand_overs as earlier
            where earlier.stream_id = h.stream_id and earlier.position + 0 < h.position
            offset 0
        )
    order by h.next_attempt_at, h.position
    limit $2
    for update of h skip locked
), measured as (
    select
        d.position, d.attempts,
        e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac,
        coalesce(sum(octet_length(e.state)) over w, 0) as bytes_before,
        coalesce(sum(1) over w, 0) as taken_before,
        d.attempts + coalesce(sum(d.attempts) over w, 0) as attempts_so_far
    from due as d
    cross join lateral (
        select i.append_id from ledger.log as i where i.position = d.position offset 0
    ) as l
    cross join lateral (
        select i.append_id, i.originator_id, i.originator_version, i.topic, i.state, i.mac
        from ledger.events as i where i.append_id = l.append_id offset 0
    ) as e
    window w as (
        order by d.next_attempt_at, d.position rows between unbounded preceding and 1 preceding
    )
), taken as materialized (
    select
        position, append_id, originator_id, originator_version, topic, state, mac,
        attempts + 1 as attempts
    from measured
    where bytes_before < $3 and (taken_before = 0 or attempts_so_far = 0)
), counted as (
    update ledger.hand_overs set attempts = attempts + 1, next_attempt_at = $4
    where position = any(array(select t.position from taken as t))
)
select position, append_id, originator_id, originator_version, topic, state, mac, attempts
from taken

-- name: hand_overs_wait
-- A hand-over failed, and is due again later.
update ledger.hand_overs set next_attempt_at = $2 where position = $1
