"""Verifying a ledger from its tables; nothing that the database says about itself is trusted.

The rows are read in order. First, several processes read a part each, and only find out whether
everything holds (confirm.py). If that may not be so, the rows are read again, one by one. Each
row's hash is recomputed from its columns, the tree grows over the hashes, and its root is compared
at the size of every checkpoint. All checkpoints are compared with one sequence of leaves, so those
that hold are consistent with each other, without any proof.

If somebody rewrites events together with all hashes and the stored checkpoints, the first published
checkpoint that covers the change still detects it; the verdict has the number of published ones
that were compared. What is not signed yet can be rewritten undetected, which is why checkpoints are
frequent.
"""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import Final
from uuid import UUID

from service.core.forked_processes import NO_SPARES, Spares
from service.core.progress import Advance
from service.evidence.lineages import lineages_of
from service.evidence.rolled_back import snapshot_of
from service.evidence.verdict import Fault, Verdict
from service.evidence.verify.actors import ALL_PROVEN, Actors
from service.evidence.verify.confirm import Judges, Reading, confirmed
from service.evidence.verify.definitions import definitions_fault, session_fault
from service.evidence.verify.expectations import Evidence, Expectations
from service.evidence.verify.head_and_queue import tail_fault
from service.evidence.verify.kept_nodes import nodes_fault
from service.evidence.verify.known_actors import Accounts, known_actors, proven_size
from service.evidence.verify.late_actors import settled
from service.evidence.verify.pinpoint import pinpoint
from service.evidence.verify.public_ids import public_ids_fault
from service.evidence.verify.published_leaves import leaves_fault
from service.evidence.verify.published_streams import streams_fault
from service.evidence.verify.rows import FIRST, Macs, log_rows
from service.evidence.verify.walk import Found, Walk
from service.evidence.verify.witnessed import witnessed
from service.ledger.database import Connection, Database, RightMissing, always
from service.ledger.event_macs import EventKeys
from service.ledger.merkle import EMPTY_ROOT
from service.ledger.sql import queries

DEADLINE_SECONDS: Final = 86_400.0
"""A day for one ledger: billions of events."""
STATEMENT_SECONDS_MAX: Final = 3600.0
"""Of the database: published hashes may have to be fetched from afar."""
_ROWS_MAX: Final = 256
"""Checkpoints read at once: at most 2 MiB."""
_SQL = queries("service.evidence.verify")
_STANDBY = queries("service.ledger.following").status_standby
Confirm = Callable[[Connection, Judges, Walk, Advance], Awaitable[bool]]


async def verify_ledger(
    database: Database,
    evidence: Evidence,
    advance: Advance = lambda _events: None,
    accounts: Accounts | None = None,
    event_keys: EventKeys | None = None,
    spares: Spares = NO_SPARES,
) -> Verdict:
    """Verify a ledger on a snapshot of it, while the service runs.

    `advance` gets the number of events read since the last call, a negative one where they are read
    again. With the ledger of `accounts`, the actors of the events are checked, too, and with the
    ledger's own `event_keys` their MACs. `spares` read parts of the log beside this process. Raises
    LedgerUnavailable, and ArchiveUnavailable if the archive has to be asked again.
    """
    try:
        # Before and after: what was altered meanwhile, or then, may have changed what was read. Not
        # at the same time: a pooler may have no place for a second connection.
        before = await definitions_fault(database)
        async with snapshot_of(database, STATEMENT_SECONDS_MAX, DEADLINE_SECONDS) as connection:
            kept: list[bool] = []
            confirm = partial(confirmed, reading=_reading(database, spares), tell=kept.append)
            verdict = await verify(
                connection, database.schema, evidence, advance, accounts, event_keys, confirm
            )
            if verdict.ok:
                fault = before or await _around(
                    connection, database, evidence, verdict, ids_are_kept=kept == [True]
                )
                if fault is not None:
                    return verdict.with_fault(fault)
                verdict = await witnessed(connection, database.schema, evidence, verdict)
        altered = await definitions_fault(database) if verdict.ok else None
        return verdict if altered is None else verdict.with_fault(altered)
    except RightMissing:
        # Perhaps a policy, which a transaction that has failed cannot look for.
        fault = await definitions_fault(database)
        if fault is None:
            raise
        return Verdict.of(database.schema, 0, EMPTY_ROOT, fault=fault)


def _reading(database: Database, spares: Spares) -> Reading | None:
    """Return how other processes read parts of the caller's snapshot; None where none can."""
    if not spares or not database.shares_snapshots:
        return None
    return Reading(spares, database, DEADLINE_SECONDS, STATEMENT_SECONDS_MAX)


