-- What an id is in a ledger that partners write to, and to whom it belongs.
select 'claim' as kind, c.claim_id as id, c.stage as state, c.partner_id, c.entity_id, c.claim_id
from ledger.claim_list as c where c.claim_id = $1
union all
select
    'entity', e.entity_id, case when e.established then 'established' else 'onboarding' end,
    null, e.entity_id, null
from ledger.entities as e where e.entity_id = $1
union all
select 'onboarding', o.onboarding_id, o.state, o.partner_id, o.entity_id, null
from ledger.onboardings as o where o.onboarding_id = $1
union all
select 'link', l.link_id, l.state, l.partner_id, l.entity_id, null
from ledger.connect_links as l where l.link_id = $1
union all
select 'document', d.document_id, d.mime_type, c.partner_id, c.entity_id, d.claim_id
from ledger.claim_documents as d
join ledger.claim_list as c using (claim_id)
where d.document_id = $1
union all
select
    'request', r.request_id, r.method || ' ' || r.route || ': ' || r.status || ' ' || r.code,
    r.partner_id, null, null
from ledger.requests as r where r.request_id = $1
