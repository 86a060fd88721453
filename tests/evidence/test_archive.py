"""One contract for every archive: a directory, and a bucket."""

import asyncio
import fcntl
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import AsyncGenerator, Iterator
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest
from gcp_storage_emulator.exceptions import NotFound
from gcp_storage_emulator.handlers import objects
from gcp_storage_emulator.server import create_server
from google.oauth2.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from service.app.storage import archive_for, tiles_for
from service.archive import directory
from service.archive.bucket import BucketArchive
from service.archive.directory import DirectoryArchive
from service.archive.port import Archive, ArchiveUnavailable, ObjectTooLarge, parts_of
from service.storage.google import GoogleObjectStore
from tests.evidence.checkpointing import directory_at
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS
from tests.processes import free_port
from tests.storage_server import answers, storage_server
from tests.world import settings_for

pytestmark = pytest.mark.server

NAME = "checkpoints/example.com/live/00000000000000000007.txt"
BUCKET = "evidence"


@pytest.fixture(scope="module")
def emulator() -> Iterator[str]:
    """Return a storage emulator, extended by the one precondition that it lacks."""
    inner, lock = objects._multipart_upload, threading.Lock()  # noqa: SLF001 - it has no plug

    def conditionally(request, response, storage):
        with lock:
            bucket, name = request.params["bucket_name"], request.data["meta"]["name"]
            try:
                generation = storage.get_file_obj(bucket, name)["generation"]
            except NotFound:
                generation = "0"
            if request.query["ifGenerationMatch"] == [generation]:
                inner(request, response, storage)
            else:
                response.status = HTTPStatus.PRECONDITION_FAILED

    objects._multipart_upload = conditionally  # noqa: SLF001 - as above
    port = free_port()
    server = create_server("127.0.0.1", port, in_memory=True)
    server.start()
    endpoint = f"http://127.0.0.1:{port}"
    httpx.post(
        f"{endpoint}/storage/v1/b", json={"name": BUCKET}, timeout=PATIENCE_SECONDS, verify=NO_TLS
    ).raise_for_status()
    yield endpoint
    server.stop()
    objects._multipart_upload = inner  # noqa: SLF001 - as above


def bucket_at(
    endpoint: str,
    bucket: str = BUCKET,
    prefix: str = "",
    deadline_seconds: float = PATIENCE_SECONDS,
) -> BucketArchive:
    """Return the archive in a bucket at an endpoint."""
    return BucketArchive(
        lambda: GoogleObjectStore(
            Credentials("token"), bucket, endpoint=endpoint, deadline_seconds=deadline_seconds
        ),
        bucket,
        prefix,
    )


@pytest.fixture(params=["directory", "bucket"])
async def place(request, tmp_path) -> AsyncGenerator[Archive]:
    """Return an empty place of each kind."""
    if request.param == "directory":
        yield directory_at(tmp_path / "published")
        return
    one = bucket_at(request.getfixturevalue("emulator"), prefix=f"{tmp_path.name}/of ours")
    yield one
    one.close()


async def test_a_stored_object_can_be_read(place):
    """It is returned byte for byte; an absent name gives None."""
    content = bytes(range(256)) * 40
    assert await place.get(NAME) is None
    assert await place.put(NAME, content) is True
    assert await place.get(NAME) == content
    assert await place.get(f"{NAME}/below") is None
    assert await place.get("checkpoints/example.com") is None


async def test_an_object_is_read_up_to_a_size(place):
    """A larger one, which somebody else has put there, is refused by name."""
    await place.put(NAME, bytes(1 << 20))
    assert len(await place.get(NAME, 1 << 20)) == 1 << 20
    with pytest.raises(ObjectTooLarge, match=r"00000000000000000007\.txt: has "):
        await place.get(NAME, (1 << 20) - 1)
    assert await place.replace(NAME, b"mine", b"known") is False


