"""The document checks against an independent store: the JSON API of an emulator.

It verifies no signature, so uploads go through its own API; what is read is read by our code.
"""

import asyncio
import base64
from collections.abc import Iterator

import google_crc32c
import httpx
import pytest
from gcp_storage_emulator.server import create_server

from service.facts.claims import ClaimCreated, DocumentsAttached
from service.storage import google
from service.storage.google import GoogleObjectStore
from service.storage.port import StorageUnavailable
from tests.contract.events import events_of
from tests.contract.refusals import refused
from tests.document_store import BUCKETS, CONTENT, PDF, documents_on, patient_store, reference_to
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS
from tests.processes import free_port

pytestmark = pytest.mark.server


class Emulator:
    """An emulator with our buckets."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def upload(self, bucket: str, name: str, content: bytes, content_type: str = PDF) -> None:
        """Upload through the emulator's API."""
        httpx.post(
            f"{self.endpoint}/upload/storage/v1/b/{bucket}/o",
            params={"uploadType": "media", "name": name},
            content=content,
            headers={"Content-Type": content_type},
            timeout=PATIENCE_SECONDS,
            verify=NO_TLS,
        ).raise_for_status()


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """Give reads no time limit: the emulator is a thread of this process."""
    monkeypatch.setitem(google._ONE_TRY, "timeout", None)  # noqa: SLF001 - not in question here


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    """Return a running emulator."""
    port = free_port()
    server = create_server("127.0.0.1", port, in_memory=True)
    server.start()
    one = Emulator(f"http://127.0.0.1:{port}")
    for bucket in BUCKETS.values():
        httpx.post(
            f"{one.endpoint}/storage/v1/b",
            json={"name": bucket},
            timeout=PATIENCE_SECONDS,
            verify=NO_TLS,
        ).raise_for_status()
    yield one
    server.stop()


def store_of(emulator: Emulator, bucket: str = BUCKETS["live"]) -> GoogleObjectStore:
    """Return our reader of a bucket."""
    return patient_store("token", bucket, emulator.endpoint)


@pytest.fixture
async def documents(database_url, tmp_path, store_credentials, emulator):
    """Return a service whose checks ask the emulator."""
    async with documents_on(database_url, tmp_path, store_credentials, follow=False) as one:
        for mode, counted in one.counted.items():
            counted.inner.close()
            counted.inner = store_of(emulator, BUCKETS[mode])
        yield one


async def test_a_claim_records_the_emulators_object(documents, emulator):
    """Size, generation and checksum are the emulator's."""
    partner, entity = await documents.world.connected()
    refs = [reference_to(await documents.mint(partner, entity)) for _ in range(3)]
    for ref in refs:
        await asyncio.to_thread(emulator.upload, BUCKETS["live"], ref["storage_path"], CONTENT)
    made = await partner.claim(entity, document_refs=refs)

    assert (made.status_code, len(made.json()["document_ids"])) == (201, 3), made.text
    (attached,) = await events_of(documents.world, "live", DocumentsAttached)
    checksum = google_crc32c.Checksum(CONTENT).digest()
    for one, ref in zip(attached.documents, refs, strict=True):
        assert (one.storage_path, one.size) == (ref["storage_path"], len(CONTENT))
        assert one.generation > 0
        assert one.crc32c == base64_of(checksum)


def base64_of(checksum: bytes) -> str:
    """Return a checksum as the API encodes it."""
    return base64.b64encode(checksum).decode()


async def test_a_missing_object_is_document_not_uploaded(documents, emulator):
    """Other objects under the prefix do not count."""
    partner, entity = await documents.world.connected()
    ref = reference_to(await documents.mint(partner, entity))
    beside = ref["storage_path"].replace(".pdf", ".png")
    await asyncio.to_thread(emulator.upload, BUCKETS["live"], beside, CONTENT)

    refused(await partner.claim(entity, document_refs=[ref]), "document_not_uploaded")
    assert await events_of(documents.world, "live", ClaimCreated) == []


async def test_another_type_is_refused(documents, emulator):
    """The emulator's Content-Type is compared."""
    partner, entity = await documents.world.connected()
    ref = reference_to(await documents.mint(partner, entity))
    path = ref["storage_path"]
    await asyncio.to_thread(emulator.upload, BUCKETS["live"], path, CONTENT, "image/png")

    refused(await partner.claim(entity, document_refs=[ref]), "validation_failed")


async def test_a_missing_bucket_is_our_fault(documents, emulator):
    """503, not document_not_uploaded."""
    partner, entity = await documents.world.connected()
    ref = reference_to(await documents.mint(partner, entity))
    documents.counted["live"].inner.close()
    documents.counted["live"].inner = store_of(emulator, "no-such-bucket")

    refused(await partner.claim(entity, document_refs=[ref]), "document_verification_failed")


async def test_objects_are_listed_and_deleted(emulator):
    """Each object is listed once, under its prefix, and deleted unless it has changed."""
    store, bucket = store_of(emulator), BUCKETS["live"]
    names = {f"sweep/{number:02} ä+%2F.pdf" for number in range(5)}
    for name in names:
        await asyncio.to_thread(emulator.upload, bucket, name, CONTENT)
    found = {one.name: one async for one in store.each("sweep/")}

    assert set(found) == names == set(await store.under("sweep/"))
    first, *_ = found.values()
    assert await store.delete(first.name, first.generation)
    assert await store.delete(first.name, first.generation), "gone is gone"
    assert set(await store.under("sweep/")) == names - {first.name}
    store.close()


async def test_reading_a_missing_bucket_fails(emulator):
    """Its listing does not look empty."""
    store = store_of(emulator, "no-such-bucket")
    with pytest.raises(StorageUnavailable):
        await store.under("x")
    store.close()
