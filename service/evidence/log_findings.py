"""Findings of the background verification other than hashes, each with a MAC.

They stop no signing, because the log itself holds. Whoever has the ledger's login can write these
rows. A row without its MAC is itself a finding, until a whole pass has found nothing. So is a row
that is not there, until somebody puts it back.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, Self

import msgspec

from service.core.ids import stream_id
from service.evidence.verdict import Fault
from service.ledger.database import Row
from service.ledger.event_macs import EventKeys, event_digest
from service.ledger.sql import queries

ACTORS: Final = "actors"
"""The kind of findings about events whose actors could not act."""
TREE_NODES: Final = "tree_nodes"
"""The kind of findings about stored nodes of the tree that do not follow from the log."""

FINDINGS: Final = queries("service.evidence").findings
NOTE_FINDING: Final = queries("service.evidence").note_finding

_NOT_OURS: Final = {
    ACTORS: "What is noted of who the events are of was not written by this service.",
    TREE_NODES: (
        "Kept nodes of the tree were altered when a proof was made of them, or somebody else than "
        "this service wrote what is noted of them."
    ),
}
_GONE: Final = {
    ACTORS: "The record of whether the actors of events could act is gone.",
    TREE_NODES: "The record of whether kept nodes of the tree are the log's is gone.",
}
_TOPIC: Final = "LogFinding"
_NOWHERE: Final = -1


class LogFinding(NamedTuple):
    """How far the present pass has come, and what was found; `faults` is the number of findings."""

    position: int
    seen: int
    faults: int
    fault_position: int | None
    fault: str | None

    @property
    def is_of_the_log(self) -> bool:
        """Return whether it was found in the log, and not of the record of what was found."""
        return self.position != _NOWHERE

    def begun(self) -> Self:
        """Return it where a pass begins: what was found stays."""
        return self._replace(position=0, seen=0)

    def with_faults(self, first: Fault | None, count: int) -> Self:
        """Return it with more of the present pass, whose first one is shown."""
        if first is None:
            return self
        seen = self.seen + count
        found = self._replace(seen=seen, faults=max(self.faults, seen))
        if self.seen:
            return found
        return found._replace(fault_position=first.position, fault=first.sentence)

    def ended(self) -> "LogFinding":
        """Return it where a pass has looked at the whole log."""
        return self._replace(position=0, seen=0, faults=self.seen) if self.seen else NOTHING_FOUND

    def mac(self, ledger: str, kind: str, keys: EventKeys) -> bytes:
        """Return the MAC, which shows that a process of the service wrote the row."""
        return keys.mac(stream_id("log-finding", ledger, kind), 1, _TOPIC, self._state())

    def is_ours(self, ledger: str, kind: str, keys: EventKeys, mac: bytes | None) -> bool:
        """Return whether that is so of what a row holds."""
        if mac is None:
            return self == NOTHING_FOUND
        stream = stream_id("log-finding", ledger, kind)
        return keys.holds(event_digest(stream, 1, _TOPIC, self._state()), mac)

    def _state(self) -> bytes:
        return msgspec.json.encode(list(self))


NOTHING_FOUND: Final = LogFinding(0, 0, 0, None, None)


def log_findings(rows: Iterable[Row], ledger: str, keys: EventKeys) -> dict[str, LogFinding]:
    """Return each kind's finding, of the rows of FINDINGS; a kind without a row is one itself."""
    found = {kind: LogFinding(_NOWHERE, 1, 1, None, fault) for kind, fault in _GONE.items()}
    for kind, *columns, mac in rows:
        if kind not in found:
            continue  # of a later release
        kept = LogFinding(*columns)
        if kept.is_ours(ledger, kind, keys, mac):
            found[kind] = kept
        else:
            # The present pass does not know how far it had looked: the next one does.
            found[kind] = LogFinding(_NOWHERE, 1, 1, None, _NOT_OURS[kind])
    return found
