import asyncio
import re
from datetime import timedelta

import pytest

from tests.patience import eventually
from tests.storage.local import BUCKET, MAX_BYTES, Served

pytestmark = pytest.mark.server

NAME = "entities/ent_1/claims/ck_1/documents/0190a.pdf"


def code_of(response) -> tuple[int, str]:
    """Return the status and the code in the refusal's document."""
    assert response.headers["content-type"] == "application/xml; charset=UTF-8"
    document = re.fullmatch(
        r"<\?xml version='1.0' encoding='UTF-8'\?><Error><Code>(\w+)</Code>"
        r"<Message>[^<]+</Message>.*</Error>",
        response.text,
        re.DOTALL,
    )
    assert document is not None, response.text
    return response.status_code, document[1]


async def test_a_signed_put_makes_an_object(served: Served):
    """The answer has generation and checksums, and says that it is no cloud."""
    response = await served.put(NAME, b"%PDF-1.7")
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["etag"] == '"f87357c6cdc4f067e19f42aebabc6fb7"'
    assert response.headers["x-goog-stored-content-length"] == "8"
    assert int(response.headers["x-goog-generation"]) > 10**15
    assert response.headers["server"] == "claim-ledger-local-store (development only)"


async def test_a_signed_put_writes_once(served: Served):
    """A repeated PUT, as after a lost 200, is refused and changes nothing."""
    upload = await served.sign(NAME)
    first = await served.http.put(upload.url, headers=upload.required_headers, content=b"one")
    second = await served.http.put(upload.url, headers=upload.required_headers, content=b"two")
    assert first.status_code == 200
    assert code_of(second) == (403, "AccessDenied")
    assert "does not have storage.objects.delete access" in second.text
    blob = await asyncio.to_thread(served.bucket().get_blob, NAME)
    assert await asyncio.to_thread(blob.download_as_bytes) == b"one"


async def test_of_two_puts_at_once_one_wins(served: Served):
    """One of the competing PUTs gets 200, and its bytes are stored."""
    uploads = [await served.sign(NAME) for _ in range(12)]
    responses = await asyncio.gather(
        *(
            served.http.put(upload.url, headers=upload.required_headers, content=b"%d" % number)
            for number, upload in enumerate(uploads)
        )
    )
    winners = [n for n, response in enumerate(responses) if response.status_code == 200]
    assert len(winners) == 1
    assert {code_of(r) for r in responses if r.status_code != 200} == {(403, "AccessDenied")}
    blob = served.bucket().blob(NAME)
    assert await asyncio.to_thread(blob.download_as_bytes) == b"%d" % winners[0]
    assert len(served.files()) == 2


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Content-Type": "image/png"}, (403, "SignatureDoesNotMatch")),
        ({"Content-Type": None}, (400, "MalformedSecurityHeader")),
        ({"x-goog-content-length-range": "0,1001"}, (403, "SignatureDoesNotMatch")),
        ({"x-goog-content-length-range": None}, (400, "MalformedSecurityHeader")),
        ({"x-goog-acl": "public-read"}, (400, "MalformedSecurityHeader")),
        ({"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}, (400, "BadDigest")),
        ({"Content-Encoding": "gzip"}, (501, "NotImplemented")),
    ],
)
async def test_other_headers_than_the_signed_ones_are_refused(served: Served, headers, expected):
    """Required headers must match exactly; no cloud header may be added."""
    upload = await served.sign(NAME)
    sent = {n: v for n, v in ({**upload.required_headers} | headers).items() if v is not None}
    response = await served.http.put(upload.url, headers=sent, content=b"x")
    assert code_of(response) == expected
    assert served.files() == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("X-Goog-Expires=900", "X-Goog-Expires=901", (403, "SignatureDoesNotMatch")),
        ("0190a.pdf", "0190b.pdf", (403, "SignatureDoesNotMatch")),
        ("&X-Goog-Signature=", "&nothing=", (403, "AccessDenied")),
        (f"/{BUCKET}/", "/other-documents/", (403, "SignatureDoesNotMatch")),
    ],
)
async def test_an_altered_url_is_refused(served: Served, old, new, expected):
    """No part of the URL can be changed."""
    upload = await served.sign(NAME)
    assert old in upload.url
    response = await served.http.put(
        upload.url.replace(old, new), headers=upload.required_headers, content=b"x"
    )
    assert code_of(response) == expected


async def test_the_url_expires(served: Served):
    """After 15 minutes it is refused, and the document says when it expired."""
    upload = await served.sign(NAME)
    served.clock.ahead = timedelta(minutes=15, seconds=2)
    response = await served.http.put(upload.url, headers=upload.required_headers, content=b"x")
    assert code_of(response) == (400, "ExpiredToken")
    assert f"expired at: {upload.expires_at.isoformat()}<" in response.text


