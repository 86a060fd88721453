-- A page of a business's claims, whoever created them, newest first, from before an append_id on.
-- Partner by partner, because the index begins with the partner; claims need a connection.
select l.claim_id, l.append_id, l.partner_id, l.partner_claim_id, l.stage, l.created_at
from ledger.connections as c
cross join lateral (
    select *
    from ledger.claim_list as l
    where
        l.partner_id = c.partner_id and l.entity_id = c.entity_id
        and l.append_id < coalesce($2::bigint, 9223372036854775807)
    order by l.append_id desc
    limit $3
) as l
where c.entity_id = $1
order by l.append_id desc
limit $3
