"""Our client of clamd's protocol, on a real socket."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from service.documents.clamd import NAME_CHARACTERS_MAX, Clamd, ScanFailed
from tests.clamd_server import MALICIOUS, NAME, clamd_server

pytestmark = pytest.mark.server


@pytest.fixture
async def clamd():
    """Return a running clamd."""
    async with clamd_server() as one:
        yield one


async def chunks(*given):
    """Yield the chunks."""
    for one in given:
        yield one


async def test_a_clean_and_a_malicious_file_are_told_apart(clamd):
    """Whatever the chunks are, clamd gets the file as it is."""
    scanner = Clamd(clamd.url)
    assert await scanner.scan(chunks(b"harmless ", b"content")) is None
    assert await scanner.scan(chunks(MALICIOUS[:5], MALICIOUS[5:], b"more")) == NAME
    assert await scanner.scan(chunks()) is None
    assert await scanner.scan(chunks(b"", b"an empty one ends nothing:", b"", MALICIOUS)) == NAME
    assert clamd.scanned[:3] == [b"harmless content", MALICIOUS + b"more", b""]


async def test_a_unix_socket_serves_as_well():
    """As most packages configure it. Its path is short: 107 bytes are all that the kernel takes."""
    with TemporaryDirectory() as directory:
        async with clamd_server(Path(directory) / "a clamd.ctl") as clamd:
            assert await Clamd(clamd.url.replace(" ", "%20")).scan(chunks(MALICIOUS)) == NAME


async def test_a_file_that_clamd_does_not_take_has_no_verdict(clamd):
    """It answers before it was sent all, and hangs up on the rest: what it said is not lost."""
    clamd.bytes_max = 1000
    with TemporaryDirectory() as directory:
        async with clamd_server(Path(directory) / "clamd.ctl") as by_socket:
            by_socket.bytes_max = 1000
            for one in (clamd, by_socket):
                with pytest.raises(ScanFailed, match="size limit exceeded"):
                    await Clamd(one.url).scan(chunks(*[bytes(1 << 20)] * 20))


async def test_a_clamd_that_goes_away_meanwhile_has_no_verdict(clamd):
    """Whether it had answered or not: what it read is not known to be clean."""
    clamd.ends_after = 1000
    with pytest.raises(ScanFailed, match="without a reply"):
        await Clamd(clamd.url).scan(chunks(*[bytes(1 << 20)] * 20))


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (b"", "without a reply"),
        (b"stream: OK", "without a reply"),
        (b"stream: lstat() failed. ERROR\0", "ERROR"),
        (b"stream:  FOUND\0", "FOUND"),
        (b"stream: OK\nFOUND\0", "FOUND"),
        (b"x" * 100_000, "without an end"),
        (b"UNKNOWN COMMAND\0", "UNKNOWN"),
    ],
)
async def test_any_other_reply_is_no_verdict(clamd, reply, fault):
    """Nothing but clamd's own words for it counts as clean."""
    clamd.reply = reply
    with pytest.raises(ScanFailed, match=fault):
        await Clamd(clamd.url).scan(chunks(b"x"))


async def test_a_findings_name_is_bounded_and_printable(clamd):
    """It is shown to people."""
    clamd.reply = b"stream: \x1b[31m\xe2\x80\xae" + b"n" * 1000 + b" FOUND\0"
    name = await Clamd(clamd.url).scan(chunks(b"x"))
    assert name is not None
    assert (len(name), name[:8]) == (NAME_CHARACTERS_MAX, "?[31m?nn")


async def test_a_clamd_that_is_away_is_an_error():
    """The check is tried again."""
    with pytest.raises(OSError, match="Connect call failed"):
        await Clamd("tcp://127.0.0.1:1").scan(chunks(b"x"))
