"""Objects on disk, under a hash of the name and never the name.

    lock                      held by the one process that serves the directory
    incoming/<random>         bytes being received, swept at start
    <bucket>/<hash>.<n>       the bytes of generation n
    <bucket>/<hash>.json      the object; it names the generation

The JSON file is the commit: it is linked into place, which fails when one is there, after the bytes
and it are on the disk. A crash leaves at most bytes that no JSON file names; they are swept too.
"""

import fcntl
import re
import secrets
import threading
from collections.abc import Collection
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, BinaryIO, Final

import msgspec

from service.cli.dev.faults import DevFault
from service.cli.dev.gcs.incoming import Incoming
from service.core.clock import Clock, timestamp
from service.core.files import flush_folder

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
_META: Final = ".json"


class DiskObject(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an object; the file beside its bytes holds this as JSON.

    `generation` is in microseconds of the epoch and never repeats; `md5` and `crc32c` are base64,
    as the cloud gives them; `time_created` is RFC 3339 in UTC.
    """

    name: str
    bucket: str
    size: int
    content_type: str
    generation: int
    md5: str
    crc32c: str
    time_created: str


class LocalStoreError(DevFault):
    """The directory cannot be used; the text says why, for a person."""


class ObjectExists(Exception):
    """The name is taken; a signer without delete permission cannot overwrite it."""


class DiskStore:
    """The buckets of one directory. One process at a time may open it."""

    def __init__(self, directory: Path, buckets: Collection[str], clock: Clock) -> None:
        """Open the directory, creating it if need be, and sweep what a crash left.

        Raises:
            LocalStoreError: another process holds it, a bucket's name or a file is invalid.

        """
        for bucket in buckets:
            if not _BUCKET.fullmatch(bucket):
                raise LocalStoreError(f"{bucket!r} is not a valid bucket name")
        self._directory = directory
        self._clock = clock
        self._mutex = threading.Lock()  # over the objects and the last generation
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(directory)
        try:
            self._incoming = directory / "incoming"
            self._incoming.mkdir(mode=0o700, exist_ok=True)
            for left in self._incoming.iterdir():
                left.unlink()
            self._generation = 0  # the newest of all objects
            self._objects = {bucket: self._opened(bucket) for bucket in buckets}
        except BaseException:  # Ctrl-C must not leave the directory locked
            self._lock.close()
            raise

    def close(self) -> None:
        """Release the directory."""
        self._lock.close()

    def has_bucket(self, bucket: str) -> bool:
        """Return whether there is such a bucket."""
        return bucket in self._objects

    def get(self, bucket: str, name: str) -> DiskObject | None:
        """Return an object of a bucket that exists."""
        with self._mutex:
            return self._objects[bucket].get(name)

    def page(
        self, bucket: str, prefix: str, after: str | None, count: int
    ) -> tuple[list[DiskObject], str | None]:
        """Return up to `count` objects past the name `after`, and the last name if more follow.

        Of a bucket that exists. Code points sort as UTF-8 bytes do, which is the cloud's order.
        """
        with self._mutex:
            objects = self._objects[bucket]
            names = (name for name in objects if after is None or name > after)
            rest = sorted(name for name in names if name.startswith(prefix))
            found = [objects[name] for name in rest[:count]]
        return found, found[-1].name if len(rest) > count else None

    def receive(self) -> Incoming:
        """Return a file for bytes to receive; leaving its context drops what was not published."""
        return Incoming(self._incoming / secrets.token_hex(16))

    def publish(self, incoming: Incoming, bucket: str, name: str, content_type: str) -> DiskObject:
        """Atomically publish the received bytes as an object; raises ObjectExists.

        Blocks until the disk has them. Safe in several threads: of two for one name one wins.
        """
        now = self._clock()
        stored = DiskObject(
            name=name,
            bucket=bucket,
            size=incoming.size,
            content_type=content_type,
            generation=self._next_generation(now),
            md5=incoming.md5,
            crc32c=incoming.crc32c,
            time_created=timestamp(now),
        )
        data, meta = self._data(stored), self._meta(stored)
        incoming.move_to(data)
        flush_folder(meta.parent)
        try:
            with self.receive() as written:
                written.write(msgspec.json.encode(stored))
                written.link_to(meta)
        except FileExistsError as error:
            data.unlink()
            raise ObjectExists(name) from error
        flush_folder(meta.parent)
        with self._mutex:
            self._objects[bucket][name] = stored
        return stored

    def open(self, stored: DiskObject) -> BinaryIO:
        """Open an object's bytes; they stay readable when it is deleted meanwhile."""
        return self._data(stored).open("rb")

    def delete(self, stored: DiskObject) -> bool:
        """Delete an object that `get` returned; False if it is gone already."""
        with self._mutex:
            if self._objects[stored.bucket].get(stored.name) != stored:
                return False
            del self._objects[stored.bucket][stored.name]
        meta = self._meta(stored)
        meta.unlink()
        flush_folder(meta.parent)
        self._data(stored).unlink()
        return True

    def _next_generation(self, now: datetime) -> int:
        with self._mutex:
            self._generation = max(self._generation + 1, int(now.timestamp() * 1_000_000))
            return self._generation

    def _opened(self, bucket: str) -> dict[str, DiskObject]:
        folder, objects = self._directory / bucket, dict[str, DiskObject]()
        folder.mkdir(mode=0o700, exist_ok=True)
        for meta in folder.glob(f"*{_META}"):
            stored = _read(meta)
            if stored.bucket != bucket or self._meta(stored) != meta:
                raise LocalStoreError(f"{meta} is not where its object belongs")
            if not self._data(stored).exists():
                raise LocalStoreError(f"the bytes of {meta} are missing")
            objects[stored.name] = stored
            self._generation = max(self._generation, stored.generation)
        known = {self._data(stored) for stored in objects.values()}
        for file in folder.iterdir():
            if file.suffix != _META and file not in known:
                file.unlink()
        return objects

    def _data(self, stored: DiskObject) -> Path:
        return self._meta(stored).with_suffix(f".{stored.generation}")

    def _meta(self, stored: DiskObject) -> Path:
        hashed = sha256(stored.name.encode()).hexdigest()
        return self._directory / stored.bucket / f"{hashed}{_META}"


def _locked(directory: Path) -> IO[str]:
    file = (directory / "lock").open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise LocalStoreError(f"{directory} is in use by another process") from error
    return file


def _read(meta: Path) -> DiskObject:
    try:
        return msgspec.json.decode(meta.read_bytes(), type=DiskObject)
    except msgspec.DecodeError as error:
        raise LocalStoreError(f"{meta} is damaged") from error
