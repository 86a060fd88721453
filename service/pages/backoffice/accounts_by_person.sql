-- Who in the ledger of accounts has the person id whose 128 bits are $1: it is derived from the
-- keyed hash of the address, as `service.ids.stream_id` does. Nothing is indexed by it: these
-- tables hold people, not traffic, and are read whole in a moment.
with derived as (
    select
        one.*,
        substr(
            sha256('\x0000000000000040'::bytea || convert_to(encode(one.address_hash, 'hex'), 'UTF8')),
            1, 16
        ) as digest
    from (
        select
            'member' as kind, m.member_id as id,
            case when m.removed_at is null then 'member' else 'removed' end as state,
            m.partner_id, m.address_hash
        from ledger.members as m
        union all
        select
            'staff', s.staff_id, case when s.removed_at is null then 'staff' else 'removed' end,
            null, s.address_hash
        from ledger.staff as s
    ) as one
    where one.address_hash is not null
)
select d.kind, d.id, d.state, d.partner_id
from derived as d
where
    $1::bytea = set_byte(
        set_byte(d.digest, 6, (get_byte(d.digest, 6) & 15) | 128),
        8, (get_byte(d.digest, 8) & 63) | 128
    )
order by d.id
