"""With object storage misbehaving, claims with documents fail in time; all else works."""

import asyncio
import gzip
import socket
import threading
from pathlib import Path

import pytest
from google.auth.exceptions import GoogleAuthError
from google.oauth2.credentials import Credentials

from service.facts.claims import ClaimCreated
from service.storage import google
from service.storage.google import GoogleObjectStore
from service.storage.port import Storage, StorageUnavailable
from service.storage.signer import IamSigner
from tests.contract.events import events_of
from tests.contract.refusals import refused
from tests.document_store import BUCKETS
from tests.patience import PATIENCE_SECONDS, eventually, waiting
from tests.storage_server import (
    ENDLESS_BYTES,
    Endless,
    answers,
    drips_a_body,
    drips_headers,
    ends_early,
    hangs,
    resets,
    storage_server,
)

DEADLINE_SECONDS = 1.0
QUIET = b'{"kind": "storage#objects"}'

ENDLESS = {"hangs": hangs, "drips its body": drips_a_body, "drips its headers": drips_headers}
FAULTS = {
    **ENDLESS,
    "resets": resets,
    "ends early": ends_early,
    **{
        str(status): answers(status, b'{"error": {"code": %d, "message": "no"}}' % status)
        for status in (400, 401, 403, 404, 408, 409, 412, 429, 500, 502, 503, 504)
    },
    "no JSON": answers(200, b"<html>"),
    "no UTF-8": answers(200, b"\xff\xfe"),
    "an array": answers(200, b"[]"),
    "null": answers(200, b"null"),
    "objects without a name": answers(200, b'{"items": [{}]}'),
    "a size that is none": answers(200, b'{"items": [{"name": "a", "size": "x"}]}'),
    "objects that are none": answers(200, b'{"items": [1]}'),
    "items that are none": answers(200, b'{"items": 1}'),
    "a moved bucket": answers(302, b""),
}


@pytest.fixture(autouse=True)
def _by_the_deadline_alone(monkeypatch):
    """Remove other limits, so that a call ends by its answer or at the deadline."""
    monkeypatch.setitem(google._ONE_TRY, "timeout", None)  # noqa: SLF001 - theirs is not in question


@pytest.fixture
async def server():
    """Return a storage server that hangs until told otherwise."""
    async with storage_server() as one:
        yield one


def reading(documents, endpoint, deadline=PATIENCE_SECONDS):
    """Make the checks of live mode use another server."""
    store = GoogleObjectStore(
        Credentials("token"), BUCKETS["live"], endpoint=endpoint, deadline_seconds=deadline
    )
    documents.counted["live"].inner.close()
    documents.counted["live"].inner = store
    return store


async def failures(documents):
    """Return the count in the metric."""
    text = await documents.world.scrape()
    (line,) = [
        one for one in text.splitlines() if one.startswith("claim_ledger_storage_failures_total")
    ]
    return float(line.split()[1])


async def threads_end(store):
    """Check that every thread of a store becomes free: they meet at a barrier."""
    barrier = threading.Barrier(google.THREADS, timeout=PATIENCE_SECONDS)
    threads = store._threads  # noqa: SLF001 - nobody else has a use for them
    loop = asyncio.get_running_loop()
    await asyncio.gather(
        *(loop.run_in_executor(threads, barrier.wait) for _ in range(google.THREADS))
    )


def test_a_document_check_has_a_deadline():
    """A claim's documents are checked within three seconds, or not at all."""
    assert google.DEADLINE_SECONDS <= 3.0


async def test_a_claim_with_documents_ends_in_time(documents, capsys):
    """503 document_verification_failed, a log line and a metric; no claim, no thread left."""
    partner, entity, ref = await documents.uploading()
    good = documents.store.endpoint
    for number, (fault, behave) in enumerate(FAULTS.items(), 1):
        deadline = DEADLINE_SECONDS if fault in ENDLESS else PATIENCE_SECONDS
        async with storage_server() as server:
            server.behave = behave
            store = reading(documents, server.endpoint, deadline)
            capsys.readouterr()
            with waiting() as waited:
                answer = await partner.claim(entity, document_refs=[ref])

            refused(answer, "document_verification_failed")
            assert int(answer.headers["Retry-After"]) >= 1, fault
            assert waited() < deadline + 1, fault
            assert "storage unavailable" in capsys.readouterr().out, fault
            assert await failures(documents) == number, fault
            await threads_end(store)
            assert server.connections == 1, f"{fault}: one try, and nothing beside it"
            store.close()
    assert await events_of(documents.world, "live", ClaimCreated) == []
    again = reading_well(documents, good)
    made = await partner.claim(entity, document_refs=[ref])
    assert (made.status_code, len(made.json()["document_ids"])) == (201, 1)
    again.close()