async def test_a_sparse_file_of_a_gigabyte_is_not_read(tmp_path):
    """It takes no room on the disk, and none in memory."""
    place = directory_at(tmp_path / "published")
    await place.put(NAME, b"x")
    os.truncate(tmp_path / "published" / NAME, 1 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(ObjectTooLarge):
            await place.get(NAME)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


async def test_a_name_is_written_once(place):
    """The first content stays, and later writers are told; this holds for empty objects too."""
    assert await place.put("mail/onb_1", b"") is True
    assert await place.put("mail/onb_1", b"second") is False
    assert await place.get("mail/onb_1") == b""


async def test_of_concurrent_puts_one_is_kept(place):
    """One put returns True, and its content is stored."""
    contents = [str(number).encode() * 1000 for number in range(8)]
    kept = await asyncio.gather(*(place.put(NAME, one) for one in contents))
    assert kept.count(True) == 1
    assert await place.get(NAME) == contents[kept.index(True)]


async def test_an_object_can_be_replaced(place):
    """Whoever reads it finds one content or the other, also while several replace it at once."""
    first = b"first\n"
    assert await place.replace("log/checkpoint", first, None) is True
    assert await place.get("log/checkpoint") == first
    contents = [str(number).encode() * 1000 for number in range(8)]
    replacing = asyncio.gather(
        *(place.replace("log/checkpoint", one, first) for one in contents), return_exceptions=True
    )
    read = [await place.get("log/checkpoint") for _ in range(4)]
    replaced = await replacing
    assert replaced.count(True) == 1
    assert set(read) <= {first, contents[replaced.index(True)]}
    assert await place.get("log/checkpoint") == contents[replaced.index(True)]
    assert await place.put("log/checkpoint", b"late") is False
    assert await place.names("log/") == ["log/checkpoint"]


@pytest.mark.parametrize("known", [None, b"older", b""])
async def test_what_somebody_else_has_put_there_stays(place, known):
    """A text is only replaced by whoever knows what it is."""
    await place.put("log/checkpoint", b"newer")
    assert await place.replace("log/checkpoint", b"mine", known) is False
    assert await place.get("log/checkpoint") == b"newer"
    if known is not None:
        assert await place.replace("log/none", b"mine", known) is False
        assert await place.get("log/none") is None


async def test_names_are_listed_by_prefix(place):
    """They are sorted; a prefix need not end at a slash, and a start can be given."""
    names = ["a/b/2", "a/b/1", "a/c", "a/bc/1", "d"]
    for name in names:
        await place.put(name, b"x")
    assert await place.names("") == sorted(names)
    assert await place.names("a/b") == ["a/b/1", "a/b/2", "a/bc/1"]
    assert await place.names("a/b/") == ["a/b/1", "a/b/2"]
    assert await place.names("a/", after="a/b/1") == ["a/b/2", "a/bc/1", "a/c"]
    assert await place.names("a/", after="a/b/1x") == ["a/b/2", "a/bc/1", "a/c"]
    assert await place.names("nowhere/else") == []
    assert await place.folders("a/") == ["a/b", "a/bc"]
    assert await place.folders("nowhere/") == []


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "a/.b", ".", "a\0b", "a\nb"]
)
async def test_a_name_outside_the_archive_is_refused(place, name):
    """It is refused before anything is touched."""
    with pytest.raises(ValueError, match="no name to publish under"):
        await place.put(name, b"x")
    with pytest.raises(ValueError, match="no name to publish under"):
        await place.get(name)
    assert await place.names("") == []


@given(st.text(max_size=20))
def test_paths_stay_within_the_directory(name):
    """For any name the path lies below the directory, or it is refused."""
    try:
        parts = parts_of(name)
    except ValueError:
        return
    path = Path(os.path.normpath(Path("/published").joinpath(*parts)))
    assert path != Path("/published")
    assert path.is_relative_to("/published")
    assert "/".join(parts) == name


async def test_files_are_private(tmp_path):
    """Only the owner can read them, and no temporary file is left, not even by a second put."""
    place = directory_at(tmp_path / "published")
    for _ in range(2):
        await place.put("a/b", b"x")
    found = {
        str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")
    }
    assert found == {"published": 0o700, "published/a": 0o700, "published/a/b": 0o600}


async def test_leftovers_of_a_crash_are_not_listed(tmp_path):
    """A file that was not yet linked to its name does not appear."""
    place = DirectoryArchive(tmp_path)
    await place.put("a/b", b"x")
    (tmp_path / "a" / ".0123456789abcdef").write_bytes(b"half")
    assert await place.names("") == ["a/b"]


