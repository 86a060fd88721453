"""Sending: to the addresses that were judged, for the host's certificate, bounded, no redirects."""

import ssl
from datetime import UTC, datetime

import pytest

from service.webhooks import sender
from service.webhooks.sender import RETRY_AFTER_SECONDS_MAX, Sender, Undelivered
from service.webhooks.urls import NotPublic
from tests.certificates import certificate
from tests.tables import every_row
from tests.webhooks.receiver import receiving

pytestmark = pytest.mark.server
NOW = datetime(2026, 3, 1, tzinfo=UTC)
HEADERS = {"webhook-id": "evt_1"}
BODY = b'{"subject": "clm_1"}'
FLOOD = b"HTTP/1.1 100 C\r\n\r\n" * 4_000 + b"HTTP/1.1 204 x\r\n\r\n"
"""72 KB of interim answers, and then a good one."""


def answered(status, *headers):
    """Return an answer."""
    return "\r\n".join([f"HTTP/1.1 {status} x", *headers, "content-length: 0", "", ""]).encode()


async def test_answers_are_told_by_their_status(monkeypatch):
    """Redirects are not followed; what is no HTTP, or endless, or never comes, is no answer."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    plain = Sender(allow_private=True)
    async with receiving() as receiver:
        rows = [
            (answered(200), 200, None),
            (answered(302, f"location: {receiver.url}"), 302, None),
            (answered(410), 410, None),
            (answered(429, "retry-after: 30"), 429, 30),
            (answered(429, "retry-after: 00000000030"), 429, 30),
            (answered(503, f"retry-after: {'9' * 400}"), 503, RETRY_AFTER_SECONDS_MAX),
            (answered(503, "retry-after: Sun, 01 Mar 2026 00:01:00 GMT"), 503, 60),
            (answered(503, "retry-after: Sun, 01 Mar 2020 00:01:00 GMT"), 503, 0),
            (answered(503, "retry-after: soon"), 503, None),
            (b"HTTP/1.1 200 x\r\ncontent-length: 9999999999\r\n\r\n" + b"a" * 10_000, 200, None),
        ]
        with every_row() as row:
            for answer, status, retry_after in rows:
                with row(answer[:60]):
                    receiver.answer = answer
                    assert await plain.post(receiver.url, HEADERS, BODY, NOW) == (
                        status,
                        retry_after,
                    )
        assert len(receiver.requests) == 2
        first = receiver.requests[0]
        assert (first.headers["webhook-id"], first.body) == ("evt_1", BODY)
        assert receiver.tried["clm_1"] == len(rows)
        endless = b"HTTP/1.1 200 x\r\n" + b"a: b\r\n" * 50_000
        for answer in (b"SSH-2.0\r\n\r\n", endless, FLOOD, b""):
            receiver.answer = answer
            with pytest.raises(Undelivered):
                await plain.post(receiver.url, HEADERS, BODY, NOW)
        receiver.answer = None
        monkeypatch.setattr(sender, "SECONDS_MAX", 0.05)
        with pytest.raises(Undelivered, match="no answer within"):
            await plain.post(receiver.url, HEADERS, BODY, NOW)


async def test_the_certificate_has_to_be_the_hosts(tmp_path, monkeypatch):
    """By an authority that is trusted, for the name in the URL, at the address that was judged."""
    asked = []

    async def resolve(host, **_more):
        asked.append(host)
        return ["127.0.0.1"]

    monkeypatch.setattr(sender, "resolve", resolve)
    with every_row() as row:
        for named, expected in (("hooks.example.com", 204), ("other.example.com", None)):
            with row(named):
                path = certificate(tmp_path, named)
                serving, names = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), []
                serving.load_cert_chain(path, path.with_suffix(".key"))
                serving.sni_callback = lambda _link, name, _context, names=names: names.append(name)
                tls = ssl.create_default_context(cafile=str(path))
                trusting = Sender(allow_private=True, tls=tls)
                async with receiving(serving) as receiver:
                    url = receiver.url.replace("localhost", "hooks.example.com")
                    if expected:
                        answer = await trusting.post(url, HEADERS, BODY, NOW)
                        assert answer.status == expected
                        receiver.answer = FLOOD
                        with pytest.raises(Undelivered, match="without an answer"):
                            await trusting.post(url, HEADERS, BODY, NOW)
                    else:
                        with pytest.raises(Undelivered, match="certificate"):
                            await trusting.post(url, HEADERS, BODY, NOW)
                    with pytest.raises(Undelivered, match="certificate"):
                        await Sender(allow_private=True).post(url, HEADERS, BODY, NOW)
                assert set(names) == {"hooks.example.com"}
    assert asked == ["hooks.example.com"] * 5


async def test_records_without_data_are_bounded_too(tmp_path, monkeypatch):
    """A server that goes on sending tickets of TLS has answered nothing."""

    async def resolve(_host, **_more):
        return ["127.0.0.1"]

    monkeypatch.setattr(sender, "resolve", resolve)
    path = certificate(tmp_path, "hooks.example.com")
    tls = ssl.create_default_context(cafile=str(path))
    for tickets, expected in ((2, 204), (2_000, None)):
        serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        serving.load_cert_chain(path, path.with_suffix(".key"))
        serving.num_tickets = tickets
        async with receiving(serving) as receiver:
            url = receiver.url.replace("localhost", "hooks.example.com")
            sending = Sender(allow_private=True, tls=tls).post(url, HEADERS, BODY, NOW)
            if expected:
                assert (await sending).status == expected
            else:
                with pytest.raises(Undelivered):
                    await sending


async def test_every_attempt_judges_the_url_again(monkeypatch):
    """An endpoint that was added when more was allowed gets nothing now."""

    async def resolve(_host, **_more):
        raise NotPublic("for the partner", "for us")

    monkeypatch.setattr(sender, "resolve", resolve)
    with pytest.raises(Undelivered, match="for the partner") as refused:
        await Sender().post("https://example.com/", HEADERS, BODY, NOW)
    assert refused.value.reason == "for us"
    async with receiving() as receiver:
        for url in (receiver.url, "https://127.0.0.1/", "https://localhost/"):
            with pytest.raises(Undelivered, match="expected"):
                await Sender().post(url, HEADERS, BODY, NOW)
        assert not receiver.tried
