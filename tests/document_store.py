"""A service whose documents are in a local store on a real socket, and uploads to it."""

import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.oauth2.credentials import Credentials

from service.cli.dev.gcs.serving import LocalStore, local_store
from service.core.clock import system_clock
from service.facts.caller import Mode
from service.storage import google
from service.storage.google import GoogleObjectStore
from service.storage.port import ObjectStore, Storage, StoredObject
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS
from tests.processes import free_port
from tests.world import Partner, World, settings_for, world_on

BUCKETS: dict[Mode, str] = {"live": "live-documents", "test": "test-documents"}
PDF = "application/pdf"
CONTENT = b"%PDF-1.7 the bytes of a document"


class Counted:
    """An object store that counts the requests made to it."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self.asked: list[str] = []

    async def under(self, prefix: str, owner: str = "") -> Mapping[str, StoredObject]:
        """Return the inner store's listing."""
        self.asked.append(prefix)
        return await self.inner.under(prefix, owner)

    def each(self, prefix: str) -> AsyncIterator[StoredObject]:
        """Return the inner store's listing."""
        return self.inner.each(prefix)

    async def part(self, name: str, generation: int, start: int, size: int) -> bytes | None:
        """Read from the inner store."""
        return await self.inner.part(name, generation, start, size)

    async def delete(self, name: str, generation: int) -> bool:
        """Delete in the inner store."""
        return await self.inner.delete(name, generation)

    def close(self) -> None:
        """Close the inner store."""
        self.inner.close()


@dataclass
class Documents:
    """A world with a store, and how a partner works with documents."""

    world: World
    store: LocalStore
    http: httpx.AsyncClient
    counted: dict[Mode, Counted] = field(default_factory=dict)
    listings: Callable[[], int] | None = None
    """What counts the listings where they are requested in another process."""

    async def mint(
        self, partner: Partner, entity_id: str, reference: str = "case-1", **more: Any
    ) -> httpx.Response:
        """Request an upload URL."""
        mode = more.pop("mode", "live")
        body = {
            "entity_id": entity_id,
            "partner_claim_id": reference,
            "filename": "invoice.pdf",
            "mime_type": PDF,
        } | more
        return await partner.call("POST", "/documents/upload-url", mode=mode, json=body)

    async def put(self, minted: httpx.Response, content: bytes = CONTENT) -> httpx.Response:
        """Upload as the answer prescribes."""
        assert minted.status_code == 201, minted.text
        upload = minted.json()
        return await self.http.put(
            upload["upload_url"], headers=upload["required_headers"], content=content
        )

    async def uploaded(
        self, partner: Partner, entity_id: str, reference: str = "case-1", **more: Any
    ) -> dict[str, str]:
        """Mint and upload; return the reference for `document_refs`."""
        content = more.pop("content", CONTENT)
        minted = await self.mint(partner, entity_id, reference, **more)
        put = await self.put(minted, content)
        assert put.status_code == 200, put.text
        return reference_to(minted, **more)

    async def uploading(
        self, reference: str = "case-1", **more: Any
    ) -> tuple[Partner, str, dict[str, str]]:
        """Return a new partner, a business that is connected to it, and the reference to an upload.

        As `uploaded` returns it.
        """
        partner, entity_id = await self.world.connected()
        return partner, entity_id, await self.uploaded(partner, entity_id, reference, **more)

    def asked(self) -> int:
        """Return how many listings were requested from storage."""
        if self.listings is not None:
            return self.listings()
        return sum(len(one.asked) for one in self.counted.values())


def reference_to(minted: httpx.Response, **more: Any) -> dict[str, str]:
    """Return the entry of `document_refs` for a minted upload."""
    return {
        "storage_path": minted.json()["storage_path"],
        "mime_type": more.get("mime_type", PDF),
        "filename": more.get("filename", "invoice.pdf"),
    }


@asynccontextmanager
async def store_on(directory: Path, credentials: Path) -> AsyncGenerator[LocalStore, None]:
    """Serve a local store; `credentials` is a directory that contains credentials."""
    stored = directory / "store"
    shutil.copytree(credentials, stored)
    async with local_store(
        stored,
        list(BUCKETS.values()),
        port=free_port(),
        clock=system_clock,
    ) as store:
        yield store


def storage_settings(store: LocalStore) -> dict[str, str]:
    """Return the settings of a service on a local store, without their prefix."""
    return {
        "LIVE_BUCKET": BUCKETS["live"],
        "TEST_BUCKET": BUCKETS["test"],
        "STORAGE_KEY_FILE": str(store.credentials.key_file),
        "STORAGE_ENDPOINT": store.endpoint,
    }


@asynccontextmanager
async def documents_on(
    database_url: str, directory: Path, credentials: Path, *, follow: bool = True, **given: str
) -> AsyncGenerator[Documents, None]:
    """Run a service with a local store; `credentials` is a directory with credentials.

    `follow` False: as for `world_on`.
    """
    async with (
        store_on(directory, credentials) as store,
        httpx.AsyncClient(timeout=PATIENCE_SECONDS, verify=NO_TLS) as http,
    ):
        mail_dir = directory / "mail"
        settings = settings_for(database_url, mail_dir, **(storage_settings(store) | given))
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(google._ONE_TRY, "timeout", None)  # noqa: SLF001 - as `patient_store`
            async with world_on(settings, mail_dir, follow=follow) as world:
                counted = {mode: _count(world, store, mode) for mode in BUCKETS}
                yield Documents(world, store, http, counted)
                for one in counted.values():
                    one.close()


def patient_store(token: str, bucket: str, endpoint: str) -> GoogleObjectStore:
    """Return a reader of a bucket without a short time-out, for a busy machine."""
    return GoogleObjectStore(
        Credentials(token), bucket, endpoint=endpoint, deadline_seconds=PATIENCE_SECONDS
    )


def _count(world: World, store: LocalStore, mode: Mode) -> Counted:
    commands = world.service.modes[mode].documents
    counted = Counted(patient_store(store.credentials.token, BUCKETS[mode], store.endpoint))
    signer = world.service.modes[mode].storage.signer
    commands.storage = Storage(signer, counted)  # counts, changes nothing
    return counted