def reading_well(documents, endpoint):
    """Make the checks of live mode use the local store again."""
    token = documents.store.credentials.token
    store = GoogleObjectStore(Credentials(token), BUCKETS["live"], endpoint=endpoint)
    documents.counted["live"].inner = store
    return store


async def test_refused_connections_are_503(documents):
    """They are answered long before the deadline."""
    partner, entity, ref = await documents.uploading()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
    store = reading(documents, endpoint)
    with waiting() as waited:
        answer = await partner.claim(entity, document_refs=[ref])

    refused(answer, "document_verification_failed")
    assert waited() < PATIENCE_SECONDS / 2
    store.close()


async def test_a_store_recovers_with_its_server(documents, server):
    """More calls than threads were cut, and no thread or connection is lost."""
    partner, entity, ref = await documents.uploading()
    store = reading(documents, server.endpoint, DEADLINE_SECONDS)
    with waiting() as waited:
        results = await asyncio.gather(
            *(
                partner.claim(entity, "case-1", document_refs=[ref])
                for _ in range(3 * google.THREADS)
            )
        )
    assert waited() < 2 * DEADLINE_SECONDS
    for answer in results:
        refused(answer, "document_verification_failed")
    await threads_end(store)
    await eventually(lambda: not server.open)
    server.behave = answers(200, QUIET)
    store.deadline_seconds = PATIENCE_SECONDS  # the server is well again
    results = await asyncio.gather(*(store.under("x") for _ in range(3 * google.THREADS)))
    assert results == [{}] * len(results)
    used = server.connections
    assert await store.under("x") == {}
    assert server.connections == used, "connections are kept between calls"
    store.close()


async def test_claims_without_documents_do_not_wait(documents, server):
    """All storage threads that the partner may have hang meanwhile."""
    partner, entity, ref = await documents.uploading()
    store = reading(documents, server.endpoint)
    stuck = [
        asyncio.create_task(partner.claim(entity, document_refs=[ref]))
        for _ in range(2 * google.THREADS)
    ]
    await eventually(lambda: server.open == google.THREADS_OF_ONE)
    for number in range(20):
        assert (await partner.claim(entity, f"free-{number}")).status_code == 201
    assert not any(one.done() for one in stuck)
    server.behave = resets
    server.stop()
    for answer in await asyncio.gather(*stuck):
        refused(answer, "document_verification_failed")
    store.close()


async def test_one_partners_claims_leave_threads_to_others(documents, server):
    """However many of them wait for storage, somebody else's documents are checked at once."""
    partner, other = await documents.world.partner(), await documents.world.partner()
    entity = await partner.connected_entity()
    await other.connect(entity)
    ref, theirs = [await documents.uploaded(one, entity) for one in (partner, other)]
    store = reading(documents, server.endpoint)
    stuck = [
        asyncio.create_task(partner.claim(entity, document_refs=[ref]))
        for _ in range(2 * google.THREADS)
    ]
    await eventually(lambda: server.open >= google.THREADS_OF_ONE)
    server.behave = answers(200, QUIET)  # new connections alone
    refused(await other.claim(entity, document_refs=[theirs]), "document_not_uploaded")
    assert not any(one.done() for one in stuck)
    server.stop()
    for answer in await asyncio.gather(*stuck):
        assert answer.status_code in {400, 503}
    store.close()


async def test_a_partner_that_fills_its_share_is_no_failure_of_storage(documents, server, capsys):
    """It is answered alike, but only what storage itself does not answer alerts the team."""
    partner, entity, ref = await documents.uploading()
    store = reading(documents, server.endpoint)
    stuck = [
        asyncio.create_task(partner.claim(entity, document_refs=[ref]))
        for _ in range(google.THREADS_OF_ONE)
    ]
    await eventually(lambda: server.open == google.THREADS_OF_ONE)
    store.deadline_seconds = 0.0  # of those that wait for the others
    answer = await partner.claim(entity, document_refs=[ref])
    refused(answer, "document_verification_failed")
    assert int(answer.headers["Retry-After"]) >= 1
    assert "storage unavailable" not in capsys.readouterr().out
    assert await failures(documents) == 0
    server.behave = resets
    server.stop()
    await asyncio.gather(*stuck)
    assert await failures(documents) == google.THREADS_OF_ONE
    store.close()