async def _around(
    connection: Connection,
    database: Database,
    evidence: Evidence,
    verdict: Verdict,
    *,
    ids_are_kept: bool,
) -> Fault | None:
    """Return the first fault around a log that holds: in what is published, or what protects it.

    `ids_are_kept`: the public ids of numbered events have been checked already.
    """
    schema = database.schema
    lineages = await lineages_of(connection, schema, evidence.keys)
    comparable = evidence
    if verdict.behind is not None:
        within = [one for one in evidence.streams if one[1] <= verdict.size]
        comparable = replace(evidence, streams=within)
    return (
        await leaves_fault(evidence, lineages)
        or await session_fault(connection, schema)
        or await public_ids_fault(connection, schema, waiting_alone=ids_are_kept)
        or await streams_fault(connection, schema, comparable, lineages)
        or await nodes_fault(connection, database)
    )


async def size_of(database: Database) -> int:
    """Return about how many events there are to read, for a progress bar."""
    row = await database.reads.fetchrow(_SQL.size)
    return 0 if row is None else max(0, row["size"] or 0)


async def verify(
    connection: Connection,
    schema: str,
    evidence: Evidence,
    advance: Advance = lambda _events: None,
    accounts: Accounts | None = None,
    event_keys: EventKeys | None = None,
    confirm: Confirm | None = None,
) -> Verdict:
    """Verify a ledger in the caller's transaction, which must see one snapshot.

    The rows are walked through one by one, unless `confirm` says that all of them hold.
    """
    server = always(await connection.fetchrow(_STANDBY.on(schema)))
    is_standby = server["in_hot_standby"] == "on"
    lineages = await lineages_of(connection, schema, evidence.keys)
    expectations = Expectations(schema, evidence, lineages, is_standby=is_standby)
    stored = await connection.cursor(_SQL.checkpoints.on(schema))
    while rows := await stored.fetch(_ROWS_MAX):
        expectations.take(rows)
    await expectations.end()
    actors = None
    if accounts is not None:  # only now, when the snapshot was taken
        actors = await known_actors(accounts, evidence.keys, DEADLINE_SECONDS)
    proven = ALL_PROVEN
    if event_keys is None:  # before a checkpoint is signed, MACs are checked
        proven = await proven_size(connection, schema, evidence.keys, lineages)
    judges = Judges(schema, event_keys, actors, proven)
    with ExitStack() as ending:
        walk = ending.enter_context(closing(Walk(expectations.by_size)))
        await connection.fetchrow(_SQL.plan.on(schema), "off")
        found = None
        if confirm is None or not await _holds(confirm, connection, judges, walk, advance):
            walk = ending.enter_context(closing(_new_walk(judges, expectations)))
            found = await _walked(connection, schema, walk, advance)
        await connection.fetchrow(_SQL.plan.on(schema), "on")
        lacking = set[UUID]() if walk.actors is None else walk.actors.lacking()
        if found is not None:
            fault = await pinpoint(connection, schema, evidence, lineages, walk.last_held, found)
        else:
            has_lineage = bool(lineages.begun)
            fault = await tail_fault(
                connection, schema, walk.rows, event_keys, has_lineage=has_lineage
            )
            fault = fault or walk.unplaced
        verdict = Verdict.of(
            schema,
            walk.rows.size,
            walk.rows.tree.root(),
            checkpoints=len(walk.held),
            published=expectations.published,
            lineages=len(lineages.begun),
            set_aside=[size for _, size in expectations.set_aside],
            behind=max(expectations.behind, walk.behind),
            fault=fault,
        )
        if accounts is None or found is not None:
            return verdict
        unproven = 0 if actors is None else actors.unproven
        if event_keys is None:  # what waits in this ledger has registered them
            unproven += sum(map(walk.rows.streams.has_begun, lacking))
        faults = walk.confirmed if walk.actors is None else walk.actors.faults()
        faults = await settled(connection, schema, faults, proven)
        return verdict.with_actors(faults.told, faults.number, unproven)


def _new_walk(judges: Judges, expectations: Expectations) -> Walk:
    macs = None if judges.keys is None else Macs(judges.schema, judges.keys)
    walk = Walk(expectations.by_size, macs)
    if judges.actors is not None:
        walk.actors = Actors(judges.schema, judges.actors, walk.rows.streams, judges.proven)
    return walk


async def _holds(
    confirm: Confirm, connection: Connection, judges: Judges, walk: Walk, advance: Advance
) -> bool:
    """Return whether the rows hold; what had passed where they may not is taken back."""
    passed = 0

    def count(events: int) -> None:
        nonlocal passed
        passed += events
        advance(events)

    if await confirm(connection, judges, walk, count):
        return True
    advance(-passed)
    return False


async def _walked(
    connection: Connection, schema: str, walk: Walk, advance: Advance
) -> Found | None:
    """Walk through the rows; return the first fault."""
    found = walk.compare()
    async for rows in log_rows(connection, schema, FIRST):
        found = walk.take(rows)
        advance(len(rows))
        if found is not None:
            break
    return found or walk.end()
