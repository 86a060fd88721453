"""With object storage misbehaving, claims with documents say so in time; all else goes on."""

import asyncio
import socket
import threading
import time
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
from tests.document_store import BUCKETS, documents_on
from tests.storage_server import (
    answers,
    drips_a_body,
    drips_headers,
    ends_early,
    hangs,
    resets,
    storage_server,
)

SECONDS_MAX = 4.0
QUIET = b'{"kind": "storage#objects"}'

FAULTS = {
    "hangs": hangs,
    "drips its body": drips_a_body,
    "drips its headers": drips_headers,
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


@pytest.fixture
async def documents(database_url, tmp_path, store_credentials):
    """Return a service with a local store, which a test may replace by something worse."""
    async with documents_on(database_url, tmp_path, store_credentials) as one:
        yield one


@pytest.fixture
async def server():
    """Return a storage server that hangs until it is told otherwise."""
    async with storage_server() as one:
        yield one


def reading(documents, endpoint):
    """Have the checks of live mode ask another server."""
    store = GoogleObjectStore(Credentials("token"), BUCKETS["live"], endpoint=endpoint)
    documents.counted["live"].inner.close()
    documents.counted["live"].inner = store
    return store


async def failures(documents):
    """Return what the metric counts."""
    text = (await documents.world.client.get("/metrics")).text
    (line,) = [
        one for one in text.splitlines() if one.startswith("claim_ledger_storage_failures_total")
    ]
    return float(line.split()[1])


async def timed(call):
    """Return a response and the seconds that it took."""
    begun = time.monotonic()
    return await call, time.monotonic() - begun


async def threads_end(store):
    """Hold that each thread of a store is free within a second: they meet at a barrier."""
    barrier = threading.Barrier(google.THREADS, timeout=1)
    threads = store._threads  # noqa: SLF001 - nobody else has a use for them
    loop = asyncio.get_running_loop()
    await asyncio.gather(
        *(loop.run_in_executor(threads, barrier.wait) for _ in range(google.THREADS))
    )


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_claim_with_documents_ends_in_time(documents, server, capsys, fault):
    """503 document_verification_failed, a log line and a metric; no claim, no thread left."""
    partner = await documents.world.partner()
    entity = await partner.connected_entity()
    ref = await documents.uploaded(partner, entity)
    good = documents.store.endpoint
    server.behave = FAULTS[fault]
    store = reading(documents, server.endpoint)
    capsys.readouterr()
    answer, seconds = await timed(partner.claim(entity, document_refs=[ref]))

    refused(answer, "document_verification_failed")
    assert int(answer.headers["Retry-After"]) >= 1
    assert seconds < SECONDS_MAX
    assert "storage unavailable" in capsys.readouterr().out
    assert await failures(documents) == 1
    assert await events_of(documents.world, "live", ClaimCreated) == []
    await threads_end(store)
    assert server.connections == 1, "one try, and nothing beside it"
    store.close()
    again = reading_well(documents, good)
    made = await partner.claim(entity, document_refs=[ref])
    assert (made.status_code, len(made.json()["document_ids"])) == (201, 1)
    again.close()


def reading_well(documents, endpoint):
    """Have the checks of live mode ask the local store again."""
    token = documents.store.credentials.token
    store = GoogleObjectStore(Credentials(token), BUCKETS["live"], endpoint=endpoint)
    documents.counted["live"].inner = store
    return store


async def test_nobody_listens(documents):
    """Refused connections are the same 503, at once."""
    partner = await documents.world.partner()
    entity = await partner.connected_entity()
    ref = await documents.uploaded(partner, entity)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
    store = reading(documents, endpoint)
    answer, seconds = await timed(partner.claim(entity, document_refs=[ref]))

    refused(answer, "document_verification_failed")
    assert seconds < 1
    store.close()


async def test_the_same_store_goes_on_when_the_server_is_well_again(documents, server):
    """Threads and connections that were cut are no loss: thrice as many as there are threads."""
    partner = await documents.world.partner()
    entity = await partner.connected_entity()
    ref = await documents.uploaded(partner, entity)
    store = reading(documents, server.endpoint)
    begun = time.monotonic()
    results = await asyncio.gather(
        *(partner.claim(entity, "case-1", document_refs=[ref]) for _ in range(3 * google.THREADS))
    )
    assert time.monotonic() - begun < SECONDS_MAX
    for answer in results:
        refused(answer, "document_verification_failed")
    await threads_end(store)
    async with asyncio.timeout(1):
        await server.until(lambda: not server.open)
    server.behave = answers(200, QUIET)
    results = await asyncio.gather(*(store.under("x") for _ in range(3 * google.THREADS)))
    assert results == [{}] * len(results)
    used = server.connections
    assert await store.under("x") == {}
    assert server.connections == used, "connections are kept between calls"
    store.close()


async def test_claims_without_documents_do_not_wait(documents, server):
    """Every thread of storage hangs meanwhile."""
    partner = await documents.world.partner()
    entity = await partner.connected_entity()
    ref = await documents.uploaded(partner, entity)
    store = reading(documents, server.endpoint)
    stuck = [
        asyncio.create_task(partner.claim(entity, document_refs=[ref]))
        for _ in range(2 * google.THREADS)
    ]
    async with asyncio.timeout(2):
        await server.until(lambda: server.open == google.THREADS)
    timings = []
    for number in range(20):
        answer, seconds = await timed(partner.claim(entity, f"free-{number}"))
        assert answer.status_code == 201
        timings.append(seconds)
    assert not any(one.done() for one in stuck)
    assert sorted(timings)[10] < 0.2
    for answer in await asyncio.gather(*stuck):
        refused(answer, "document_verification_failed")
    store.close()


async def test_a_caller_that_goes_away_leaves_no_thread(server):
    """Cancelling the wait cuts the connection."""
    store = GoogleObjectStore(Credentials("token"), "bucket", endpoint=server.endpoint)
    task = asyncio.create_task(store.under("x"))
    async with asyncio.timeout(2):
        await server.until(lambda: server.open)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await threads_end(store)
    store.close()


def descriptors():
    """Return how many files and sockets this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_connections_that_the_server_closes_are_let_go(server):
    """No descriptor stays open for each of them."""

    async def once(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(QUIET) + QUIET)
        await writer.drain()

    server.behave = once
    store = GoogleObjectStore(Credentials("token"), "bucket", endpoint=server.endpoint)
    before = descriptors()
    for _ in range(20):
        assert await store.under("x") == {}
    async with asyncio.timeout(1):
        await server.until(lambda: not server.open)
    assert server.connections == 20
    assert descriptors() - before < 5
    store.close()


async def test_closing_ends_every_thread(server):
    """Nothing of a store outlives it."""
    store = GoogleObjectStore(Credentials("token"), "bucket", endpoint=server.endpoint)
    server.behave = answers(500, b"{}")
    with pytest.raises(StorageUnavailable):
        await store.under("x")
    store.close()
    assert [one.name for one in threading.enumerate() if one.name.startswith("storage")] == []


class NoToken(Credentials):
    """Credentials that cannot be had: the metadata server is away."""

    def __init__(self) -> None:
        super().__init__(None)

    def refresh(self, _request):
        """Fail, as google-auth does."""
        raise GoogleAuthError("no token")


async def test_credentials_that_fail_are_no_fault_of_the_partner(documents, server):
    """503, never a 400."""
    partner = await documents.world.partner()
    entity = await partner.connected_entity()
    ref = await documents.uploaded(partner, entity)
    documents.counted["live"].inner.close()
    store = GoogleObjectStore(NoToken(), BUCKETS["live"], endpoint=server.endpoint)
    documents.counted["live"].inner = store

    refused(await partner.claim(entity, document_refs=[ref]), "document_verification_failed")
    store.close()


async def test_a_url_that_cannot_be_signed_is_503(documents, capsys):
    """IAM fails: service_unavailable with Retry-After, and nothing counts as minted."""
    partner = await documents.world.partner()
    entity = await partner.connected_entity()
    commands = documents.world.service.modes["live"].documents
    storage = commands._storage  # noqa: SLF001 - as the bootstrap would with workload identity
    signer = IamSigner(NoToken(), "signer@example.com", BUCKETS["live"])
    commands._storage = Storage(signer, storage.store)  # noqa: SLF001 - as above
    capsys.readouterr()
    answer, seconds = await timed(documents.mint(partner, entity))

    refused(answer, "service_unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    assert seconds < SECONDS_MAX
    assert "storage unavailable" in capsys.readouterr().out
    assert await failures(documents) == 1
    async with documents.world.service.modes["live"].ledger.database.connection() as connection:
        assert await connection.fetchval("select count(*) from live.uploads") == 0
    signer.close()
