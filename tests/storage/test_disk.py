import json
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime

import pytest

from service.cli.dev.gcs.disk import DiskStore, LocalStoreError, ObjectExists

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
BUCKET = "test-documents"


def opened(directory, buckets=(BUCKET,)):
    """Open a store that is closed at the end of the block."""
    return closing(DiskStore(directory, buckets, lambda: NOW))


def add(store: DiskStore, name: str, content: bytes = b"x", bucket: str = BUCKET):
    """Store an object."""
    with store.receive() as incoming:
        incoming.write(content)
        return store.publish(incoming, bucket, name, "application/pdf")


def files(directory) -> list[str]:
    """Return all files but the lock, relative to the directory."""
    found = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if path.name != "lock")


def test_objects_outlive_the_process(tmp_path):
    """Published objects are there after a restart, with the same metadata."""
    with opened(tmp_path) as store:
        stored = add(store, "a/b.pdf", b"bytes")
    with opened(tmp_path) as store:
        assert store.get(BUCKET, "a/b.pdf") == stored
        with store.open(stored) as file:
            assert file.read() == b"bytes"


def test_nothing_is_overwritten(tmp_path):
    """A second object of a name is refused and leaves nothing, after a restart too."""
    with opened(tmp_path) as store:
        add(store, "a", b"one")
        before = files(tmp_path)
        with pytest.raises(ObjectExists):
            add(store, "a", b"two")
    with opened(tmp_path) as store, pytest.raises(ObjectExists):
        add(store, "a", b"two")
    assert files(tmp_path) == before


def test_generations_never_repeat(tmp_path):
    """They rise while the clock stands still, and across restarts."""
    with opened(tmp_path) as store:
        first, second = add(store, "a").generation, add(store, "b").generation
    with opened(tmp_path) as store:
        third = add(store, "c").generation
    assert first == int(NOW.timestamp() * 1_000_000)
    assert (second, third) == (first + 1, first + 2)


def test_what_is_not_published_is_dropped(tmp_path):
    """Leaving the context without publishing leaves no file."""
    with opened(tmp_path) as store, store.receive() as incoming:
        incoming.write(b"half")
        assert len(files(tmp_path)) == 1
    assert files(tmp_path) == []


def test_leftovers_of_a_crash_are_swept(tmp_path):
    """Incoming bytes and bytes without metadata are removed at the next start."""
    with opened(tmp_path) as store:
        add(store, "a")
        kept = files(tmp_path)
    (tmp_path / "incoming" / "0123").write_bytes(b"half")
    (tmp_path / BUCKET / f"{'0' * 64}.17").write_bytes(b"published without metadata")
    with opened(tmp_path):
        assert files(tmp_path) == kept


@pytest.mark.server
def test_a_killed_process_leaves_whole_objects_only(tmp_path):
    """After SIGKILL during uploads each name has all of its bytes or none."""
    script = (
        "import sys, pathlib\n"
        "from tests.storage.test_disk import opened, add\n"
        "with opened(pathlib.Path(sys.argv[1])) as store:\n"
        "    for n in range(10**6):\n"
        "        add(store, str(n), b'%06d' % n * 1000)\n"
        "        print(n, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        said = [int(process.stdout.readline()) for _ in range(20)]
        process.kill()
    with opened(tmp_path) as store:
        found, _ = store.page(BUCKET, "", None, 1000)
        assert {str(n) for n in said} <= {stored.name for stored in found}
        for stored in found:
            with store.open(stored) as file:
                assert file.read() == b"%06d" % int(stored.name) * 1000
    assert len(files(tmp_path)) == 2 * len(found)


def test_a_deleted_object_is_gone(tmp_path):
    """Open readers can finish, and it cannot be deleted twice."""
    with opened(tmp_path) as store:
        stored = add(store, "a", b"bytes")
        with store.open(stored) as file:
            assert store.delete(stored) is True
            assert file.read() == b"bytes"
        assert store.delete(stored) is False
        assert store.get(BUCKET, "a") is None
        assert files(tmp_path) == []
        again = add(store, "a")
        assert store.delete(stored) is False
        assert store.get(BUCKET, "a") == again


def test_pages_are_in_the_order_of_utf8(tmp_path):
    """Names sort by their bytes; a page ends with the next one's start-after name."""
    names = ["a", "a/", "a0", "b", "é", "\uffff", "\U0001f600"]
    with opened(tmp_path) as store:
        for name in reversed(names):
            add(store, name)
        first, last = store.page(BUCKET, "", None, 4)
        rest, end = store.page(BUCKET, "", last, 4)
        assert [one.name for one in [*first, *rest]] == sorted(names, key=str.encode)
        assert (last, end) == ("b", None)
        assert [one.name for one in store.page(BUCKET, "a", None, 9)[0]] == ["a", "a/", "a0"]
        assert store.page(BUCKET, "a", "a0", 9) == ([], None)


def test_buckets_are_separate(tmp_path):
    """The same name in two buckets is two objects."""
    with opened(tmp_path, [BUCKET, "live-documents"]) as store:
        add(store, "a", b"one")
        add(store, "a", b"two", "live-documents")
        one, two = store.get(BUCKET, "a"), store.get("live-documents", "a")
        assert one is not None
        assert two is not None
        assert one.md5 != two.md5
        assert not store.has_bucket("other-documents")


@pytest.mark.parametrize("bucket", ["..", "a/b", "Upper", "ab", "x" * 64, "-ab", "abc\n", ""])
def test_buckets_have_the_clouds_names(tmp_path, bucket):
    """A bucket's name becomes a folder, so only the cloud's names are accepted."""
    with pytest.raises(LocalStoreError, match="not a valid bucket name"):
        DiskStore(tmp_path, [bucket], lambda: NOW)


def test_one_process_has_the_directory(tmp_path):
    """A second store on the directory is refused until the first has closed."""
    with opened(tmp_path), pytest.raises(LocalStoreError, match="in use"):
        DiskStore(tmp_path, [BUCKET], lambda: NOW)
    with opened(tmp_path):
        assert files(tmp_path) == []


def test_damage_is_named(tmp_path):
    """Missing bytes or unreadable metadata stop the start instead of being hidden."""
    with opened(tmp_path) as store:
        stored = add(store, "a")
    meta = next((tmp_path / BUCKET).glob("*.json"))
    content = meta.read_bytes()
    meta.write_bytes(content[:-5])
    with pytest.raises(LocalStoreError, match="is damaged"):
        DiskStore(tmp_path, [BUCKET], lambda: NOW)
    meta.write_bytes(json.dumps(json.loads(content) | {"name": "b"}).encode())
    with pytest.raises(LocalStoreError, match="not where its object belongs"):
        DiskStore(tmp_path, [BUCKET], lambda: NOW)
    meta.write_bytes(content)
    meta.with_suffix(f".{stored.generation}").unlink()
    with pytest.raises(LocalStoreError, match="are missing"):
        DiskStore(tmp_path, [BUCKET], lambda: NOW)


def test_files_are_the_owners_alone(tmp_path):
    """Documents are personal data: no other user can read them."""
    with opened(tmp_path / "objects") as store:
        add(store, "a")
    for path in (tmp_path / "objects").rglob("*"):
        if path.name != "lock":
            assert path.stat().st_mode & 0o077 == 0, path
