-- Mail that waits for an entity's person is not sent; one that is on its way is waited for.
update ledger.mail_outbox as m set state = 'obsolete'
from ledger.onboardings as o
where o.entity_id = $1 and m.stream_id = o.stream_id and m.state = 'waiting'
returning m.message_id
