"""The OpenAPI document is valid, complete, and agrees with the routes and the error table."""

import json

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from service.core.errors import ERRORS
from service.partner_api.docs.openapi import error_codes
from service.partner_api.endpoints import ANY_PATH, Endpoint
from service.partner_api.gate import API_PATH
from tests.conformance import DESCRIBED, described
from tests.endpoints import routed
from tests.world import PUBLIC_URL, World

EVERY = pytest.mark.parametrize("endpoint", DESCRIBED, ids=lambda one: one.id)
JSON = "application/json"


def responses(endpoint: Endpoint) -> dict:
    """Return an endpoint's responses by status."""
    return described()["paths"][endpoint.path][endpoint.method]["responses"]


def test_the_document_is_valid_openapi():
    """It is valid OpenAPI 3.1."""
    assert list(OpenAPIV31SpecValidator(described()).iter_errors()) == []


async def test_the_document_is_public(world: World):
    """It names the address at which the service is reached."""
    answer = await world.client.get(f"{API_PATH}/openapi.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, JSON)
    document = answer.json()
    assert document["servers"] == [{"url": f"{PUBLIC_URL}{API_PATH}"}]
    assert document["paths"] == json.loads(json.dumps(described()["paths"]))


async def test_an_unchanged_document_is_304(world: World):
    """Clients that have it get 304."""
    path = f"{API_PATH}/openapi.json"
    etag = (await world.client.get(path)).headers["etag"]
    answer = await world.client.get(path, headers={"If-None-Match": etag})
    assert (answer.status_code, answer.content) == (304, b"")


async def test_the_document_has_the_routed_endpoints(world: World):
    """Each handler is in the document under its name, and nothing else is."""
    found = {(name, method.lower(), path) for name, method, path in routed(world) if name}
    expected = {(one.id, one.method, API_PATH + one.path) for one in DESCRIBED}
    assert found == expected


@EVERY
def test_every_code_in_its_response(endpoint: Endpoint):
    """A response lists exactly the codes that the endpoint can return with that status."""
    for status, response in responses(endpoint).items():
        if int(status) < 400:
            continue
        body = response["content"][JSON]
        expected = [code for code in endpoint.errors if ERRORS[code].status == int(status)]
        assert body["schema"] == {"$ref": "#/components/schemas/Error"}
        assert set(expected) == set(body["examples"])


@EVERY
def test_every_example_is_valid(endpoint: Endpoint):
    """Examples of requests, parameters and responses match their own schemas."""
    operation = described()["paths"][endpoint.path][endpoint.method]
    bodies = [one["content"][JSON] for one in responses(endpoint).values()]
    bodies += [operation["requestBody"]["content"][JSON]] if "requestBody" in operation else []
    pairs = [(body["schema"], one["value"]) for body in bodies for one in body["examples"].values()]
    pairs += [(one["schema"], one["example"]) for one in operation.get("parameters", [])]
    components = {"components": described()["components"]}
    for schema, value in pairs:
        jsonschema_rs.validate(schema | components, value, validate_formats=True)


def test_every_header_example_is_valid():
    """Examples of headers match their schemas."""
    for one in described()["components"]["headers"].values():
        jsonschema_rs.validate(one["schema"], one["example"])


@EVERY
def test_every_answer_documents_its_headers(endpoint: Endpoint):
    """Every answer has a request id and may not be kept; charged ones have the rate limits."""
    for status, response in responses(endpoint).items():
        headers = response["headers"]
        assert headers["X-Request-Id"]["required"]
        assert headers["Cache-Control"]["required"]
        assert ("WWW-Authenticate" in headers) == (status == "401")
        assert ("Retry-After" in headers) == (status in {"429", "503"})
        charged = headers.get("X-RateLimit-Remaining", {}).get("required", False)
        no_path = "not_found" in response["content"][JSON]["examples"]
        assert no_path == (status == "404" and endpoint.in_path is not None)
        assert charged == (status not in {"401", "403", "429", "500", "503"} and not no_path)


def test_the_document_is_self_contained():
    """It does not cite sections of the contract."""
    assert "(contract" not in json.dumps(described())


def test_the_envelope_lists_api_codes_only():
    """Codes of the customers' pages and of the team's commands are left out."""
    given = {code for one in DESCRIBED for code in one.errors} | set(ANY_PATH)
    assert set(error_codes(DESCRIBED)) == given
    assert "magic_link_expired" not in given


def test_retries_follow_the_error_table():
    """Each code has the table's advice, and a safe operation retries those of its own."""
    rows = described()["x-retry"]["codes"]
    assert {code: ERRORS[code].after for code in error_codes(DESCRIBED)} == {
        code: row.get("after") if row["retryable"] else None for code, row in rows.items()
    }
    for endpoint in DESCRIBED:
        rule = described()["paths"][endpoint.path][endpoint.method]["x-retry"]
        if rule["repeat"] == "safe":
            expected = [code for code in rows if rows[code]["retryable"]]
            assert set(rule["codes"]) == set(expected) & set(endpoint.errors)


def test_only_the_first_refusals_of_an_unsafe_operation_are_retried():
    """Any other failure may have done it, as a connect request mints a link."""
    unsafe = [one for one in DESCRIBED if one.repeat == "unsafe"]
    assert "request_connection" in {one.id for one in unsafe}
    for endpoint in unsafe:
        rule = described()["paths"][endpoint.path][endpoint.method]["x-retry"]
        assert rule == {
            "repeat": "unsafe",
            "codes": ["request_timeout", "rate_limited"],
            "uncharged_codes": ["service_unavailable"],
        }, endpoint.id