async def test_opening_the_url_in_a_browser_is_refused(served: Served):
    """A GET lacks the signed headers; even with them the method differs."""
    upload = await served.sign(NAME)
    opened = await served.http.get(upload.url)
    assert code_of(opened) == (400, "MalformedSecurityHeader")
    assert "<ParameterName>content-type</ParameterName>" in opened.text
    read = await served.http.get(upload.url, headers=upload.required_headers)
    assert code_of(read) == (403, "SignatureDoesNotMatch")


async def test_another_bucket_is_not_found(served: Served):
    """A valid signature for an unknown bucket is 404."""
    served.signer = type(served.signer)(
        served.store.credentials.key, "other-documents", endpoint=served.store.endpoint
    )
    assert code_of(await served.put(NAME, b"x")) == (404, "NoSuchBucket")


@pytest.mark.parametrize("size", [0, 1, MAX_BYTES])
async def test_sizes_within_the_range_are_taken(served: Served, size):
    """Both ends of the range are allowed."""
    assert (await served.put(NAME, bytes(size))).status_code == 200


@pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
@pytest.mark.parametrize("size", [MAX_BYTES + 1, 20_000_000])
async def test_sizes_over_the_range_are_refused(served: Served, size, chunked):
    """The client can read the refusal, with and without a declared length."""
    upload = await served.sign(NAME)

    async def chunks():
        for start in range(0, size, 65536):
            yield bytes(min(65536, size - start))

    content = chunks() if chunked else bytes(size)
    response = await served.http.put(upload.url, headers=upload.required_headers, content=content)
    assert code_of(response) == (400, "EntityTooLarge")
    assert served.files() == []


async def test_chunked_bodies_are_counted(served: Served):
    """A body without a length is accepted if it fits."""
    upload = await served.sign(NAME)

    async def chunks():
        for _ in range(10):
            yield bytes(100)

    response = await served.http.put(upload.url, headers=upload.required_headers, content=chunks())
    assert response.status_code == 200
    assert response.headers["x-goog-stored-content-length"] == "1000"


@pytest.mark.parametrize("framing", ["content-length: 1000", "transfer-encoding: chunked"])
async def test_half_sent_bodies_leave_nothing(served: Served, framing):
    """An aborted upload leaves no object and no file, and can be repeated."""
    upload = await served.sign(NAME)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    target = upload.url.removeprefix(served.store.endpoint)
    headers = "".join(f"{name}: {value}\r\n" for name, value in upload.required_headers.items())
    host = f"host: 127.0.0.1:{served.port}\r\n"
    writer.write(f"PUT {target} HTTP/1.1\r\n{host}{headers}{framing}\r\n\r\n".encode())
    writer.write(b"1f4\r\n" + bytes(500) + b"\r\n" if "chunked" in framing else bytes(500))
    await writer.drain()
    await eventually(lambda: len(served.files()) == 1)
    writer.close()
    await eventually(lambda: served.files() == [])
    assert await reader.read() == b""
    assert (await served.put(NAME, b"again")).status_code == 200


@pytest.mark.parametrize(
    "name",
    [
        "../../outside.pdf",
        "/etc/passwd",
        "a/../b/./c//d",
        "%2e%2e%2fx",
        "a b/é%2F+~&?#.pdf",
        "nul\x00byte",
        "x" * 1024,
        "lock",
        "incoming/x",
    ],
)
async def test_names_never_become_file_names(served: Served, name):
    """The bytes of any name are in the bucket's folder, under a hash."""
    upload = await served.sign(name)
    _, _, target = upload.url.partition(served.store.endpoint)
    status = await raw_put(served, target, upload.required_headers, b"bytes")
    assert status == 200
    assert all(re.fullmatch(r"[0-9a-f]{64}\.(json|[0-9]+)", file) for file in served.files())
    assert sorted(p.name for p in served.objects.iterdir()) == ["incoming", "lock", BUCKET]
    blobs = await asyncio.to_thread(lambda: list(served.bucket().list_blobs()))
    assert [blob.name for blob in blobs] == [name]
    assert await asyncio.to_thread(blobs[0].download_as_bytes) == b"bytes"


@pytest.mark.parametrize("name", ["x" * 1025, "line\nfeed", ".well-known/acme-challenge/x"])
async def test_names_that_the_cloud_refuses_are_refused(served: Served, name):
    """Over-long names, line breaks and reserved names."""
    assert code_of(await served.put(name, b"x")) == (400, "InvalidURI")


async def raw_put(served: Served, target: str, headers, content: bytes) -> int:
    """Send an unchanged PUT, where clients would normalise the path; return the status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    lines = {**headers, "host": f"127.0.0.1:{served.port}", "content-length": len(content)}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"PUT {target} HTTP/1.1\r\n{head}connection: close\r\n\r\n".encode() + content)
    status = await reader.readline()
    writer.close()
    return int(status.split()[1])
