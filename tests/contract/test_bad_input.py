"""Bad input: every case gets the envelope and its code, never a 5xx."""

import asyncio
import gzip
import json
from itertools import product

import pytest
import pytest_asyncio

from service.http import bodies as web_body
from tests.contract.refusals import fields, refused
from tests.contract.request_fields import ROWS, STRINGS, body_with
from tests.endpoints import ENDPOINTS, WRITES
from tests.tables import every_row
from tests.topology import RemoteWorld

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"Content-Type": "application/json"}
REQUESTS = {"ClaimRequest": "create_claim", "OnboardingRequest": "start_onboarding"}
REQUESTS |= {"ConnectRequest": "request_connection", "UploadRequest": "mint_upload_url"}

DEEP = 200_000
NO_JSON = {
    "invalid UTF-8": b'{"partner_user_id": "\xff"}',
    "invalid UTF-8 in an unknown field": b'{"x": "\xc3\x28"}',
    "overlong UTF-8": b'{"x": "\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"x": "\xed\xa0\x80"}',
    "byte order mark": b"\xef\xbb\xbf{}",
    "nested arrays": b"[" * DEEP,
    "nested arrays, closed": b"[" * DEEP + b"]" * DEEP,
    "nested objects": b'{"":' * DEEP + b"1" + b"}" * DEEP,
    "nested in an unknown field": b'{"x":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "cut off": b'{"partner_user_id": "u',
    "two values": b"{}{}",
    "trailing comma": b'{"a": 1,}',
    "single quotes": b"{'a': 1}",
    "comment": b"{} // no",
    "NaN": b'{"a": NaN}',
    "raw NUL": b'{"a": "\x00"}',
    "raw newline in a string": b'{"a": "\n"}',
    "words": b"partner_user_id=u",
    "UTF-16": "{}".encode("utf-16"),
}
NOT_AN_OBJECT = (b"[]", b"null", b"1", b'"x"', b"true", b"1e999", b"[{}]", b"9" * 5000)
NO_BODY = {"nothing": b"", "white space": b" \n\t\r "}
CONTENT_TYPES = (
    None,
    "",
    "text/plain",
    "application/json; charset=utf-16",
    "application/json; foo=bar; charset=latin-1",
    "application/jsonx",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json, text/plain",
    ";",
)
PATHS = (
    "/nowhere",
    "/v1",
    "/v2/claims",
    "/v1/claim",
    "/v1/claims/clm_1/x",
    "/v1/claims/../claims/x/y",
    "/v1/claims%00",
    "/v1/%ff%fe",
    "/V1/CLAIMS",
    "/v1/" + "a" * 5000,
)
HOSTS = ("", "[::1", "a" * 3000, "evil.example.com:99999", "evil.example.com")
NO_HOSTS = (b"x y", b"\xe9", b"a/b")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
SIZES = (2**20 + 1,)


def methods(world):
    """Return the methods to try: a proxy in front answers CONNECT itself, to whatever address."""
    return METHODS if isinstance(world, RemoteWorld) else (*METHODS, "CONNECT")


def sizes(world):
    """Return sizes that are too large.

    On a socket, what takes long has a deadline, and a reset may overtake the answer to the largest.
    """
    return SIZES if isinstance(world, RemoteWorld) else (*SIZES, 10 * 2**20, 17 * 2**20)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def partner(shared):
    """Return the partner that sends all of these requests."""
    return await shared.partner()


async def send(partner, name, content, headers=JSON):
    """Send bytes to an endpoint, authenticated."""
    one = ENDPOINTS[name]
    return await partner.call(one.method, one.path, content=content, headers=headers)


async def test_malformed_json_is_refused(partner):
    """Contract 7: invalid_json."""
    with every_row() as row:
        for name, case in product(WRITES, NO_JSON):
            with row(name, case):
                refused(await send(partner, name, NO_JSON[case]), "invalid_json")


async def test_json_other_than_an_object_is_refused(partner):
    """It is valid JSON of the wrong type."""
    with every_row() as row:
        for name, content in product(WRITES, NOT_AN_OBJECT):
            with row(name, content[:8]):
                refused(await send(partner, name, content), "validation_failed")


async def test_a_missing_body_is_refused(partner):
    """Contract 7: body_required."""
    with every_row() as row:
        for name, case in product(WRITES, NO_BODY):
            with row(name, case):
                refused(await send(partner, name, NO_BODY[case]), "body_required")


async def test_other_content_types_are_refused(partner):
    """Contract 7: body_required, also for charsets other than UTF-8."""
    with every_row() as row:
        for name, kind in product(WRITES, CONTENT_TYPES):
            headers = {} if kind is None else {"Content-Type": kind}
            content = json.dumps(WRITES[name].body).encode()
            with row(name, kind):
                refused(await send(partner, name, content, headers), "body_required")


@pytest.mark.parametrize("second", ["text/plain", "application/json"])
async def test_of_two_content_types_none_is_chosen(partner, second):
    """Contract 7: body_required, whichever comes first."""
    content = json.dumps(WRITES["create_claim"].body).encode()
    kinds = ["application/json", second]
    for order in (kinds, kinds[::-1]):
        headers = [("Authorization", f"Bearer {partner.keys['live']}")]
        headers += [("Content-Type", kind) for kind in order]
        url = f"/v1{ENDPOINTS['create_claim'].path}"
        answer = await partner.world.client.request("POST", url, content=content, headers=headers)
        refused(answer, "body_required")


async def test_spellings_of_json_in_utf_8_are_accepted(partner):
    """HTTP allows any case, and quotes; parameters that JSON does not have mean nothing."""
    content = json.dumps(WRITES["request_connection"].body).encode()
    kinds = ("charset=utf-8", 'charset="UTF-8"', "charset=utf8", "foo=bar")
    for kind in (f"Application/JSON; {parameter}" for parameter in kinds):
        answer = await send(partner, "request_connection", content, {"Content-Type": kind})
        assert answer.status_code == 201, kind


STRING_ROWS = [row for row in ROWS if row.type in STRINGS]


async def test_strings_that_cannot_be_stored_are_refused(partner):
    """NUL and lone surrogates in each string field: 400 names the field."""
    with every_row() as row:
        for field, text in product(STRING_ROWS, ("a\\u0000b", "\\ud800", "\\udfff\\ud800")):
            content = json.dumps(body_with(field, "@@")).replace('"@@"', f'"{text}"').encode()
            with row(field, text):
                answer = await send(partner, REQUESTS[field.request.__name__], content)
                assert answer.status_code == 400
                if answer.json()["code"] == "validation_failed":
                    assert fields(answer) == [field.path[0]]
                else:
                    refused(answer, "invalid_json")


async def test_strings_have_to_be_strings(partner):
    """Numbers, booleans, arrays and objects: validation_failed names the field."""
    with every_row() as row:
        for field, value in product(STRING_ROWS, (1, 1.5, True, [], {}, 10**400)):
            content = json.dumps(body_with(field, value)).encode()
            with row(field, str(value)[:8]):
                answer = await send(partner, REQUESTS[field.request.__name__], content)
                assert fields(answer) == [field.path[0]]


async def test_of_duplicate_keys_the_last_wins(partner):
    """As documented, earlier ones count as not sent."""
    content = b'{"partner_user_id": 1, "partner_user_id": "u"}'
    assert (await send(partner, "request_connection", content)).status_code == 201
    content = b'{"partner_user_id": "u", "partner_user_id": 1}'
    assert fields(await send(partner, "request_connection", content)) == ["partner_user_id"]


async def test_a_compressed_body_is_refused(partner):
    """It is told so; `identity` is no coding."""
    for coding, status in (("gzip", 400), ("Identity, br", 400), ("Identity", 201)):
        content = b'{"partner_user_id": "u"}' if status == 201 else gzip.compress(b"{}")
        headers = {"Content-Type": "application/json", "Content-Encoding": coding}
        answer = await partner.call("POST", "/connect-requests", content=content, headers=headers)
        if status == 201:
            assert answer.status_code == 201
        else:
            assert "not supported" in refused(answer, "invalid_json")["message"]


async def test_large_bodies_are_refused(partner):
    """Over 1 MiB: payload_too_large."""
    with every_row() as row:
        for name, size in product(WRITES, sizes(partner.world)):
            with row(name, size):
                refused(await send(partner, name, b" " * size), "payload_too_large")


async def test_a_body_of_the_limit_is_read(partner):
    """Exactly 1 MiB."""
    content = b'{"partner_user_id": "u"}'.ljust(2**20)

    assert (await send(partner, "request_connection", content)).status_code == 201


@pytest.mark.in_process("shortens a deadline")
async def test_a_stalled_body_is_408(partner, monkeypatch):
    """The whole body has one deadline."""
    monkeypatch.setattr(web_body, "BODY_SECONDS_MAX", 0.1)

    async def endless():
        yield b'{"partner_user_id": '
        await asyncio.Event().wait()

    refused(await send(partner, "request_connection", endless()), "request_timeout")


@pytest.mark.in_process("shortens a deadline, and looks at the room for large bodies")
@pytest.mark.parametrize("declared", [3_000_000, None])
async def test_a_body_that_is_too_large_and_stalls_is_413(partner, monkeypatch, declared):
    """From the moment that its size is known, by what was declared or has come; it has no room."""
    monkeypatch.setattr(web_body, "BODY_SECONDS_MAX", 0.1)
    room, held = partner.world.admitted.admission.room, []

    async def half():
        yield b" " * 1_500_000
        held.append(room.held.total())
        await asyncio.Event().wait()

    lengths = {"Content-Length": str(declared)} if declared else {}
    headers = {"Content-Type": "application/json", **lengths}
    answer = await partner.call("POST", "/connect-requests", content=half(), headers=headers)

    refused(answer, "payload_too_large")
    assert held == [0]


async def test_unknown_paths_are_not_found(shared):
    """Readings: not_found, whatever the method."""
    with every_row() as row:
        for path, method in product(PATHS, methods(shared)):
            with row(method, path[:40]):
                refused(await shared.client.request(method, path), "not_found")


async def test_wrong_methods_are_refused(shared):
    """Readings: method_not_allowed, with the allowed methods."""
    with every_row() as row:
        for path, method in product({one.url for one in ENDPOINTS.values()}, methods(shared)):
            allowed = {one.method for one in ENDPOINTS.values() if one.url == path}
            with row(method, path):
                answer = await shared.client.request(method, path)
                if method in allowed:
                    refused(answer, "auth_missing")
                else:
                    refused(answer, "method_not_allowed")
                    assert set(answer.headers["Allow"].split(", ")) == allowed


async def test_head_is_refused(shared):
    """HEAD is refused like other wrong methods."""
    for path, status in (("/v1/claims", 405), ("/v1/onboardings", 405), ("/none", 404)):
        assert (await shared.client.head(path)).status_code == status, path


async def test_another_host_is_refused(partner):
    """What is sent to it is not done, and no address in an answer is built from it."""
    with every_row() as row:
        for host in HOSTS:
            with row(host[:20]):
                body = {"partner_user_id": "u"}
                headers = {"Host": host}
                answer = await partner.call("POST", "/connect-requests", json=body, headers=headers)
                refused(answer, "host_unknown")
                assert "evil" not in answer.text


async def test_an_invalid_host_is_refused(shared):
    """RFC 9112, 3.2: 400, before authentication."""
    async with shared.calling_from("192.0.2.2") as client:
        for host in NO_HOSTS:
            answer = await client.get("/health/live", headers={"Host": host})
            refused(answer, "validation_failed")
