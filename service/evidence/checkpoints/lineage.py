"""Lineage events: the origin that a ledger's checkpoints are signed under (decision 24)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from service.core.ids import NewId
from service.evidence.authorisation import authorised
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.note import NoteKey
from service.facts.lineages import LineageBegun, lineage_stream
from service.ledger.events import Cause
from service.ledger.ledger import Ledger
from service.ledger.limits import BACKGROUND_SECONDS
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.ledger.writing import Append

_ACTOR: Final = "system:checkpoints"
_SQL = queries("service.evidence.checkpoints")


class _State(msgspec.Struct):
    data: LineageBegun


_FIRST: Final = "the ledger's first checkpoint"


async def lineages(ledger: Ledger) -> list[LineageBegun]:
    """Return a ledger's lineages, the present one last."""
    async with ledger.transaction(background=BACKGROUND_SECONDS) as transaction:
        return await read_lineages(transaction, ledger)


class BegunLineage(NamedTuple):
    """Where a lineage begins, its origin, and the one that it follows; nothing is verified."""

    position: int
    origin: str
    follows: str | None


async def begun_lineages(ledger: Ledger) -> list[BegunLineage]:
    """Return the numbered beginnings of a ledger's lineages, in their order.

    Status reports are made of them, so a lock that somebody forgot is not waited for.
    """
    rows = await ledger.database.reads.fetch(_SQL.lineages, lineage_stream(ledger.name))
    found: list[BegunLineage] = []
    for row in rows:
        try:
            begun = msgspec.json.decode(row["state"], type=_State).data
        except (ValueError, RecursionError):
            continue  # `audit verify` says so
        follows = None if begun.previous is None else begun.previous.partition("\n")[0]
        if row["position"] is not None:
            found.append(BegunLineage(row["position"], begun.origin, follows))
    return found


async def is_numbered(ledger: Ledger) -> bool:
    """Return whether the event that begins the present lineage has a number; False: it waits.

    Raises LedgerForked where it does not even wait: no checkpoint would ever cover it.
    """
    rows = await ledger.database.background.fetch(_SQL.lineages, lineage_stream(ledger.name))
    if not rows or (rows[-1]["position"] is None and not rows[-1]["waits"]):
        raise LedgerForked("the event that begins its lineage is in neither log nor queue")
    return rows[-1]["position"] is not None


async def begin_first(ledger: Ledger, key: NoteKey, new_id: NewId) -> list[LineageBegun]:
    """Begin the first lineage, unless another process just did; return those that exist."""
    now = ledger.clock()
    begun = authorised(key, new_origin(ledger, key, new_id), _FIRST)
    cause = Cause(_ACTOR, new_id("req", now))

    async def attempt(transaction: Transaction) -> list[LineageBegun]:
        found = await read_lineages(transaction, ledger)
        if not found:
            await transaction.append(Append(lineage_stream(ledger.name), 0, [begun], cause))
        return found or [begun]

    return await ledger.decide(attempt)


def new_origin(ledger: Ledger, key: NoteKey, new_id: NewId) -> str:
    """Return a new origin; the ids of lineages sort by age."""
    return f"{key.name}/{ledger.name}/{new_id('lin', ledger.clock())}"


def known_origins(known: Sequence[LineageBegun]) -> set[str]:
    """Return the origins that the log names: its lineages, and those that they follow."""
    followed = [one.previous for one in known if one.previous is not None]
    return {one.origin for one in known} | {note.partition("\n")[0] for note in followed}


async def read_lineages(transaction: Transaction, ledger: Ledger) -> list[LineageBegun]:
    """Return a ledger's lineages as a transaction sees them, the present one last."""
    recorded = await transaction.read(lineage_stream(ledger.name))
    return [one.event for one in recorded if isinstance(one.event, LineageBegun)]
