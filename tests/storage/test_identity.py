"""Workload identity: who signs, and a metadata server that is away, slow or without an account."""

import asyncio
import json
import socket
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from google.auth import environment_vars
from google.auth.compute_engine import _metadata

from service.app.storage import archive_for, storage_for
from service.storage.check import check
from service.storage.deadline import AbortableSession
from service.storage.error_text import error_text
from service.storage.port import StorageUnavailable
from tests.contract.refusals import refused
from tests.given_settings import settings
from tests.memory_ledger import memory_service
from tests.patience import eventually
from tests.storage_server import answers, drips_headers, hangs, storage_server
from tests.world import World, settings_for

pytestmark = pytest.mark.server

BUCKETS = {"LIVE_BUCKET": "live-bucket", "TEST_BUCKET": "test-bucket"}
NAME = "uploads/a.pdf"
ACCOUNT = "api@project.iam.gserviceaccount.com"


@pytest.fixture(autouse=True)
def _nobody_here(monkeypatch, tmp_path):
    """Hide what this machine's user has."""
    monkeypatch.delenv(environment_vars.CREDENTIALS, raising=False)
    monkeypatch.setenv(environment_vars.CLOUD_SDK_CONFIG_DIR, str(tmp_path))


@pytest.fixture
async def metadata(monkeypatch):
    """Return a metadata server, which has the account's name and a token."""
    async with storage_server() as one:
        use(monkeypatch, one.endpoint.removeprefix("http://"))
        one.behave = of_account(ACCOUNT)
        yield one


def use(monkeypatch, host: str) -> None:
    """Have google-auth ask this metadata server."""
    monkeypatch.setenv(environment_vars.GCE_METADATA_IP, host)
    monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", host)


def of_account(email: str):
    """Answer as the metadata server of an account's machine."""

    async def behave(reader, writer) -> None:
        while True:
            path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
            found = {"access_token": "token", "expires_in": 3599, "token_type": "Bearer"}
            if "/token" not in path:
                found = {"email": email, "scopes": [], "aliases": ["default"]}
            body = json.dumps(found).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\nmetadata-flavor: Google\r\ncontent-type: application/json\r\n"
                b"content-length: %d\r\n\r\n" % len(body) + body
            )
            await writer.drain()

    return behave


class SigningSession(AbortableSession):
    """Calls an IAM that signs anything."""

    def request(self, method, url, **kwargs) -> requests.Response:
        """Answer what is for IAM, and send on all else."""
        if "iamcredentials" not in url:
            return super().request(method, url, **kwargs)
        response = requests.Response()
        response.status_code = 200
        response._content = b'{"keyId": "k", "signedBlob": "QUJD"}'  # noqa: SLF001 - it has no other way in
        return response


@pytest.fixture
def storage():
    """Return a bucket's storage, whose signer calls an IAM that signs."""
    one = storage_for(settings(**BUCKETS), "live-bucket")
    one.signer.new_session = SigningSession
    yield one
    one.close()


@pytest.mark.usefixtures("metadata")
async def test_a_url_is_signed_for_the_identitys_own_account(storage):
    """Its address is the metadata server's answer, not the `default` by which it is asked for."""
    upload = await storage.signer.sign(NAME, "application/pdf", 100)
    (credential,) = parse_qs(urlsplit(upload.url).query)["X-Goog-Credential"]
    assert credential.partition("/")[0] == ACCOUNT


@pytest.mark.usefixtures("metadata")
async def test_a_url_is_signed_for_the_account_that_is_set(storage):
    """The setting comes before the identity's own account."""
    storage.signer.service_account_email = "signer@project.iam.gserviceaccount.com"
    upload = await storage.signer.sign(NAME, "application/pdf", 100)
    assert "signer%40project" in upload.url


async def test_an_identity_without_an_account_signs_nothing(metadata, storage):
    """The operator is told which setting names one."""
    metadata.behave = of_account("project.svc.id.goog")
    with pytest.raises(StorageUnavailable) as caught:
        await storage.signer.sign(NAME, "application/pdf", 100)
    assert "CLAIM_LEDGER_STORAGE_SERVICE_ACCOUNT" in error_text(caught.value)


async def test_a_service_starts_without_the_metadata_server(monkeypatch, tmp_path):
    """Claims are created; an upload URL is refused as while storage is down."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        use(monkeypatch, f"127.0.0.1:{taken.getsockname()[1]}")
    given = settings_for("postgresql://nobody@127.0.0.1:1/none", tmp_path, **BUCKETS)
    world = World(memory_service(given), tmp_path)
    partner, entity_id = await world.connected()
    assert (await partner.claim(entity_id)).status_code == 201
    upload = {
        "entity_id": entity_id,
        "partner_claim_id": "case-1",
        "filename": "a.pdf",
        "mime_type": "application/pdf",
    }
    answer = await partner.call("POST", "/documents/upload-url", json=upload)
    refused(answer, "service_unavailable")
    for mode in world.service.modes.values():
        mode.storage.close()


async def test_the_check_says_that_there_are_no_credentials(metadata):
    """Neither a key file nor a metadata server that has any."""
    metadata.behave = answers(503, b"")
    given = settings(**BUCKETS)
    (row,) = await check(lambda: storage_for(given, "live-bucket"), "live-bucket")
    assert (row.check, row.result) == ("bucket", "failed")
    assert "set CLAIM_LEDGER_STORAGE_KEY_FILE" in row.detail


@pytest.mark.parametrize("behave", [hangs, drips_headers])
async def test_a_slow_metadata_server_holds_up_nothing_else(metadata, behave):
    """An archive's call waits in a thread while the loop goes on; cancelled, its thread ends."""
    metadata.behave = behave
    archive = archive_for(settings(ARCHIVE_URL="gs://archive-bucket/x"))
    assert archive is not None
    call = asyncio.create_task(archive.get("checkpoints/a"))
    await eventually(lambda: metadata.open)  # a loop that stood still would not serve it
    assert not call.done()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await eventually(lambda: not metadata.open)
    archive.close()
