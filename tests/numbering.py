"""Numbering by hand, where no sequencer runs."""

from service.ledger.ledger import Ledger
from service.ledger.sequencer import Sequencer


async def number(ledger: Ledger) -> None:
    """Number what can be."""
    sequencer = Sequencer(ledger)
    while await sequencer.step():
        pass
