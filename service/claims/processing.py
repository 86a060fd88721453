"""The hand-over of a claim's first message to automated processing. Live mode only."""

from typing import Protocol

import structlog

from service.facts.claims import FirstMessagePosted

log = structlog.get_logger()


class Processing(Protocol):
    """The pipeline that processes claims."""

    async def hand_over(self, message: FirstMessagePosted) -> None:
        """Accept a first message; raising an error causes a retry, so it comes at least once.

        Its `message_id` is stable. Several are handed over at once, of one claim only one.
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
