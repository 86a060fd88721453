-- The erasures up to the moment, oldest first: all, those of a claim, of an entity and its claims and
-- links, or of what a partner has or had to do with.
select x.subject, x.position, x.at, x.reason
from ledger.erasures as x
where
    ($1::text is null or x.subject = $1)
    and ($2::text is null or x.subject = $2 or exists(
        select from ledger.claim_list as l where l.claim_id = x.subject and l.entity_id = $2
        union all
        select from ledger.connect_links as k where k.link_id = x.subject and k.entity_id = $2
    ))
    and ($3::text is null or exists(
        select from ledger.claim_list as l where l.claim_id = x.subject and l.partner_id = $3
        union all
        select from ledger.connect_links as k where k.link_id = x.subject and k.partner_id = $3
        union all
        select from ledger.connections as c where c.entity_id = x.subject and c.partner_id = $3
        union all
        select from ledger.onboardings as o where o.entity_id = x.subject and o.partner_id = $3
    ))
order by x.position
