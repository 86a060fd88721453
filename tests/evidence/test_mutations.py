"""Ten thousand single changes to a log, each of which must be found at its position."""

from collections import Counter
from functools import cache, partial
from random import Random

import asyncpg
import pytest
import uvloop

from service.evidence.note import NoteKey
from service.evidence.verdict import Verdict
from service.evidence.verify import part as part_check
from service.evidence.verify.confirm import confirmed
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import Confirm, verify
from tests.evidence.mutations import SIMPLE
from tests.evidence.rewrites import REWRITES, covering, make_hashes_again
from tests.evidence.scene import Named, Scene, Unchanged, at, judged
from tests.evidence.sealed_log import SCHEMA, disarm

PARTS = 8
EACH = 1250
CONFIRMED = 10
"""Of so many draws one is of a log whose parts are looked at first, as the command does it."""
_VACUUM_EVERY = 50
_REFUSED = (Unchanged, asyncpg.IntegrityConstraintViolationError, asyncpg.DataError)


@pytest.fixture(autouse=True)
def signatures_known(monkeypatch):
    """Verify each note's signature once: ten thousand verdicts open the same few notes."""
    monkeypatch.setattr(NoteKey, "holds", cache(NoteKey.holds))


@pytest.fixture(autouse=True)
def few_streams(monkeypatch):
    """Have the parts of a log put streams away, as those of a long one do."""
    monkeypatch.setattr(part_check, "STREAMS_MAX", 3)
    monkeypatch.setattr(part_check, "STEP", 7)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_single_change_is_found_at_its_position(database_url, log, part):
    """10,000 draws: one value, row or pair altered, with and without recomputed hashes.

    In every other part all constraints are gone too, so that nulls and duplicates can be written.
    """
    uvloop.run(_scene(database_url, log, part))  # the service's loop, and the faster one


async def _scene(database_url, log, part):
    connection = await asyncpg.connect(database_url)
    try:
        await _draw_all(connection, log, part)
    finally:
        await connection.close()  # the loop would wait for it


async def _draw_all(connection, log, part):
    bare = part % 2 == 1
    await disarm(connection, bare=bare)
    scene = Scene(connection, Random(part), log, bare)  # noqa: S311 - the same draws each time
    missed, counts = [], Counter()
    assert (await judged(connection, log.published)).ok
    while counts.total() < EACH:
        try:
            confirm = None if counts.total() % CONFIRMED else by_parts
            kind, named, verdict = await draw(scene, confirm)
        except _REFUSED:  # refused by a constraint, or nothing changed: drawn again
            continue
        counts[kind] += 1
        if not is_found(verdict, named):
            missed.append((kind, named, verdict))
        if counts.total() % _VACUUM_EVERY == 0:
            await connection.execute("vacuum accounts.events, accounts.log, accounts.head")
    assert missed == []
    assert (await judged(connection, log.published)).ok
    assert len(counts) == len({*SIMPLE, *REWRITES}) - (not bare)  # duplicates are refused otherwise


by_parts = partial(confirmed, reading=None, parts=4)


async def draw(scene: Scene, confirm: Confirm | None) -> tuple[str, Named, Verdict]:
    """Make one change, verify, and undo it."""
    transaction = scene.connection.transaction()
    await transaction.start()
    try:
        if scene.random.random() < 0.6:
            change = scene.random.choice(SIMPLE)
            named, evidence = await change(scene), scene.log.published
        else:
            change = scene.random.choice(REWRITES)
            named, evidence = await _rewritten(scene, await change(scene))
        verdict = await verify(scene.connection, SCHEMA, evidence, confirm=confirm)
    finally:
        await transaction.rollback()
    return change.__name__, named, verdict


async def _rewritten(scene: Scene, first: int) -> tuple[Named, Evidence]:
    """Recompute all hashes; return what can reveal the change, and where."""
    log = scene.log
    evidence = scene.random.choice(
        [log.published, log.published, log.without_leaves, log.stored_only]
    )
    await make_hashes_again(scene, first, forget_checkpoints=evidence is not log.stored_only)
    return (at(first) if evidence is log.published else covering(first)), evidence


def is_found(verdict: Verdict, named: Named) -> bool:
    """Return whether a verdict names a fault in the right place."""
    if verdict.ok or not verdict.fault:
        return False
    if named.low is None or named.high is None or verdict.position is None:
        return named == at(verdict.position)
    return named.low <= verdict.position <= named.high