async def test_a_process_that_stopped_while_it_replaced_keeps_others_out(tmp_path):
    """It may go on at any moment: nobody waits for it, and nothing is left behind."""
    place = directory_at(tmp_path / "published")
    assert await place.replace("a", b"x", None) is True
    with (tmp_path / "published/.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ArchiveUnavailable, match="another process is writing there"):
            await place.replace("a", b"y", b"x")
    assert await place.replace("a", b"y", b"x") is True
    assert sorted(one.name for one in (tmp_path / "published").iterdir()) == [".lock", "a"]


@pytest.mark.parametrize("name", ["mistyped", "file", "file/below"])
async def test_a_missing_directory_is_an_error(tmp_path, name):
    """It is mistyped or not mounted: neither created nor taken for an empty archive."""
    (tmp_path / "file").write_text("")
    place = DirectoryArchive(tmp_path / name)
    calls = [
        lambda: place.put("a", b"x"),
        lambda: place.replace("a", b"x", None),
        lambda: place.get("a"),
    ]
    for call in (*calls, lambda: place.names(""), lambda: place.folders("a/")):
        with pytest.raises(ArchiveUnavailable, match=f"no directory {tmp_path / name}: mount"):
            await call()
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


async def test_an_unreadable_file_is_an_error(tmp_path):
    """The error gives path and reason."""
    place = directory_at(tmp_path / "published")
    await place.put("a", b"x")
    with pytest.raises(ArchiveUnavailable, match=r"published/a/b: Not a directory"):
        await place.put("a/b/c", b"x")
    with pytest.raises(ArchiveUnavailable, match="File name too long"):
        await place.put("n" * 300, b"x")


async def test_a_missing_bucket_is_an_error(emulator):
    """Its objects do not count as absent."""
    place = bucket_at(emulator, "no-such-bucket")
    calls = (place.put(NAME, b"x"), place.replace(NAME, b"x", None), place.get(NAME))
    for call in (*calls, place.names("")):
        with pytest.raises(ArchiveUnavailable, match="gs://no-such-bucket: there is no bucket"):
            await call
    place.close()


@pytest.mark.parametrize(
    ("status", "text"), [(403, "may not do this"), (500, "InternalServerError"), (200, "gs://")]
)
async def test_refusals_of_a_bucket_are_one_error(status, text):
    """Every unexpected answer becomes the same error."""
    async with storage_server() as server:
        server.behave = answers(status, b"{")
        place = bucket_at(server.endpoint, deadline_seconds=2.0)  # what fails is tried again
        for call in (place.names("checkpoints/"), place.replace("checkpoint", b"x", None)):
            with pytest.raises(ArchiveUnavailable, match=text):
                await call
        place.close()


def test_settings_choose_the_archive(database_url, tmp_path):
    """A file URL (percent-decoded) is a directory, a gs URL a bucket; no URL means none."""
    directory = tmp_path / "with space"
    by_file = settings_for(database_url, tmp_path, ARCHIVE_URL=directory.as_uri())
    by_bucket = settings_for(database_url, tmp_path, ARCHIVE_URL="gs://a-bucket/some/prefix/")
    with_tiles = settings_for(
        database_url, tmp_path, ARCHIVE_URL=directory.as_uri(), TILES_URL="file:///tiles"
    )
    one = archive_for(by_file)
    assert isinstance(one, DirectoryArchive)
    assert asyncio.run(one.put("a", b"x"))
    assert (directory / "a").read_bytes() == b"x"
    assert isinstance(archive_for(by_bucket), BucketArchive)
    assert archive_for(settings_for(database_url, tmp_path)) is None
    assert isinstance(tiles_for(with_tiles), DirectoryArchive)
    assert tiles_for(by_file) is None


async def test_a_call_to_a_directory_that_hangs_ends(tmp_path, monkeypatch):
    """So does one that waits for a thread. Those that hang still end once the directory is back."""
    monkeypatch.setattr(directory, "CALL_SECONDS_MAX", 0.05)
    back = threading.Event()
    monkeypatch.setattr(directory, "_read", lambda *_asked: b"late" * back.wait())
    place = directory_at(tmp_path / "hanging")
    calls = (place.get("file") for _ in range(2 * directory.THREADS))
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert {str(one) for one in ends} == {f"{tmp_path}/hanging does not answer in time"}
    back.set()
    monkeypatch.setattr(directory, "CALL_SECONDS_MAX", PATIENCE_SECONDS)
    assert await place.get("file") == b"late"


def test_a_process_ends_while_a_directory_hangs(tmp_path):
    """Its threads are not waited for: a worker that was told to stop never ended."""
    command = f"""
import asyncio, pathlib, threading
from service.archive import directory
async def main():
    hangs = threading.Event()
    directory._read = lambda *_asked: hangs.set() or threading.Event().wait()
    place = directory.DirectoryArchive(pathlib.Path({str(tmp_path)!r}))
    call = asyncio.create_task(place.get("file"))
    while not hangs.is_set():
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    place.close()
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", command], check=True, timeout=PATIENCE_SECONDS)


async def test_a_directory_that_hangs_holds_up_no_other(tmp_path, monkeypatch):
    """Its calls wait: there can be more of them than a process has threads for everything else."""
    hanging, other = directory_at(tmp_path / "hanging"), directory_at(tmp_path / "other")
    await other.put(NAME, b"here")
    back = threading.Event()

    def read(path: Path, _bytes_max: int) -> bytes:
        return path.read_bytes() if "hanging" not in path.parts else b"late" * back.wait()

    monkeypatch.setattr(directory, "_read", read)
    calls = [asyncio.create_task(hanging.get("file")) for _ in range(40)]
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await other.get(NAME) == b"here"
            assert await asyncio.to_thread(str) == ""
        assert not any(call.done() for call in calls)
    finally:
        back.set()
    assert await asyncio.gather(*calls) == [b"late"] * 40
    hanging.close()
    assert await hanging.get("file") == b"late", "a later call opens new ones"
