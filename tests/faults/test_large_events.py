"""Whatever reads the log by pages holds a few large events at a time, and not a page of them."""

import io
import secrets
import tracemalloc
from uuid import uuid4

from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints import log_tree
from service.evidence.export.export_writer import ExportScope, Signed, write_export
from service.evidence.replay.comparison import independent_claims
from service.evidence.replay.state import replayed
from service.evidence.replay.wanted import EVERYTHING
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.facts.claims import ClaimCreated
from service.ledger.decoding import PAGE_BYTES_MAX
from service.ledger.following.catch_up import ParkingSubscriber
from service.ledger.following.runner import EVENTS_MAX, Subscription
from service.ledger.ledger import Append
from service.ledger.merkle import HASH_BYTES, CompactRange
from service.ledger.rebuild.build import CLOSE_BYTES, Builder
from service.ledger.rebuild.session import rebuild_session
from service.ledger.rebuild.swap import MadeBy, swap
from service.ledger.sql import queries
from service.privacy.find import Search
from service.privacy.text_search import Sought
from tests.ledger.samples import CAUSE
from tests.numbering import number
from tests.projections.rebuilding import model, quiet, rebuild
from tests.tables import every_row

EVENTS = 24
TEXT_CHARACTERS = 1_000_000
HELD_BYTES_MAX = 8 * PAGE_BYTES_MAX
"""A page as it arrives, as rows, decoded and written, and the next one, which is read ahead: half
of what the events take as they are stored."""
FEW = 2
"""Events that reach PAGE_BYTES_MAX; each has more than half of that."""
LEAVES = queries("service.ledger").leaf_hashes
LOG_BYTES = queries("service.ledger.rebuild").log_bytes


def large_claim():
    """Return the creation of a claim whose details are large."""
    name = uuid4().hex
    details = {"text": secrets.token_hex(TEXT_CHARACTERS // 2)}
    return ClaimCreated(f"clm_{name}", "ptn_1", "ent_1", name, "", details=details)


async def claims_of(ledger, streams, in_each=1):
    """Append large events to streams of their own, and number them."""
    appends = list[Append]()
    for stream in (uuid4() for _ in range(streams)):
        key = ledger.master_keys.new_data_key(stream)
        claims = [large_claim() for _ in range(in_each)]
        ids = [one.claim_id for one in claims]
        appends.append(Append(stream, 0, claims, CAUSE, key, new_key=True, public_ids=ids))
    async with ledger.transaction() as transaction:
        await transaction.append(*appends)
    await number(ledger)


async def test_readers_of_the_log_hold_a_few_large_events_at_a_time(service, database_url):
    """Following, rebuilding, verifying, exporting, replaying and searching are bounded in bytes."""
    ledger = service.modes["live"].ledger
    activity, _ = service.catch_up["live"]
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
            assert len([row async for row in state.rows("claim_list")]) == EVENTS

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
            ledger.database, EVENTS, EVERYTHING, quiet
        ),
        "exporting": export,
        "verifying": verify,
        "searching": search,
    }
    with every_row() as row:
        for name, loop in loops.items():
            with row(name):
                assert await _peak_bytes(loop) < HELD_BYTES_MAX


async def test_a_swap_has_few_bytes_to_apply_while_others_wait(service, database_url, monkeypatch):
    """Large events that came since the tables were built are applied before they are locked."""
    ledger, under_lock = service.modes["live"].ledger, list[int]()
    apply_up_to = Builder.apply_up_to

    async def measured(builder, progress, target):
        left = (progress.position, target, builder.model.topics)
        under_lock.append(await builder.number(LOG_BYTES, *left))
        return await apply_up_to(builder, progress, target)

    async with rebuild_session(database_url, "live") as shop:
        builder = shop.builder(model(_World(service), "claim_list"), "live_next", quiet)
        built = await builder.build(may_skip=False)
        await claims_of(ledger, EVENTS)
        monkeypatch.setattr(Builder, "apply_up_to", measured)
        swapped, _ = await swap(builder, built, MadeBy(1, None), (0.0, 0.0))
    assert swapped.position == EVENTS
    assert max(under_lock) <= 2 * CLOSE_BYTES


async def test_a_part_of_the_log_that_a_checkpoint_reads_has_few_bytes(service, monkeypatch):
    """However few events are in it; the parts together have every leaf."""
    monkeypatch.setattr(log_tree, "BYTES_MAX", PAGE_BYTES_MAX)
    database = service.modes["live"].ledger.database
    await claims_of(service.modes["live"].ledger, EVENTS)
    parts = [part async for part in log_tree.leaves_of_log(database, 0, EVENTS)]
    every = await database.background.fetch(LEAVES, 0, EVENTS)
    assert b"".join(parts) == b"".join(row["leaf_hash"] for row in every)
    assert max(map(len, parts)) <= FEW * HASH_BYTES


async def test_a_retry_handles_few_bytes_of_a_stream_at_a_time(service):
    """Each part is a transaction, so that what is done stays done."""
    ledger, handler = service.modes["live"].ledger, Handler()
    subscriber = ParkingSubscriber(handler, service.clock)
    subscription = Subscription(ledger, subscriber)
    await claims_of(ledger, 1, in_each=EVENTS)
    while await subscription.step():
        pass
    handler.refuses = False
    assert await subscriber.retry(ledger) == EVENTS
    assert max(handler.handled) <= FEW


class Handler:
    """Refuses what it is given until it no longer does; counts what it handles at once."""

    name = "large"
    topics = (ClaimCreated,)
    events_max = EVENTS_MAX
    reads_personal = True
    takes_unknown = False
    refuses = True

    def __init__(self):
        self.handled = []

    async def handle(self, _transaction, events):
        """Count events, or fail."""
        if self.refuses:
            raise ValueError
        self.handled.append(len(events))


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