async def test_a_caller_that_goes_away_leaves_no_thread(server):
    """Cancelling the wait cuts the connection."""
    store = GoogleObjectStore(Credentials("token"), "bucket", endpoint=server.endpoint)
    task = asyncio.create_task(store.under("x"))
    await eventually(lambda: server.open)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await threads_end(store)
    store.close()


def descriptors():
    """Return how many files and sockets this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_connections_that_the_server_closes_are_let_go(server):
    """No file descriptors leak."""

    async def once(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(QUIET) + QUIET)
        await writer.drain()

    server.behave = once
    store = GoogleObjectStore(Credentials("token"), "bucket", endpoint=server.endpoint)
    before = descriptors()
    for _ in range(20):
        assert await store.under("x") == {}
    await eventually(lambda: not server.open)
    assert server.connections == 20
    assert descriptors() - before < 5
    store.close()


async def test_closing_ends_every_thread(server):
    """No thread outlives its store."""
    store = GoogleObjectStore(Credentials("token"), "bucket", endpoint=server.endpoint)
    server.behave = answers(500, b"{}")
    with pytest.raises(StorageUnavailable):
        await store.under("x")
    store.close()
    assert [one.name for one in threading.enumerate() if one.name.startswith("storage")] == []


class NoToken(Credentials):
    """Credentials that fail because the metadata server is unreachable."""

    def __init__(self) -> None:
        super().__init__(None)

    def refresh(self, _request):
        """Fail, as google-auth does."""
        raise GoogleAuthError("no token")


async def test_credentials_that_fail_are_no_fault_of_the_partner(documents, server):
    """503, never a 400."""
    partner, entity, ref = await documents.uploading()
    documents.counted["live"].inner.close()
    store = GoogleObjectStore(NoToken(), BUCKETS["live"], endpoint=server.endpoint)
    documents.counted["live"].inner = store

    refused(await partner.claim(entity, document_refs=[ref]), "document_verification_failed")
    store.close()


async def test_a_url_that_cannot_be_signed_is_503(documents, capsys):
    """IAM fails: service_unavailable with Retry-After, and no upload is recorded."""
    partner, entity = await documents.world.connected()
    commands = documents.world.service.modes["live"].documents
    storage = commands.storage
    signer = IamSigner(NoToken(), "signer@example.com", BUCKETS["live"])
    commands.storage = Storage(signer, storage.store)  # as with workload identity
    capsys.readouterr()
    answer = await documents.mint(partner, entity)

    refused(answer, "service_unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    assert "storage unavailable" in capsys.readouterr().out
    assert await failures(documents) == 1
    async with documents.world.service.modes[
        "live"
    ].ledger.database.writes.connection() as connection:
        assert await connection.fetchval("select count(*) from live.uploads") == 0
    signer.close()


async def test_a_part_of_an_object_is_bounded(server):
    """A server that ignores the range, or sends what is no object, is a failure and not memory."""
    store = GoogleObjectStore(Credentials("token"), BUCKETS["live"], endpoint=server.endpoint)
    for fault, behave in {
        "more than was asked for": answers(200, bytes(1 << 20)),
        "an error": answers(503, b"{}"),
        "a lost connection": resets,
        "an early end": ends_early,
    }.items():
        server.behave = behave
        with pytest.raises(StorageUnavailable):
            await store.part("a", 1, 0, 1000)
        assert server.connections, fault
    server.behave = answers(206, b"%PDF")
    assert await store.part("a", 1, 0, 1000) == b"%PDF"
    store.close()


async def test_an_answer_is_bounded(server):
    """A body without an end, or one that unpacks to more, is neither kept nor waited for."""
    store = GoogleObjectStore(
        Credentials("token"), "bucket", endpoint=server.endpoint, deadline_seconds=PATIENCE_SECONDS
    )
    packed = gzip.compress(bytes(ENDLESS_BYTES))
    for behave in (Endless(200), Endless(500), answers(200, packed, more="content-encoding: gzip")):
        server.behave = behave
        for call in (store.under("x"), store.names("x", None), store.read("x", ENDLESS_BYTES)):
            with pytest.raises(StorageUnavailable, match="CallFailed"):
                await call
        await eventually(lambda: not server.open)
        if isinstance(behave, Endless):
            assert behave.sent < ENDLESS_BYTES
    store.close()
