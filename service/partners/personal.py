"""What is personal in the events of a partner's streams, which its own key encrypts."""

from collections.abc import Sequence

from service.core.errors import Refusal
from service.facts.partners import partner_stream
from service.ledger.encryption import DataKey
from service.ledger.events import Event
from service.ledger.transaction import Transaction


async def personal_key(
    transaction: Transaction, partner_id: str, events: Sequence[Event]
) -> DataKey | None:
    """Return the partner's key if events of its streams have anything personal, else None.

    Refuses with `partner_state` where there is something, and the partner's data was erased.
    """
    if not any(getattr(event, name) for event in events for name in event.personal):
        return None
    key = await transaction.data_key(partner_stream(partner_id))
    if key is None:
        raise Refusal("partner_state", "The personal data of this partner has been erased.")
    return key
