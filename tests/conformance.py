"""Every answer that a test gets is held against the OpenAPI document.

The document lets answers grow; here they may not: a member that it does not name is a fault, and so
is a value that an extensible enumeration does not list.
"""

import json
import re
from functools import cache
from typing import Any, NamedTuple

import httpx
import jsonschema_rs

from service.http.scalars import OPEN_ENUM
from service.partner_api.docs.openapi import document
from service.partner_api.endpoints import endpoints_of
from service.partner_api.gate import API_PATH
from service.partner_api.routes import partner_handlers

JSON = "application/json"
METHODS = {"get", "post"}
MISDIRECTED = 421
"""Of a request to another host, which no endpoint is asked."""

Json = dict[str, Any]


DESCRIBED = endpoints_of(partner_handlers({}))
"""The endpoints as their handlers describe them."""


@cache
def described() -> Json:
    """Return the document, made once a process."""
    return document(DESCRIBED, f"https://api.example.com{API_PATH}", "")


async def conforms(response: httpx.Response) -> None:
    """Raise AssertionError unless the document has this answer (an event hook of httpx)."""
    await response.aread()
    check(response)


def check(response: httpx.Response) -> None:
    """Raise AssertionError unless the document has this answer; its body has been read."""
    # As sent: `%2F` is no slash here, and `get` is not GET.
    path = response.request.url.raw_path.partition(b"?")[0].decode()
    given = response.request.method
    method = given.lower() if given.isupper() else given
    where = f"{given} {path} -> {response.status_code}"
    assert "x-request-id" in response.headers, f"{where}: no X-Request-Id"
    is_page = response.headers.get("content-type", "").startswith("text/html")
    if is_page and not path.startswith(API_PATH):
        return  # for people: tests/pages
    local = _template(path.removeprefix(API_PATH))
    operations = described()["paths"].get(local, {}) if path.startswith(API_PATH) else {}
    if method in operations and response.status_code != MISDIRECTED:
        status = str(response.status_code)
        assert status in operations[method]["responses"], f"{where}: not documented"
        _check_documented(response, local, method, where)
    elif response.is_error:
        _check_envelope(response, where)
        # What is escaped may be no part of the path, and then makes another one.
        known = operations and "%" not in path
        if known and method != "head" and response.status_code != MISDIRECTED:
            assert response.status_code == 405, f"{where}: expected 405"
            expected = ", ".join(sorted(one.upper() for one in operations))
            assert response.headers["allow"] == expected, f"{where}: Allow"


@cache
def _templates() -> list[tuple[re.Pattern[str], str]]:
    paths = (path for path in described()["paths"] if "{" in path)
    return [(re.compile(re.sub(r"{\w+}", "[^/]+", path)), path) for path in paths]


def _template(path: str) -> str:
    """Return the path as the document has it: with the names of its parameters."""
    return next((one for pattern, one in _templates() if pattern.fullmatch(path)), path)


def _check_documented(response: httpx.Response, path: str, method: str, where: str) -> None:
    status = str(response.status_code)
    headers = _headers(path, method, status)
    for name, header in headers.items():
        assert name in response.headers or not header.required, f"{where}: no {name}"
        if name in response.headers:
            text = response.headers[name]
            value = json.loads(text) if header.is_number else text
            assert header.validator.is_valid(value), f"{where}: {name}: {text}"
    for name in response.headers:
        assert name.lower() in headers.keys() | _TRANSPORT, f"{where}: {name} is not documented"
    assert response.headers["content-type"] == JSON, f"{where}: content type"
    _check_body(_validator(path, method, status), response, where)
    if response.is_error:
        content = described()["paths"][path][method]["responses"][status]["content"][JSON]
        assert response.json()["code"] in content["examples"], f"{where}: code not documented"


_TRANSPORT = {
    *("content-type", "content-length", "date", "server", "connection"),
    *("strict-transport-security", "x-content-type-options"),
    "traceparent",
}
"""Headers of HTTP itself, those of every answer, and the one for who sent a trace's."""


def _check_envelope(response: httpx.Response, where: str) -> None:
    assert response.headers["content-type"] == JSON, f"{where}: content type"
    assert "#error-" in response.headers["link"], f"{where}: no Link"
    if response.request.method != "HEAD":
        _check_body(_error_validator(), response, where)


def _check_body(
    validator: jsonschema_rs.Draft202012Validator, response: httpx.Response, where: str
) -> None:
    errors = [
        f"{error.instance_path}: {error.message}"
        for error in validator.iter_errors(response.json())
    ]
    assert errors == [], f"{where}: {errors} in {response.text[:2000]}"


class _Header(NamedTuple):
    """What the document says of a header; to make its validator takes as long as an answer."""

    is_number: bool
    validator: jsonschema_rs.Draft202012Validator
    required: bool


@cache
def _headers(path: str, method: str, status: str) -> dict[str, _Header]:
    components = described()["components"]["headers"]
    found: dict[str, _Header] = {}
    headers = described()["paths"][path][method]["responses"][status]["headers"]
    for name, one in headers.items():
        full = components[one["$ref"].rpartition("/")[2]] if "$ref" in one else one
        schema = full["schema"]
        found[name.lower()] = _Header(
            schema.get("type") == "integer",
            jsonschema_rs.Draft202012Validator(schema),
            one.get("required", False),
        )
    return found


@cache
def _validator(path: str, method: str, status: str) -> jsonschema_rs.Draft202012Validator:
    response = described()["paths"][path][method]["responses"][status]
    return _compile(response["content"][JSON]["schema"])


@cache
def _error_validator() -> jsonschema_rs.Draft202012Validator:
    return _compile({"$ref": "#/components/schemas/Error"})


def _compile(schema: Json) -> jsonschema_rs.Draft202012Validator:
    components = {"schemas": _closed(described()["components"]["schemas"])}
    return jsonschema_rs.Draft202012Validator(
        schema | {"components": components}, validate_formats=True
    )


def _closed(schemas: Json) -> Json:
    """Return the schemas with every object closed to members that it does not name."""
    return {name: _close(schema) for name, schema in schemas.items()}


def _close(value: Any) -> Any:
    if isinstance(value, list):
        return [_close(one) for one in value]
    if not isinstance(value, dict):
        return value
    closed = {"enum" if name == OPEN_ENUM else name: _close(one) for name, one in value.items()}
    if value.get("type") == "object" and "properties" in value:
        closed.setdefault("additionalProperties", False)
    return closed
