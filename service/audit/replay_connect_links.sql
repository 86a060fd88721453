-- The connect links, oldest first, never a token's hash. Those of a claim were redeemed by its
-- entity for its partner.
select k.link_id, k.partner_id, k.state, k.entity_id, k.issued_at, k.expires_at
from ledger.connect_links as k
where
    ($1::text is null or exists(
        select from ledger.claim_list as l
        where l.claim_id = $1 and l.entity_id = k.entity_id and l.partner_id = k.partner_id
    ))
    and ($2::text is null or k.entity_id = $2)
    and ($3::text is null or k.partner_id = $3)
order by k.issued_at, k.link_id
