"""The last event of each stream, while a log is read in its order."""

import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from uuid import UUID

IN_MEMORY_MAX: Final = 100_000
"""Streams that are kept in memory: some 130 bytes each, measured at half a million."""
_APPEND_ID_BITS: Final = 64
_APPEND_ID_MASK: Final = (1 << _APPEND_ID_BITS) - 1
_BYTES: Final = 16


class Streams:
    """The streams that have begun, and the last event of each.

    Recently used ones are in memory, the others on disk, in a database that is gone when this
    process ends.
    """

    def __init__(self, in_memory_max: int = IN_MEMORY_MAX) -> None:
        """Begin without any. Where there is no place on disk, all stay in memory."""
        self._last: dict[int, int] = {}
        self._max = in_memory_max
        self._disk: sqlite3.Connection | None = None

    def close(self) -> None:
        """Forget all of them."""
        self._last.clear()
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def has_begun(self, stream: UUID, _position: int = 0, /) -> bool:
        """Return whether an event of a stream was taken."""
        return self._last_of(stream.int) > 0

    def put(self, stream: UUID, version: int, append_id: int) -> None:
        """Take it as known that this is the last event of a stream so far."""
        # One number for both: a pair would take twice the memory.
        self._last[stream.int] = version << _APPEND_ID_BITS | append_id
        if len(self._last) >= self._max:
            self._put_away()

    def take(self, stream: UUID, version: int, append_id: int) -> str | None:
        """Take the next event; return what is wrong with its place in its stream."""
        if append_id < 1:
            return f"its append_id is {append_id}"
        last = self._last_of(stream.int)
        due = (last >> _APPEND_ID_BITS) + 1
        if version != due:
            return f"it is version {version} of its stream, where version {due} is due"
        if last and append_id <= last & _APPEND_ID_MASK:
            return "it was appended before the event that it follows in its stream"
        self.put(stream, version, append_id)
        return None

    def _last_of(self, stream: int) -> int:
        last = self._last.get(stream, 0)
        if last or self._disk is None:
            return last
        query = "select last from streams where id = ?"
        row = self._disk.execute(query, (stream.to_bytes(_BYTES),)).fetchone()
        return 0 if row is None else int.from_bytes(row[0])

    def _put_away(self) -> None:
        kept = (
            (stream.to_bytes(_BYTES), self._last[stream].to_bytes(_BYTES))
            for stream in sorted(self._last)
        )
        try:
            disk = self._disk or _database()
            with disk:
                disk.executemany("insert or replace into streams values (?, ?)", kept)
        except (sqlite3.OperationalError, OSError):  # no place
            self._max *= 2
        else:
            self._disk = disk
            self._last.clear()


def _database() -> sqlite3.Connection:
    """Make a database that is open and no longer has a name.

    It is not one of SQLite's own temporary databases: if the disk becomes full, those fail in such
    a way that their contents cannot be read any more. It keeps its journal open, as it is locked.
    """
    with TemporaryDirectory() as directory:
        disk = sqlite3.connect(Path(directory) / "streams")
        disk.execute("pragma locking_mode = exclusive")
        disk.execute("pragma journal_mode = truncate")
        disk.execute("pragma synchronous = off")  # nobody reads it after a crash
        disk.execute("create table streams (id blob primary key, last blob) without rowid")
    return disk
