"""The requests of the cloud's client library, on our store and on an independent emulator."""

import asyncio
import base64
import hashlib
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import contextmanager
from itertools import product

import google_crc32c
import pytest
import requests
from google.api_core.exceptions import NotFound, PreconditionFailed, RequestRangeNotSatisfiable
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Bucket, Client

from tests.patience import until
from tests.processes import free_port, started
from tests.storage.local import BUCKET, Served
from tests.tables import every_row

pytestmark = pytest.mark.server

PREFIX = "entities/ent_1/claims/ck_1/documents/"


class ModeContext:
    """One server: its bucket, another that does not exist, and a way to make objects."""

    def __init__(
        self, bucket: Callable[[str], Bucket], upload: Callable[[str, bytes], Awaitable[None]]
    ) -> None:
        self.bucket = bucket(BUCKET)
        self.missing = bucket("no-such-bucket")
        self.upload = upload


@contextmanager
def emulator(directory):
    """Run the independent emulator; return its address."""
    port = free_port()
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--in-memory",
               "--host", "127.0.0.1", "--port", str(port), "--default-bucket", BUCKET]  # fmt: skip
    endpoint = f"http://127.0.0.1:{port}"
    with started(
        command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:

        def is_up() -> bool:
            assert process.poll() is None, "the emulator ended while starting"
            return _answers(endpoint)

        until(is_up)
        yield endpoint


def _answers(endpoint: str) -> bool:
    try:
        return requests.get(f"{endpoint}/storage/v1/b/{BUCKET}", timeout=1).ok
    except requests.RequestException:
        return False


@pytest.fixture(params=["ours", "emulator"])
async def side(request, served: Served, tmp_path) -> AsyncGenerator[ModeContext, None]:
    """Return our store or the emulator."""
    if request.param == "ours":

        async def put(name: str, content: bytes) -> None:
            assert (await served.put(name, content)).status_code == 200

        yield ModeContext(served.bucket, put)
        return
    with emulator(tmp_path) as endpoint:
        options = {"api_endpoint": endpoint}
        client = Client("none", credentials=AnonymousCredentials(), client_options=options)

        async def upload(name: str, content: bytes) -> None:
            blob = client.bucket(BUCKET).blob(name)
            await asyncio.to_thread(blob.upload_from_string, content, "application/pdf")

        yield ModeContext(client.bucket, upload)


async def test_metadata_matches_the_upload(side: ModeContext):
    """Size, type, generation and both checksums."""
    await side.upload(f"{PREFIX}a.pdf", b"%PDF-1.7")
    blob = await asyncio.to_thread(side.bucket.get_blob, f"{PREFIX}a.pdf")
    md5 = hashlib.md5(b"%PDF-1.7", usedforsecurity=False).digest()
    assert (blob.name, blob.size, blob.content_type) == (f"{PREFIX}a.pdf", 8, "application/pdf")
    assert blob.md5_hash == base64.b64encode(md5).decode()
    crc32c = google_crc32c.value(b"%PDF-1.7").to_bytes(4, "big")
    assert blob.crc32c == base64.b64encode(crc32c).decode()
    assert isinstance(blob.generation, int)
    assert blob.time_created is not None


async def test_a_missing_object_is_404(side: ModeContext):
    """`get_blob` returns None."""
    assert await asyncio.to_thread(side.bucket.get_blob, "nothing") is None
    assert await asyncio.to_thread(side.bucket.blob("nothing").exists) is False
    with pytest.raises(NotFound):
        await asyncio.to_thread(side.bucket.blob("nothing").download_as_bytes)


async def test_a_missing_bucket_is_404(side: ModeContext):
    """In itself and in its listing."""
    await asyncio.to_thread(side.bucket.reload)
    assert await asyncio.to_thread(side.bucket.exists) is True
    assert await asyncio.to_thread(side.missing.exists) is False
    with pytest.raises(NotFound):
        await asyncio.to_thread(side.missing.reload)
    with pytest.raises(NotFound):
        await asyncio.to_thread(lambda: list(side.missing.list_blobs(prefix=PREFIX)))


async def test_listing_by_prefix(side: ModeContext):
    """A prefix matches names byte for byte, and names come in their order."""
    for name in [f"{PREFIX}b.pdf", f"{PREFIX}a.pdf", "entities/ent_1/claims/ck_10/x.pdf"]:
        await side.upload(name, b"x")
    names = await asyncio.to_thread(
        lambda: [blob.name for blob in side.bucket.list_blobs(prefix=PREFIX)]
    )
    assert names == [f"{PREFIX}a.pdf", f"{PREFIX}b.pdf"]
    assert await asyncio.to_thread(lambda: list(side.bucket.list_blobs(prefix="other/"))) == []


async def test_a_download_equals_the_upload(side: ModeContext):
    """The library compares the checksum."""
    content = bytes(range(256)) * 3
    await side.upload(f"{PREFIX}é a b.pdf", content)
    blob = side.bucket.blob(f"{PREFIX}é a b.pdf")
    assert await asyncio.to_thread(blob.download_as_bytes) == content
    await asyncio.to_thread(blob.reload)
    assert await asyncio.to_thread(blob.download_as_bytes) == content  # by its media link


async def test_a_range_is_served_alone(served: Served):
    """First and last byte included, cut at the object's end."""
    content = bytes(range(256)) * 3
    await served.put(f"{PREFIX}a.pdf", content)
    blob = served.bucket().blob(f"{PREFIX}a.pdf")
    for first, last in ((0, 9), (100, 100), (700, 5000)):
        part = await asyncio.to_thread(
            blob.download_as_bytes, start=first, end=last, raw_download=True, checksum=None
        )
        assert part == content[first : last + 1]
    with pytest.raises(RequestRangeNotSatisfiable):
        await asyncio.to_thread(blob.download_as_bytes, start=768, end=800)


async def test_deleting_twice_is_404(side: ModeContext):
    """A deleted object is gone."""
    await side.upload(f"{PREFIX}a.pdf", b"x")
    blob = side.bucket.blob(f"{PREFIX}a.pdf")
    await asyncio.to_thread(blob.delete)
    assert not await asyncio.to_thread(blob.exists)
    with pytest.raises(NotFound):
        await asyncio.to_thread(blob.delete)


async def test_deletion_of_a_generation(served: Served):
    """Only the generation that was looked at is deleted (the emulator ignores the condition)."""
    await served.put(f"{PREFIX}a.pdf", b"x")
    bucket = served.bucket()
    blob = await asyncio.to_thread(bucket.get_blob, f"{PREFIX}a.pdf")
    other = bucket.blob(blob.name)
    with pytest.raises(PreconditionFailed):
        await asyncio.to_thread(other.delete, if_generation_match=blob.generation + 1)
    await asyncio.to_thread(other.delete, if_generation_match=blob.generation)
    assert served.files() == []


async def test_listing_pages_are_complete(served: Served):
    """Pages follow without gap or repetition while names are added."""
    for number in range(7):
        await served.put(f"{PREFIX}{number}", b"x")
    first = served.bucket().list_blobs(prefix=PREFIX, page_size=3)
    pages = first.pages
    seen = [blob.name for blob in await asyncio.to_thread(next, pages)]
    await served.put(f"{PREFIX}0b", b"x")
    await served.put(f"{PREFIX}3b", b"x")
    for page in await asyncio.to_thread(list, pages):
        seen += [blob.name for blob in page]
    assert [name.removeprefix(PREFIX) for name in seen] == ["0", "1", "2", "3", "3b", "4", "5", "6"]


async def test_permissions_of_the_token(served: Served):
    """The token's holder can read, list and delete, and not create."""
    asked = ["storage.objects.create", "storage.objects.get", "storage.objects.list"]
    granted = await asyncio.to_thread(served.bucket().test_iam_permissions, asked)
    assert granted == asked[1:]


STRANGERS = (None, b"Bearer x", b"Basic eDp4", b"Bearer \xe9")
PATHS = (
    f"/storage/v1/b/{BUCKET}",
    f"/storage/v1/b/{BUCKET}/o",
    f"/storage/v1/b/{BUCKET}/o/x",
    f"/download/storage/v1/b/{BUCKET}/o/x?alt=media",
    "/storage/v1/b/other",
    "/storage/v1/nothing",
)
UNKNOWN = (
    ("GET", "/o?maxResults=0", 400),
    ("GET", "/o?maxResults=x", 400),
    ("GET", "/o?pageToken=%00", 400),
    ("GET", "/o?pageToken=_w==", 400),
    ("GET", "/o?delimiter=/", 501),
    ("GET", "/o/x?ifMetagenerationMatch=2", 501),
    ("GET", "/o/x?generation=1", 404),
    ("GET", "/o/x?ifGenerationMatch=1", 412),
    ("POST", "/o", 405),
    ("PATCH", "/o/x", 405),
    ("DELETE", "", 405),
    ("GET", "/acl", 404),
)


async def test_nothing_is_read_without_the_token(served: Served):
    """No path of the JSON API reveals anything."""
    await served.put("x", b"secret")
    with every_row() as row:
        for path, authorization in product(PATHS, STRANGERS):
            headers = {} if authorization is None else {"authorization": authorization}
            with row(path, authorization):
                response = await served.http.get(served.store.endpoint + path, headers=headers)
                assert (response.status_code, response.json()["error"]["code"]) == (401, 401)


async def test_unknown_parameters_are_refused(served: Served):
    """A parameter that would change the answer is never ignored."""
    await served.put("x", b"x")
    headers = {"authorization": f"Bearer {served.store.credentials.token}"}
    with every_row() as row:
        for method, path, status in UNKNOWN:
            url = f"{served.store.endpoint}/storage/v1/b/{BUCKET}{path}"
            with row(method, path):
                response = await served.http.request(method, url, headers=headers)
                assert (response.status_code, response.json()["error"]["code"]) == (status, status)


async def test_media_beside_metadata(served: Served):
    """`alt=media` also returns the bytes at the metadata's address."""
    await served.put("x", b"bytes")
    url = f"{served.store.endpoint}/storage/v1/b/{BUCKET}/o/x?alt=media"
    headers = {"authorization": f"Bearer {served.store.credentials.token}"}
    response = await served.http.get(url, headers=headers)
    assert (response.content, response.headers["content-length"]) == (b"bytes", "5")
