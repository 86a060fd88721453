-- A link was redeemed or declined.
update ledger.connect_links as l set state = settled.state, entity_id = settled.entity_id
from unnest($1::text[], $2::text[], $3::text[]) as settled (link_id, state, entity_id)
where l.link_id = settled.link_id
