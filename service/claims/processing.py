"""The hand-over of a claim's first message to automated processing. Live mode only."""

from collections.abc import Sequence
from typing import Protocol

import structlog

from service.facts.claims import FirstMessagePosted
from service.ledger.events import Recorded
from service.ledger.ledger import Transaction

log = structlog.get_logger()


class Processing(Protocol):
    """The pipeline that processes claims."""

    async def hand_over(self, message: FirstMessagePosted) -> None:
        """Accept a first message; raising an error causes a retry, so it comes at least once.

        Its `message_id` is stable.
        """
        ...


class LogProcessing:
    """The default: logs that there is a message, without its text."""

    async def hand_over(self, message: FirstMessagePosted) -> None:
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
        """Hand over the first message of each event."""
        for recorded in events:
            event = recorded.event
            if isinstance(event, FirstMessagePosted):
                await self._processing.hand_over(event)
