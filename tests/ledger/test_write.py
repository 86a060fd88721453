"""Writing what commands decided in one statement: each command's outcome is its own."""

import asyncio
from uuid import uuid4

import msgspec
import pytest

from service.facts.catalogue import PARTNER_LEDGER
from service.ledger.transaction import PublicIdTaken
from service.ledger.writing import Append, Guard, Proposal
from tests.ledger.appending import append, read
from tests.ledger.samples import CAUSE, sample
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def live(service):
    """Return the live ledger."""
    return service.modes["live"].ledger


def unprojected(stream, expected_version=0, **more):
    """Return an append of an event that changes no read model."""
    return Append(stream, expected_version, [POSTED], CAUSE, **more)


def proposal(stream, expected_version=0, *, guards=(), **more):
    """Return a proposal of such an event."""
    return Proposal([unprojected(stream, expected_version, **more)], guards)


POSTED = msgspec.structs.replace(sample(PARTNER_LEDGER["FirstMessagePosted"]), text=None)
LINK = sample(PARTNER_LEDGER["ConnectLinkIssued"])
DECLINED = sample(PARTNER_LEDGER["ConnectLinkDeclined"])


def link(live, stream, public_id):
    """Return an append with a key, a public id and a row of a read model."""
    key = live.master_keys.new_data_key(stream)
    event = msgspec.structs.replace(LINK, link_id=public_id, token_hash=public_id.encode())
    return Append(stream, 0, [event], CAUSE, key, new_key=True, public_ids=[public_id])


async def lengths(ledger, *streams):
    """Return how many events each stream has."""
    return [len(await read(ledger, stream)) for stream in streams]


async def test_each_command_of_a_batch_has_its_own_outcome(live):
    """Streams that grew or are held stop the commands that need them, and no other."""
    read_only, held, grown, *streams = [uuid4() for _ in range(9)]
    await append(live, unprojected(read_only, 0), unprojected(grown, 0))
    proposals = [
        proposal(streams[0], guards=[Guard(read_only, 1)]),
        proposal(streams[1], guards=[Guard(grown, 0)]),
        proposal(grown),
        proposal(streams[2], guards=[Guard(held, 0)]),
        proposal(held),
        proposal(grown, 1, guards=[Guard(read_only, 1)]),
    ]
    async with live.transaction() as transaction:
        await transaction.lock(held)
        outcomes = await live.write(proposals)
    assert outcomes == ["written", "moved", "conflict", "locked", "locked", "written"]
    assert await lengths(live, *streams[:3], held, grown) == [1, 0, 0, 0, 2]


async def test_what_is_not_written_leaves_nothing(live, owner):
    """No event, public id, data key or row of a read model."""
    grown, free = uuid4(), uuid4()
    await append(live, unprojected(grown, 0))
    lost = Proposal([link(live, free, "lnk_lost"), unprojected(grown)])
    kept = Proposal([link(live, uuid4(), "lnk_kept")])
    assert await live.write([lost, kept]) == ["conflict", "written"]
    assert await lengths(live, free, grown) == [0, 1]
    for query, expected in (
        ("select public_id from live.public_ids", "lnk_kept"),
        ("select link_id from live.connect_links", "lnk_kept"),
        ("select count(*) from live.data_keys", 1),
        ("select count(*) from live.pending", 2),
    ):
        assert owner.execute(query).fetchall() == [(expected,)], query


async def test_readers_of_a_stream_share_it_and_its_writer_does_not(live):
    """Two commands may rest on one stream at once; whoever appends to it keeps both out."""
    rests_on = uuid4()
    async with live.transaction() as transaction:
        await transaction.lock_shared([rests_on])
        both = [proposal(uuid4(), guards=[Guard(rests_on, 0)]) for _ in range(2)]
        assert await live.write(both) == ["written"] * 2
        assert await live.write([proposal(rests_on)]) == ["locked"]
    assert await live.write([proposal(rests_on)]) == ["written"]


async def test_a_batch_with_a_taken_public_id_writes_nothing(live):
    """Its commands are then tried alone, where each is told what happened to it."""
    await append(live, link(live, uuid4(), "lnk_1"))
    streams = [uuid4(), uuid4()]
    taken = proposal(streams[1], public_ids=["lnk_1"])
    with pytest.raises(PublicIdTaken):
        await live.write([proposal(streams[0]), taken])
    assert await lengths(live, *streams) == [0, 0]


async def test_a_row_refers_to_the_append_id_that_is_drawn(live, owner):
    """The rows of a batch carry the append_ids of their own events, also beside one not written."""
    created = sample(PARTNER_LEDGER["ClaimCreated"])
    grown = uuid4()
    await append_claim(live, created, grown, "clm_0")
    streams = [uuid4(), grown, uuid4()]
    proposals = [claim_proposal(live, created, one, f"clm_{n}") for n, one in enumerate(streams, 1)]
    assert await live.write(proposals) == ["written", "conflict", "written"]
    rows = owner.execute(
        "select l.claim_id, l.append_id = e.append_id from live.claim_list as l"
        " join live.events as e on e.originator_id = l.stream_id order by 1"
    ).fetchall()
    assert rows == [("clm_0", True), ("clm_1", True), ("clm_3", True)]


async def test_a_projection_that_changes_rows_needs_a_transaction(live):
    """Such a command is refused before anything is written."""
    stream = uuid4()
    with pytest.raises(TypeError, match="settle needs a transaction"):
        await live.write([Proposal([Append(stream, 1, [DECLINED], CAUSE)])])
    assert await lengths(live, stream) == [0]


async def test_no_lock_outlives_the_statement(live):
    """Whoever waits for a stream exclusively comes after the write, and sees it."""
    rests_on, stream = uuid4(), uuid4()
    for _ in range(3):
        await live.write([proposal(uuid4(), guards=[Guard(rests_on, 0)])])
    assert await live.write([proposal(stream, guards=[Guard(rests_on, 0)])]) == ["written"]
    async with asyncio.timeout(PATIENCE_SECONDS), live.transaction() as transaction:
        await transaction.lock(rests_on, stream)
        assert len(await transaction.read(stream)) == 1


async def append_claim(live, created, stream, claim_id):
    """Append a claim in a write of its own."""
    assert await live.write([claim_proposal(live, created, stream, claim_id)]) == ["written"]


def claim_proposal(live, created, stream, claim_id):
    """Return a proposal of a claim that rests on nothing."""
    key = live.master_keys.new_data_key(stream)
    event = msgspec.structs.replace(created, claim_id=claim_id)
    return Proposal([Append(stream, 0, [event], CAUSE, key, new_key=True)])
