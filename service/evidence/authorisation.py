"""Who may begin a lineage: its beginning is signed with the operator's key (decision 24).

Whoever can write to the database can append a LineageBegun. Without the required signature, it
could name a checkpoint that was published long ago, and so disown all checkpoints published since.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from service.evidence.checkpoint import Checkpoint, ledger_of
from service.evidence.note import NoteInvalid, NoteKey, open_note
from service.facts.lineages import LineageBegun

_HEADING: Final = "claim-ledger lineage v1"


class Unsound(ValueError):
    """The beginning of a lineage is invalid; `str()` says why."""


class Lineage(NamedTuple):
    """A lineage: its origin, the checkpoint that it follows, and how many events they share.

    `follows_size` is the size of the followed checkpoint. The lineage does not affect later
    checkpoints.
    """

    origin: str
    follows: str | None = None
    follows_size: int = 0
    shared_size: int = 0


def authorised(
    key: NoteKey,
    origin: str,
    reason: str,
    previous: str | None = None,
    shared_size: int | None = None,
) -> LineageBegun:
    """Return the event that begins a lineage; raises ValueError for a key that cannot sign."""
    followed = None if previous is None else Checkpoint.of_note(previous)
    note = key.sign(_text(origin, followed, shared_size))
    return LineageBegun(origin, reason, note, previous, shared_size)


def lineage_of(
    begun: LineageBegun,
    keys: Sequence[NoteKey],
    ledger: str,
    before: Sequence[Lineage],
    position: int | None = None,
) -> Lineage:
    """Return the lineage that an event begins; raises Unsound.

    `before` are those of the log so far, `position` is the event's, if that is known.
    """
    origin, shared = begun.origin, begun.shared_size
    previous = _opened(begun, keys)
    if ledger_of(origin) != ledger:
        raise Unsound("its origin is that of another ledger")
    if previous is not None and previous.ledger != ledger:
        raise Unsound("the checkpoint that it follows is that of another ledger")
    known = {one.origin for one in before} | {one.follows for one in before}
    if origin in known or (previous is not None and previous.origin == origin):
        raise Unsound("its origin has been used before")
    if previous is None:
        if before or shared is not None:
            raise Unsound("it does not name the checkpoint that it follows")
        return Lineage(origin)
    if shared is None or not 0 <= shared <= previous.size:
        raise Unsound(f"it cannot share {shared} events with one of {previous.size}")
    if position is not None and shared >= position:
        raise Unsound(f"it cannot share {shared} events where only {position - 1} precede it")
    # An authorisation that was made for an earlier fork and never used does not fit here.
    if previous.origin in known and previous.origin != before[-1].origin:
        raise Unsound("it follows a lineage that another one has followed already")
    return Lineage(origin, previous.origin, previous.size, shared)


def sound_lineages(
    begun: Sequence[LineageBegun], keys: Sequence[NoteKey], ledger: str
) -> list[Lineage]:
    """Return the lineages of a log, given their events; raises Unsound."""
    found: list[Lineage] = []
    for one in begun:
        found.append(lineage_of(one, keys, ledger, found))
    return found


def _opened(begun: LineageBegun, keys: Sequence[NoteKey]) -> Checkpoint | None:
    """Return the checkpoint that a lineage follows, as the operator's key signed it."""
    try:
        previous = None if begun.previous is None else Checkpoint.open(begun.previous, keys)
    except NoteInvalid as error:
        raise Unsound(f"the checkpoint that it follows: {error}") from error
    try:
        text = open_note(begun.authorisation, keys)
    except NoteInvalid as error:
        raise Unsound(f"its authorisation: {error}") from error
    if text != _text(begun.origin, previous, begun.shared_size):
        raise Unsound("its authorisation is that of another lineage")
    return previous


def _text(origin: str, previous: Checkpoint | None, shared_size: int | None) -> str:
    followed = ["-"] * 3 if previous is None else previous.lines
    shared = "-" if shared_size is None else str(shared_size)
    return "\n".join((_HEADING, origin, *followed, shared, ""))
