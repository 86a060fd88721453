"""Posting to a server that an operator names: bounded in bytes and time, no redirects."""

import pytest

from service.http import posting
from service.http.posting import Unanswered, post
from tests.tables import every_row
from tests.webhooks.receiver import receiving

pytestmark = pytest.mark.server
BODY = b'{"subject": "note"}'
BYTES_MAX = 2_000


def answered(status, body=b"", *headers):
    """Return an answer."""
    head = (f"HTTP/1.1 {status} x", *headers, f"content-length: {len(body)}", "", "")
    return "\r\n".join(head).encode() + body


async def test_answers_are_whole_or_none(monkeypatch):
    """What is too long, endless, no HTTP or too late is no answer; a redirect is not followed."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    full = b"a" * BYTES_MAX
    async with receiving() as receiver:
        kind = "content-type: text/X.tlog.size; charset=utf-8"
        with every_row() as row:
            for answer, expected in (
                (answered(200, full), (200, "", full)),
                (answered(409, b"7\n", kind), (409, "text/x.tlog.size", b"7\n")),
                (answered(302, b"", f"location: {receiver.url}"), (302, "", b"")),
                (answered(200, full + b"a"), None),
                (b"HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\ncut", None),
                (b"HTTP/1.1 200 x\r\ncontent-length: 999999999\r\n\r\n" + full * 99, None),
                (b"HTTP/1.1 200 x\r\n" + b"a: b\r\n" * 50_000, None),
                (b"HTTP/1.1 100 C\r\n\r\n" * 4_000 + answered(200), None),
                (b"SSH-2.0\r\n\r\n", None),
                (b"", None),
            ):
                with row(answer[:40], len(answer)):
                    receiver.answer = answer
                    if expected is None:
                        with pytest.raises(Unanswered):
                            await post(receiver.url, "text/plain", BODY, BYTES_MAX)
                    else:
                        found = await post(receiver.url, "text/plain", BODY, BYTES_MAX)
                        assert found == expected
        assert receiver.requests[0].headers["content-type"] == "text/plain"
        receiver.answer = None
        monkeypatch.setattr(posting, "SECONDS_MAX", 0.05)
        with pytest.raises(Unanswered, match="no answer within"):
            await post(receiver.url, "text/plain", BODY, BYTES_MAX)
    monkeypatch.setattr(posting, "SECONDS_MAX", 20.0)
    with pytest.raises(Unanswered, match="no connection"):
        await post(receiver.url, "text/plain", BODY, BYTES_MAX)
