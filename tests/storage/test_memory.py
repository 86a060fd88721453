"""Large uploads are streamed to disk."""

import asyncio
import hashlib
import os
import re
import sys
from pathlib import Path

import pytest

from service.cli.dev.gcs.credentials import local_credentials
from service.storage.signer import KeySigner
from tests.patience import PATIENCE_SECONDS
from tests.processes import free_port
from tests.storage.local import BUCKET

pytestmark = pytest.mark.server

SIZE = 50 * 1024 * 1024
GROWTH_MAX = 20 * 1024 * 1024

SERVE = """
import asyncio, pathlib, sys
from service.core.clock import system_clock
from service.cli.dev.gcs.serving import local_store

async def main():
    directory, bucket, port = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    async with local_store(
        directory, [bucket], port=port, clock=system_clock
    ):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


def peak_bytes(pid: int) -> int:
    """Return the peak resident memory of a process."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match[1]) * 1024


async def put(name: str, path: Path, signer: KeySigner, *more: str) -> str:
    """Upload a file with curl; return the status."""
    upload = await signer.sign(name, "application/pdf", SIZE)
    words = [word for pair in upload.required_headers.items() for word in ("-H", ": ".join(pair))]
    process = await asyncio.create_subprocess_exec(
        "curl", "-sS", "-o", os.devnull, "-w", "%{http_code}", *words, *more,
        "-T", str(path), upload.url,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    return output.decode()


async def test_50_mb_in_flat_memory(tmp_path):
    """50 MB, declared or chunked, taken or refused, raise the peak by less than 20 MB."""
    port = free_port()
    signer = KeySigner(local_credentials(tmp_path).key, BUCKET, endpoint=f"http://127.0.0.1:{port}")
    large, small, over = tmp_path / "large", tmp_path / "small", tmp_path / "over"
    small.write_bytes(b"x")
    block = os.urandom(1024 * 1024)
    large.write_bytes(block * 50)
    over.write_bytes(block * 51)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVE, str(tmp_path), BUCKET, str(port),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        while b"ready" not in await process.stdout.readline():
            assert process.returncode is None, "it did not start"
        assert await put("warm", small, signer) == "200"
        before = peak_bytes(process.pid)
        assert await put("declared", large, signer) == "200"
        assert await put("chunked", large, signer, "-H", "Transfer-Encoding: chunked") == "200"
        assert await put("over", over, signer, "-H", "Transfer-Encoding: chunked") == "400"
        growth = peak_bytes(process.pid) - before
    finally:
        process.stdin.close()
        await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)
    assert growth < GROWTH_MAX
    sys.stdout.write(f"peak grew by {growth / 1e6:.1f} MB\n")
    stored = [p for p in (tmp_path / "objects" / BUCKET).iterdir() if p.stat().st_size == SIZE]
    digests = {hashlib.sha256(path.read_bytes()).digest() for path in stored}
    assert digests == {hashlib.sha256(block * 50).digest()}
    assert len(stored) == 2
