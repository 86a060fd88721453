-- One call of a partner's.
select request_id, key_id, at, method, route, status, code, duration_ms
from ledger.requests where request_id = $1 and partner_id = $2
