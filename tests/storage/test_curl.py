"""Uploading with curl as the partners' documentation shows, and what it prints."""

import asyncio
import shutil
from datetime import timedelta

import pytest

from tests.storage.local import MAX_BYTES, Served

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]

NAME = "entities/ent_1/claims/ck_1/documents/0190a.pdf"


async def curl(*arguments: str) -> tuple[int, str]:
    """Return the status and the body of a request."""
    process = await asyncio.create_subprocess_exec(
        "curl", "-sS", "-w", "\n%{http_code}", *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    body, _, status = output.decode().rpartition("\n")
    return int(status), body


async def put(served: Served, path: str, *more: str, url: str | None = None) -> tuple[int, str]:
    """Upload a file with exactly the required headers and a test's additions."""
    upload = await served.sign(NAME)
    headers = [
        w for name, value in upload.required_headers.items() for w in ("-H", f"{name}: {value}")
    ]
    return await curl("-X", "PUT", *headers, "--data-binary", f"@{path}", *more, url or upload.url)


@pytest.fixture
def pdf(tmp_path) -> str:
    """Return a small file."""
    path = tmp_path / "letter.pdf"
    path.write_bytes(b"%PDF-1.7 letter")
    return str(path)


async def test_curl_uploads_once(served: Served, pdf):
    """The first PUT returns an empty 200, the second is refused."""
    assert await put(served, pdf) == (200, "")
    status, body = await put(served, pdf)
    assert status == 403
    assert "<Code>AccessDenied</Code>" in body


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        (["-H", "Content-Type: text/plain"], 403, "SignatureDoesNotMatch"),
        (["-H", "Content-Type:"], 400, "MalformedSecurityHeader"),
        (["-H", "x-goog-content-length-range:"], 400, "MalformedSecurityHeader"),
        (["-H", "x-goog-meta-a: b"], 400, "MalformedSecurityHeader"),
    ],
)
async def test_curl_shows_refused_headers(served: Served, pdf, more, status, code):
    """The refusal's code names a header that differs."""
    upload = await served.sign(NAME)
    changed = more[1].partition(":")[0].lower()
    kept = [
        word
        for name, value in upload.required_headers.items()
        if name.lower() != changed
        for word in ("-H", f"{name}: {value}")
    ]
    answer = await curl("-X", "PUT", *kept, *more, "--data-binary", f"@{pdf}", upload.url)
    assert (answer[0], f"<Code>{code}</Code>" in answer[1]) == (status, True)


async def test_curl_shows_altered_urls(served: Served, pdf):
    """An altered and an unsigned URL are distinguished."""
    url = (await served.sign(NAME)).url
    status, body = await put(served, pdf, url=url.replace("0190a", "0190b"))
    assert (status, "<Code>SignatureDoesNotMatch</Code>" in body) == (403, True)
    status, body = await put(served, pdf, url=url.partition("?")[0])
    assert (status, "<Code>AccessDenied</Code>" in body) == (403, True)
    served.clock.ahead = timedelta(hours=1)
    status, body = await put(served, pdf)
    assert (status, "<Code>ExpiredToken</Code>" in body) == (400, True)


@pytest.mark.parametrize("framing", ["", "Transfer-Encoding: chunked", "Expect:"])
async def test_curl_reads_why_a_file_is_too_large(served: Served, tmp_path, framing):
    """The output has the refusal, no reset: with `Expect`, chunked, or neither."""
    path = tmp_path / "large.pdf"
    path.write_bytes(bytes(8_000_000))
    status, body = await put(served, str(path), *(["-H", framing] if framing else []))
    assert (status, "<Code>EntityTooLarge</Code>" in body) == (400, True)
    path.write_bytes(bytes(MAX_BYTES))
    assert await put(served, str(path)) == (200, "")
