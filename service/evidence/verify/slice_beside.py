"""What a slice checks beside the rows' hashes: actors, and stored nodes of the tree."""

from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from service.evidence.log_findings import (
    ACTORS,
    FINDINGS,
    NOTE_FINDING,
    TREE_NODES,
    LogFinding,
    log_findings,
)
from service.evidence.tree.tile import TreeNode
from service.evidence.verify.actors import BEFORE_MAX, ENTITIES_LATE_MAX, Actors
from service.evidence.verify.kept_nodes import node_fault
from service.evidence.verify.late_actors import settled
from service.evidence.verify.people import People
from service.evidence.verify.rows import LogRow
from service.evidence.verify.streams import Streams
from service.ledger.binding import Binding
from service.ledger.sql import queries
from service.ledger.transaction import Transaction

PEOPLE_SECONDS: Final = 0.5
"""So long a slice reads who could act; then it ends, and the next one reads on."""

_BEGUN_BYTES_MAX: Final = 64 << 10
"""Far more than an event has by which an entity is registered."""

_SQL = queries("service.evidence.verify")
_TREE = queries("service.evidence.tree")

log = structlog.get_logger()


class Beside:
    """Takes the rows of a slice that hold, and records what it finds."""

    def __init__(
        self,
        transaction: Transaction,
        people: People,
        binding: Binding,
        findings: Mapping[str, LogFinding],
        position: int,
    ) -> None:
        """Continue from `findings`; one that has not reached `position` waits for the next pass."""
        self._transaction = transaction
        self._ledger, self._keys = binding.ledger, binding.keys
        self._people = people
        self._binding = binding
        begun = {kind: one if position else one.begun() for kind, one in findings.items()}
        self.findings = {kind: one for kind, one in begun.items() if one.position == position}
        self._before: Sequence[bytes] = ()

    @classmethod
    async def of(
        cls, transaction: Transaction, people: People, binding: Binding, position: int
    ) -> "Beside":
        """Return it for the slice that begins after a position."""
        rows = await transaction.fetch(FINDINGS)
        findings = log_findings(rows, binding.ledger, binding.keys)
        return cls(transaction, people, binding, findings, position)

    async def is_ready(self) -> bool:
        """Return whether who could act is known well enough to begin."""
        return ACTORS not in self.findings or await self._people.catch_up(PEOPLE_SECONDS)

    async def take(self, rows: Sequence[LogRow], nodes: Sequence[TreeNode]) -> None:
        """Take the next rows, which are what was hashed, and the nodes that they complete."""
        if ACTORS in self.findings and rows:
            await self._actors(rows)
        if TREE_NODES in self.findings and nodes:
            await self._nodes(nodes)

    async def note(self, size: int, *, is_over: bool) -> None:
        """Keep what was found, and that all was looked at up to `size`."""
        if is_over and TREE_NODES in self.findings:
            beyond = await self._transaction.fetch(_SQL.nodes_beyond)
            await self._altered([TreeNode(row["level"], row["node_index"], b"") for row in beyond])
        for kind, one in self.findings.items():
            after = one.ended() if is_over else one._replace(position=size)
            mac = after.mac(self._ledger, kind, self._keys)
            await self._transaction.fetch(NOTE_FINDING, kind, *after, mac)
        if is_over:
            await self._people.forget()

    async def _nodes(self, nodes: Sequence[TreeNode]) -> None:
        levels, indexes = [one.level for one in nodes], [one.number for one in nodes]
        kept = {
            (row["level"], row["node_index"]): row
            for row in await self._transaction.fetch(_SQL.kept_nodes, levels, indexes)
        }
        rows = [(one, kept[one.level, one.number]) for one in nodes]
        await self._altered(
            [
                one
                for one, row in rows
                if row["hash"] != one.hash and (row["hash"] is not None or row["has_others"])
            ]
        )

    async def _altered(self, nodes: Sequence[TreeNode]) -> None:
        """Note the nodes that are not those of the log, and have all of them made again."""
        if not nodes:
            return
        log.error("tree nodes altered", ledger=self._ledger)
        found = self.findings[TREE_NODES].with_faults(node_fault(nodes[0]), len(nodes))
        self.findings[TREE_NODES] = found
        await self._transaction.fetch(_TREE.note_forgotten)  # until `note` says more of it
        await self._transaction.fetch(_TREE.forget_nodes)

    async def _actors(self, rows: Sequence[LogRow]) -> None:
        first, last = rows[0].position, rows[-1].position
        if not self._before:
            before = await self._transaction.fetch(_SQL.states, first - 1 - BEFORE_MAX, first - 1)
            self._before = [row["state"] for row in before]
        # Read after the rows, so that the accounts know everybody who acts in one of them.
        while not await self._people.catch_up(PEOPLE_SECONDS):
            pass  # another ledger's pass has ended, and forgot them
        streams = Streams()
        actors = Actors(self._ledger, self._people.known, streams)
        actors.look_back(self._before)
        for row in rows:
            actors.take(row)
        waiting = list(set(actors.waiting()))
        if waiting:
            begun = await self._transaction.fetch(
                _SQL.slices_begun, waiting, last + ENTITIES_LATE_MAX, _BEGUN_BYTES_MAX
            )
            for row in self._binding.ours(begun):
                streams.put(row["originator_id"], 1, 1)
        faults = await settled(self._transaction.connection, self._ledger, actors.faults())
        found = self.findings[ACTORS].with_faults(faults.first, faults.number)
        self.findings[ACTORS] = found
        self._before = [*self._before, *(row.state for row in rows)][-BEFORE_MAX:]
