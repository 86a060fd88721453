"""Bad input: every case gets the envelope and its code, and never a 5xx."""

import asyncio
import json
from copy import deepcopy

import pytest
import pytest_asyncio

from service.http import bodies as web_body
from tests.contract.refusals import fields, refused
from tests.contract.test_request_fields import BODIES, STRINGS, parent_of, rows
from tests.endpoints import ENDPOINTS, WRITES

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"Content-Type": "application/json"}
NAMES = {"ClaimRequest": "create_claim", "OnboardingRequest": "start_onboarding"}
NAMES |= {"ConnectRequest": "request_connection", "UploadRequest": "mint_upload_url"}

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
    "application/json; charset=latin-1",
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
    "/v1/claims/clm_1",
    "/v1/claims/../claims/x",
    "/v1/claims%00",
    "/v1/%ff%fe",
    "/V1/CLAIMS",
    "/v1/" + "a" * 5000,
)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def partner(shared):
    """Return a partner that calls with all of it."""
    return await shared.partner()


async def send(partner, name, content, headers=JSON):
    """Send bytes to an endpoint, authenticated."""
    one = ENDPOINTS[name]
    return await partner.call(one.method, one.path, content=content, headers=headers)


@pytest.mark.parametrize("case", NO_JSON)
@pytest.mark.parametrize("name", WRITES)
async def test_what_is_no_json(partner, name, case):
    """Contract 7: invalid_json."""
    refused(await send(partner, name, NO_JSON[case]), "invalid_json")


@pytest.mark.parametrize("content", NOT_AN_OBJECT, ids=lambda one: one[:8].decode())
@pytest.mark.parametrize("name", WRITES)
async def test_json_that_is_no_object(partner, name, content):
    """It is JSON, and not what is asked for."""
    refused(await send(partner, name, content), "validation_failed")


@pytest.mark.parametrize("case", NO_BODY)
@pytest.mark.parametrize("name", WRITES)
async def test_no_body(partner, name, case):
    """Contract 7: body_required."""
    refused(await send(partner, name, NO_BODY[case]), "body_required")


@pytest.mark.parametrize("kind", CONTENT_TYPES)
@pytest.mark.parametrize("name", WRITES)
async def test_other_content_types(partner, name, kind):
    """Contract 7: body_required, also for another charset than UTF-8."""
    headers = {} if kind is None else {"Content-Type": kind}
    content = json.dumps(WRITES[name].body).encode()
    refused(await send(partner, name, content, headers), "body_required")


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"']
)
async def test_ways_to_say_json_in_utf_8(partner, kind):
    """Case and quotes are HTTP's to choose."""
    content = json.dumps(WRITES["request_connection"].body).encode()
    answer = await send(partner, "request_connection", content, {"Content-Type": kind})

    assert answer.status_code == 201


STRING_ROWS = [row for row in rows() if row.type in STRINGS]


@pytest.mark.parametrize("row", STRING_ROWS, ids=lambda row: ".".join(map(str, row.path)))
@pytest.mark.parametrize("text", ["a\\u0000b", "\\ud800", "\\udfff\\ud800"])
async def test_strings_that_cannot_be_kept(partner, row, text):
    """NUL and lone surrogates in each string field: 400, and the field is named."""
    body = deepcopy(BODIES[row.request])
    parent_of(body, row)[row.path[-1]] = "@@"
    content = json.dumps(body).replace('"@@"', f'"{text}"').encode()
    answer = await send(partner, NAMES[row.request.__name__], content)

    assert answer.status_code == 400
    if answer.json()["code"] == "validation_failed":
        assert fields(answer) == [row.path[0]]
    else:
        refused(answer, "invalid_json")


@pytest.mark.parametrize("row", STRING_ROWS, ids=lambda row: ".".join(map(str, row.path)))
@pytest.mark.parametrize("value", [1, 1.5, True, [], {}, 10**400])
async def test_strings_have_to_be_strings(partner, row, value):
    """A number, a boolean, an array or an object: validation_failed, and the field is named."""
    body = deepcopy(BODIES[row.request])
    parent_of(body, row)[row.path[-1]] = value
    answer = await send(partner, NAMES[row.request.__name__], json.dumps(body).encode())

    assert fields(answer) == [row.path[0]]


async def test_of_duplicate_keys_the_last_wins(partner):
    """Documented; the first is as if it had not been sent."""
    content = b'{"partner_user_id": 1, "partner_user_id": "u"}'
    assert (await send(partner, "request_connection", content)).status_code == 201
    content = b'{"partner_user_id": "u", "partner_user_id": 1}'
    assert fields(await send(partner, "request_connection", content)) == ["partner_user_id"]


@pytest.mark.parametrize("size", [2**20 + 1, 10 * 2**20, 17 * 2**20])
@pytest.mark.parametrize("name", WRITES)
async def test_large_bodies(partner, name, size):
    """Over 1 MiB: payload_too_large."""
    refused(await send(partner, name, b" " * size), "payload_too_large")


async def test_a_body_of_the_limit_is_read(partner):
    """1 MiB to the byte."""
    content = b'{"partner_user_id": "u"}'.ljust(2**20)

    assert (await send(partner, "request_connection", content)).status_code == 201


async def test_a_body_that_does_not_come_is_408(partner, monkeypatch):
    """A deadline for the whole body."""
    monkeypatch.setattr(web_body, "BODY_SECONDS_MAX", 0.1)

    async def slow():
        yield b'{"partner_user_id": '
        await asyncio.sleep(5)
        yield b'"u"}'

    async with asyncio.timeout(3):
        refused(await send(partner, "request_connection", slow()), "request_timeout")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", PATHS)
async def test_unknown_paths(shared, path, method):
    """Readings: not_found, whatever the method."""
    refused(await shared.client.request(method, path), "not_found")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", sorted({one.url for one in ENDPOINTS.values()}))
async def test_wrong_methods(shared, path, method):
    """Readings: method_not_allowed, with the methods that are."""
    allowed = {one.method for one in ENDPOINTS.values() if one.url == path}
    if method in allowed:
        assert (await shared.client.request(method, path)).json()["code"] == "auth_missing"
        return
    answer = await shared.client.request(method, path)
    refused(answer, "method_not_allowed")
    assert allowed <= set(answer.headers["Allow"].split(", "))


@pytest.mark.parametrize("path", ["/v1/claims", "/v1/onboardings", "/none"])
async def test_head(shared, path):
    """As for other wrong methods."""
    answer = await shared.client.head(path)

    assert answer.status_code == (404 if path == "/none" else 405)


@pytest.mark.parametrize("host", ["", "[::1", "a" * 3000, "evil.example.com:99999"])
async def test_another_host_changes_nothing(partner, host):
    """No address of ours is made from it."""
    body = {"partner_user_id": "u"}
    answer = await partner.call("POST", "/connect-requests", json=body, headers={"Host": host})

    assert answer.status_code == 201
    assert answer.json()["connect_url"].startswith("https://api.example.com/")


@pytest.mark.parametrize("host", [b"x y", b"\xe9", b"a/b"])
async def test_a_host_that_is_none_is_refused(shared, host):
    """RFC 9112, 3.2: 400, before anybody is authenticated."""
    async with shared.calling_from("192.0.2.2") as client:
        answer = await client.get("/health/live", headers={"Host": host})
    refused(answer, "validation_failed")
