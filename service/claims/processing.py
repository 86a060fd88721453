"""Handing a claim's first message over to automated processing. Live only."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import structlog

from service.facts.claims import FirstMessagePosted
from service.ledger.events import Recorded
from service.ledger.ledger import Transaction

log = structlog.get_logger()


class FirstMessage(NamedTuple):
    """What processing is given. `message_id` is stable: the same message may come twice."""

    message_id: str
    claim_id: str
    entity_id: str
    partner_id: str
    text: str | None


class Processing(Protocol):
    """The pipeline that takes claims further."""

    async def hand_over(self, message: FirstMessage) -> None:
        """Take a first message, at least once; a raised error brings it again."""
        ...


class LogProcessing:
    """The default: says in the log that there is a message, without its text."""

    async def hand_over(self, message: FirstMessage) -> None:
        """Log the ids."""
        log.info(
            "first message handed over",
            message_id=message.message_id,
            claim_id=message.claim_id,
            entity_id=message.entity_id,
            partner_id=message.partner_id,
        )


class ProcessingSubscriber:
    """Subscriber of the live ledger: hands over each first message in the log's order."""

    name = "processing"
    events_max = 1
    topics = (FirstMessagePosted,)

    def __init__(self, processing: Processing) -> None:
        """Take the pipeline that first messages are handed to."""
        self._processing = processing

    async def handle(self, _transaction: Transaction, events: Sequence[Recorded]) -> None:
        """Hand over what the events hold."""
        for recorded in events:
            event = recorded.event
            if isinstance(event, FirstMessagePosted):
                await self._processing.hand_over(
                    FirstMessage(
                        event.message_id,
                        event.claim_id,
                        event.entity_id,
                        event.partner_id,
                        event.text,
                    )
                )
