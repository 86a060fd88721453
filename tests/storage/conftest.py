"""A local store on a real socket, and a clock that can be moved."""

import shutil
from collections.abc import AsyncGenerator

import httpx
import pytest

from service.cli.dev.gcs.serving import local_store
from service.storage.signer import KeySigner
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS
from tests.processes import free_port
from tests.storage.local import BUCKET, MovableClock, Served


@pytest.fixture
async def served(tmp_path, store_credentials, monkeypatch) -> AsyncGenerator[Served, None]:
    """Return a local store of this test's own, on a real socket."""
    # The client would ask for the bucket in a thread of its own, beside every call.
    monkeypatch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
    clock = MovableClock()
    shutil.copytree(store_credentials, tmp_path, dirs_exist_ok=True)
    async with (
        local_store(tmp_path, [BUCKET], port=free_port(), clock=clock) as store,
        httpx.AsyncClient(timeout=PATIENCE_SECONDS, verify=NO_TLS) as http,
    ):
        signer = KeySigner(store.credentials.key, BUCKET, endpoint=store.endpoint)
        yield Served(store, clock, tmp_path, signer, http)
