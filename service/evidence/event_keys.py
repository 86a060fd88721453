"""Drawing another event key, on record: who did it, and that it was somebody of the team."""

from datetime import datetime

from service.core.clock import to_milliseconds
from service.facts.event_keys import EventKeyAdded, event_key_stream
from service.ledger.events import Cause
from service.ledger.ledger import Ledger
from service.ledger.service_keys import ServiceKeyStore
from service.ledger.transaction import Transaction
from service.ledger.writing import Append


async def draw_event_key(
    accounts: Ledger, secrets: ServiceKeyStore, cause: Cause
) -> tuple[int, datetime]:
    """Draw the next event key; return its id and from when on it signs. Raises EventKeyRefused.

    The event that records it is bound by a key of before, as the new one does not sign yet.
    """

    async def attempt(transaction: Transaction) -> tuple[int, datetime]:
        key_id, signs_from = await secrets.add_event_key(transaction.connection)
        added = EventKeyAdded(event_key=key_id, signs_from=to_milliseconds(signs_from))
        await transaction.append(Append(event_key_stream(key_id), 0, [added], cause))
        return key_id, signs_from

    return await accounts.decide(attempt)
