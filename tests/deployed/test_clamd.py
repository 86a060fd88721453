"""Our client of a real clamd with `deploy/clamd.conf`, whose one signature is EICAR's string.

`just test-clamd`, where it is installed (as root: `apt install clamav-daemon`). `just test` has
tests/clamd_server.py in its place.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from service.documents.clamd import Clamd, ScanFailed
from service.documents.paths import BYTES_MAX
from tests.patience import eventually, until
from tests.processes import end, free_port, start

CLAMD = shutil.which("clamd", path="/usr/sbin:/usr/bin")
CONFIGURATION = Path(__file__).parents[2] / "deploy" / "clamd.conf"
EICAR = rb"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
FOUND = "Own.Test.UNOFFICIAL"
EXCEEDED = "Heuristics.Limits.Exceeded"
PART = 1 << 20

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(CLAMD is None, reason="no clamd: apt install clamav-daemon"),
]


@contextmanager
def clamd(folder: Path, **changed: str) -> Iterator[tuple[list[str], object]]:
    """Run one, with some settings changed; return its URLs and its process."""
    assert CLAMD is not None
    base, port = folder / "database", free_port()
    base.mkdir()
    (base / "own.ndb").write_text(f"Own.Test:0:*:{EICAR.hex()}\n")
    own = {
        "LocalSocket": str(folder / "clamd.ctl"),
        "TCPSocket": str(port),
        "TCPAddr": "127.0.0.1",
        "DatabaseDirectory": str(base),
        "TemporaryDirectory": str(folder),
        "Foreground": "yes",
    } | changed
    lines = CONFIGURATION.read_text().splitlines()
    kept = [line for line in lines if line.partition(" ")[0] not in own]
    file = folder / "clamd.conf"
    file.write_text("\n".join([*kept, *(f"{name} {value}" for name, value in own.items()), ""]))
    with (folder / "log").open("wb") as log:
        process = start([CLAMD, f"--config-file={file}"], stdout=log, stderr=log)
        try:
            said = folder / "log"
            until(lambda: "Self checking" in said.read_text(), said.read_text)
            yield [f"unix://{folder}/clamd.ctl", f"tcp://127.0.0.1:{port}"], process
        finally:
            end(process)


async def parts(content: bytes):
    """Yield it as storage is read."""
    for start_ in range(0, len(content), PART):
        yield content[start_ : start_ + PART]


async def scan(url: str, content: bytes) -> str | None:
    """Return the verdict on some content."""
    return await Clamd(url).scan(parts(content))


def zipped(content: bytes) -> bytes:
    """Return an archive of one file."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr("inside", content)
    return file.getvalue()


async def test_clean_and_malicious_documents_are_told_apart(folder):
    """By socket and by TCP, of any size that an upload may have, and inside of an archive."""
    with clamd(folder) as (urls, _):
        for url in urls:
            assert await scan(url, b"harmless") is None
            assert await scan(url, b"") is None
            assert await scan(url, EICAR) == FOUND
            assert await scan(url, zipped(EICAR)) == FOUND
            assert await scan(url, bytes(BYTES_MAX)) is None
            assert await scan(url, bytes(BYTES_MAX - len(EICAR)) + EICAR) == FOUND


async def test_what_clamd_does_not_look_at_is_not_clean(folder):
    """A stream that is too long is refused in its own words; what is over a limit is a finding."""
    few = dict.fromkeys(("MaxScanSize", "MaxFileSize"), "2M")
    with clamd(folder, StreamMaxLength="4M", **few) as (urls, _):
        for url in urls:
            with pytest.raises(ScanFailed, match="INSTREAM size limit exceeded"):
                await scan(url, bytes(BYTES_MAX))
            for content in (bytes(3 * PART) + EICAR, zipped(bytes(8 * PART) + EICAR)):
                assert str(await scan(url, content)).startswith(EXCEEDED)


async def test_what_is_unpacked_may_be_larger_than_a_document(folder):
    """An archive within the limits is looked into whole, one beyond them is a finding."""
    with clamd(folder) as (urls, _):
        assert await scan(urls[0], zipped(bytes(BYTES_MAX) + EICAR)) == FOUND
        assert str(await scan(urls[0], zipped(bytes(401 * PART)))).startswith(EXCEEDED)


async def test_a_clamd_that_ends_meanwhile_has_no_verdict(folder):
    """In the middle of a document; afterwards none is reached.

    It ends with a part in its file: one that has not begun by then may still reply with an error.
    """

    async def until_it_ends(process, files):
        yield bytes(PART)
        await eventually(lambda: [file.stat().st_size for file in files()] == [PART])
        end(process)
        for _ in range(BYTES_MAX // PART - 1):
            yield bytes(PART)

    for nr in range(2):
        one = folder / str(nr)
        one.mkdir()
        with clamd(one) as (urls, process):
            with pytest.raises(ScanFailed, match="without a reply"):
                await Clamd(urls[nr]).scan(until_it_ends(process, partial(one.glob, "*.tmp")))
            with pytest.raises(OSError, match=r"No such file|Connect call failed"):
                await scan(urls[nr], b"")
