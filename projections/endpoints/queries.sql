-- name: change
-- Endpoints with other URLs or types. Of several changes of one's the last counts.
update ledger.webhook_endpoints as e set url = changed.url, types = changed.types
from (
    select distinct on (endpoint_id) endpoint_id, url, types
    from unnest($1::text[], $2::text[], $3::text[])
        with ordinality as one (endpoint_id, url, types, nr)
    order by endpoint_id, nr desc
) as changed
where e.endpoint_id = changed.endpoint_id

-- name: disable
-- Endpoints were disabled, enabled (without a reason) or removed. Of several facts the last counts.
update ledger.webhook_endpoints as e set disabled = changed.reason, disabled_at = changed.at
from (
    select distinct on (endpoint_id) endpoint_id, reason, at
    from unnest($1::text[], $2::text[], $3::timestamptz[])
        with ordinality as one (endpoint_id, reason, at, nr)
    order by endpoint_id, nr desc
) as changed
where e.endpoint_id = changed.endpoint_id

-- name: list_endpoints
-- A partner's endpoints that were not removed, oldest first.
select
    endpoint_id, mode, url, types, secret_version, secret_rotated_at, added_at, disabled, disabled_at
from ledger.webhook_endpoints
where partner_id = $1 and disabled is distinct from 'removed'
order by added_at, endpoint_id

-- name: rotate
-- Secrets were replaced. Of several of one endpoint's the last counts.
update ledger.webhook_endpoints as e
set secret_version = rotated.version, secret_rotated_at = rotated.at
from (
    select distinct on (endpoint_id) endpoint_id, version, at
    from unnest($1::text[], $2::int[], $3::timestamptz[])
        with ordinality as one (endpoint_id, version, at, nr)
    order by endpoint_id, nr desc
) as rotated
where e.endpoint_id = rotated.endpoint_id

-- name: sendable
-- Those of some endpoints to which events are sent: they are enabled, and their partners may act.
select e.endpoint_id, e.partner_id, e.url, e.types, e.secret_version, e.secret_rotated_at
from ledger.webhook_endpoints as e
join ledger.partners as p using (partner_id)
where e.endpoint_id = any($1::text[]) and e.disabled is null and p.status = 'approved'
