"""Whatever reads the log by pages holds a few large events at a time, and not a page of them."""

import io
import secrets
import tracemalloc
from uuid import uuid4

from service.evidence.checkpoint import Checkpoint
from service.evidence.export.export_writer import ExportScope, Signed, write_export
from service.evidence.replay.comparison import independent_claims
from service.evidence.replay.state import Wanted, replayed
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.facts.claims import ClaimCreated
from service.ledger.decoding import PAGE_BYTES_MAX
from service.ledger.following.runner import Subscription
from service.ledger.ledger import Append
from service.ledger.merkle import CompactRange
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from service.privacy.find import Search
from service.privacy.text_search import Sought
from tests.ledger.samples import CAUSE
from tests.ledger.wired import service
from tests.projections.rebuilding import model, quiet, rebuild
from tests.tables import every_row

__all__ = ["service"]

EVENTS = 24
TEXT_CHARACTERS = 1_000_000
HELD_BYTES_MAX = 8 * PAGE_BYTES_MAX
"""A page as it arrives, as rows, decoded and written, and the next one, which is read ahead: half
of what the events take as they are stored."""
LEAVES = queries("service.ledger").leaf_hashes


async def claims_of(ledger, count, characters=TEXT_CHARACTERS):
    """Append claims whose details are this long, and number them."""
    appends = list[Append]()
    for name in (uuid4().hex for _ in range(count)):
        stream = uuid4()
        key = ledger.master_keys.new_data_key(stream)
        details = {"text": secrets.token_hex(characters // 2)}
        claim = ClaimCreated(f"clm_{name}", "ptn_1", "ent_1", name, "", details=details)
        appends.append(Append(stream, 0, [claim], CAUSE, key, new_key=True))
    async with ledger.transaction() as transaction:
        await transaction.append(*appends)
    while await Sequencer(ledger.database).step():
        pass


async def test_readers_of_the_log_hold_a_few_large_events_at_a_time(service, database_url):
    """Following, rebuilding, verifying, exporting, replaying and searching are bounded in bytes."""
    ledger = service.modes["live"].ledger
    (activity,) = service.catch_up["live"]
    await claims_of(ledger, EVENTS)
    root = CompactRange()
    root.extend(
        row["leaf_hash"] for row in await ledger.database.background.fetch(LEAVES, 0, EVENTS)
    )
    signed = Signed(Checkpoint("example.com/live/1", EVENTS, root.root()), "note")

    async def follow():
        while await Subscription(ledger, activity).step():
            pass

    async def replay():
        async with replayed(ledger, EVENTS, quiet) as state:
            assert len([row async for row in state.rows("claim_list", Wanted())]) == EVENTS

    async def export():
        await write_export(ledger, signed, ExportScope(), Nowhere(), quiet)

    async def verify():
        assert (await verify_ledger(ledger.database, Evidence(()))).fault is None

    async def search():
        sought = Sought("nobody@example.com", "00" * 32)
        assert [place async for place in Search(ledger, sought).places(quiet)] == []

    loops = {
        "following": follow,
        "rebuilding": lambda: rebuild(database_url, model(_World(service), "claim_list")),
        "rebuilding a catch-up": lambda: rebuild(database_url, model(_World(service), "activity")),
        "replaying": replay,
        "replaying independently": lambda: independent_claims(
            ledger.database, EVENTS, Wanted(), quiet
        ),
        "exporting": export,
        "verifying": verify,
        "searching": search,
    }
    with every_row() as row:
        for name, loop in loops.items():
            with row(name):
                assert await _peak_bytes(loop) < HELD_BYTES_MAX


class Nowhere(io.RawIOBase):
    """A file that keeps nothing of what is written to it."""

    def write(self, content):
        """Return how much was given."""
        return len(content)


class _World:
    def __init__(self, service):
        self.service = service


async def _peak_bytes(loop):
    """Return the most memory that Python held while a loop ran, beyond what it held before."""
    tracemalloc.start(1)
    try:
        await loop()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
