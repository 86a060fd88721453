"""The fault that stops a replay."""

from collections.abc import Sequence

from service.ledger.decoding import StoredRow
from service.ledger.following.parking import NOT_OURS
from service.ledger.ledger import Ledger


class LogFault(Exception):
    """The log cannot be replayed; str() says at which `position` and why, for an operator.

    The position is None for an event that waits for one.
    """

    def __init__(self, position: int | None, fault: str) -> None:
        where = "without a position" if position is None else f"position {position}"
        super().__init__(f"{where}: {fault}")
        self.position = position


async def refuse_foreign(ledger: Ledger, numbered: Sequence[StoredRow]) -> None:
    """Raise LogFault for the first of numbered events, with MACs, that is not of this service.

    Of events that no checkpoint covers, nothing else says so: before one is signed, their MACs are
    checked in the same way.
    """
    ours = await ledger.ours(numbered)
    if len(ours) < len(numbered):
        known = {row[0] for row in ours}
        raise LogFault(next(row[0] for row in numbered if row[0] not in known), NOT_OURS)


def check_place(position: int | None, due: int) -> None:
    """Raise LogFault unless `position` is the one that is due; None: the log has ended."""
    if position is None or position > due:
        raise LogFault(due, "the log has no such event")
    if position < due:
        raise LogFault(position, "the log has it more than once")
