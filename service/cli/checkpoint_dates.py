"""Reporting a checkpoint that is dated ahead, as several commands do."""

from service.cli.terminal import warn
from service.core.clock import timestamp
from service.evidence.checkpoints.signing import Checkpoints


async def warn_ahead(checkpoints: Checkpoints) -> float:
    """Return how many seconds a ledger's last checkpoint is dated ahead, and warn if it is."""
    state = await checkpoints.state()
    ahead = state.ahead_of(checkpoints.ledger.clock()).total_seconds()
    if state.made_at is not None and ahead:
        warn(
            f"the last checkpoint of {checkpoints.ledger.name} is dated {timestamp(state.made_at)},"
            ' ahead of this clock: that clock or this one is wrong. See "Wrong clock" in the '
            "runbook."
        )
    return round(ahead, 3)
