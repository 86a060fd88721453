"""An archive in a directory."""

import asyncio
import fcntl
import os
import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from service.archive.port import OBJECT_BYTES_MAX, ArchiveUnavailable, ObjectTooLarge, parts_of
from service.archive.threads import DaemonThreads
from service.core.files import flush_folder, write_new

THREADS: Final = 8
"""Of a directory: where another machine's disk hangs, its calls wait, and nothing else does."""
CALL_SECONDS_MAX: Final = 30.0
"""For a call, its wait for a thread included: as long as one to a bucket has."""
_DIRECTORY_MODE: Final = 0o700

_T = TypeVar("_T")


class DirectoryArchive:
    """A directory, best on another machine's disk. Only its owner can read it."""

    def __init__(self, directory: Path) -> None:
        """Take an existing directory: one created here could be mistyped, or not mounted."""
        self._directory = directory
        self._threads = _threads()

    async def put(self, name: str, content: bytes) -> bool:
        """Write a temporary file, flush it, and link it to its name: whole, and over nothing."""
        return await self._in_thread(lambda: self._put(self._path(name), content))

    async def replace(self, name: str, content: bytes, known: bytes | None) -> bool:
        """Write a temporary file, flush it, and rename it: readers see one text or the other.

        Comparing and renaming hold a lock of the folder. It is not waited for: whoever holds it may
        have stopped.
        """
        return await self._in_thread(lambda: self._replace(self._path(name), content, known))

    async def get(self, name: str, bytes_max: int = OBJECT_BYTES_MAX) -> bytes | None:
        """Read a file."""
        return await self._in_thread(lambda: _read(self._path(name), bytes_max))

    async def names(self, prefix: str, after: str = "") -> list[str]:
        """Walk the folder that the prefix leads to."""
        folder = prefix.rpartition("/")[0]
        top = self._path(folder) if folder else self._directory
        return await self._in_thread(
            lambda: sorted(
                name for name in self._walk(top) if name.startswith(prefix) and name > after
            )
        )

    async def folders(self, prefix: str) -> list[str]:
        """List one folder."""
        top = self._path(prefix.removesuffix("/"))
        found = await self._in_thread(lambda: _folders(top))
        return sorted(prefix + name for name in found)

    def close(self) -> None:
        """Leave the threads to their current work, at whose end each ends."""
        self._threads = _threads()

    async def _in_thread(self, call: Callable[[], _T]) -> _T:
        try:
            async with asyncio.timeout(CALL_SECONDS_MAX):
                return await self._threads.run(lambda: self._at_hand(call))
        except TimeoutError as error:
            raise ArchiveUnavailable(f"{self._directory} does not answer in time") from error
        except OSError as error:
            where = error.filename or self._directory
            raise ArchiveUnavailable(f"{where}: {error.strerror or error}") from error

    def _at_hand(self, call: Callable[[], _T]) -> _T:
        if not self._directory.is_dir():
            raise ArchiveUnavailable(
                f"there is no directory {self._directory}: mount it, correct the setting that "
                f"names it, or make it for a new installation (mkdir -m 700 {self._directory})"
            )
        return call()

    def _path(self, name: str) -> Path:
        return self._directory.joinpath(*parts_of(name))

    def _put(self, path: Path, content: bytes) -> bool:
        self._make_folder(path.parent)
        temporary = path.parent / f".{secrets.token_hex(8)}"
        try:
            write_new(temporary, content)
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        flush_folder(path.parent)
        return True

    def _replace(self, path: Path, content: bytes, known: bytes | None) -> bool:
        self._make_folder(path.parent)
        temporary = path.parent / f".{secrets.token_hex(8)}"
        try:
            write_new(temporary, content)
            with _locked(path.parent):
                if not _holds(path, known):
                    return False
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        flush_folder(path.parent)
        return True

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make_folder(folder.parent)
        with suppress(FileExistsError):  # another process came first
            folder.mkdir(_DIRECTORY_MODE)
            flush_folder(folder.parent)

    def _walk(self, top: Path) -> Generator[str]:
        if not top.is_dir():
            return
        for at, _, names in os.walk(top, onerror=_fail):
            folder = Path(at).relative_to(self._directory).as_posix()
            before = "" if folder == "." else f"{folder}/"
            # Others are incomplete, or left by a crash.
            yield from (before + name for name in names if not name.startswith("."))


def _threads() -> DaemonThreads:
    return DaemonThreads("archive", THREADS)


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Hold a folder's lock; raises ArchiveUnavailable where somebody else holds it."""
    with os.fdopen(os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600), "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ArchiveUnavailable(f"{folder}: another process is writing there") from error
        yield


def _holds(path: Path, known: bytes | None) -> bool:
    try:
        return _read(path, len(known or b"")) == known
    except ObjectTooLarge:
        return False


def _read(path: Path, bytes_max: int) -> bytes | None:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size  # it stays: files are linked when they are whole
            if size > bytes_max:
                raise ObjectTooLarge(f"{path}: has {size:,} bytes, more than {bytes_max:,}")
            return file.read(size)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _folders(top: Path) -> list[str]:
    if not top.is_dir():
        return []
    return [one.name for one in top.iterdir() if one.is_dir() and not one.name.startswith(".")]


def _fail(error: OSError) -> NoReturn:
    raise error
