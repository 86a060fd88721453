"""The reference's samples: Python is run as it is, TypeScript calls what the client has."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import claim_ledger_client
import httpx2
import pytest

from service.claims.wire import ClaimInPath, ClaimListQuery
from service.connections.wire import ConnectRequest
from service.events.wire import EventQuery
from service.partner_api.docs import samples as clients
from service.partner_api.docs.guide import guide
from service.partner_api.docs.openapi import document
from service.partner_api.docs.page import samples
from service.partner_api.endpoints import Endpoint
from service.partner_api.gate import API_PATH
from tests.conformance import DESCRIBED
from tests.world import PUBLIC_URL

DOCUMENT = document(DESCRIBED, f"{PUBLIC_URL}{API_PATH}", guide(DESCRIBED, 120))
OPERATIONS = Path("clients/typescript/src/generated/operations.gen.ts").read_text()


def described(endpoint: Endpoint) -> dict[str, Any]:
    """Return the endpoint's operation in the document."""
    return DOCUMENT["paths"][endpoint.path][endpoint.method]


def required(operation: dict[str, Any]) -> dict[str, Any]:
    """Return the examples of the parameters that the operation must be given."""
    parameters = operation.get("parameters", ())
    return {one["name"]: one["example"] for one in parameters if one["required"]}


def least(operation: dict[str, Any]) -> dict[str, Any]:
    """Return the example of the body with its required fields."""
    return operation["requestBody"]["content"]["application/json"]["examples"]["least"]["value"]


def typescript_arguments(sample: str) -> list[Any]:
    """Return what a sample in TypeScript gives to the client's method."""
    (given,) = re.findall(r"await client\.\w+\((.*)\);$", sample, re.DOTALL)
    quoted = re.sub(r"^( *)(\w+):", r'\1"\2":', given, flags=re.MULTILINE)
    return json.loads(f"[{quoted}]")


def test_an_endpoint_that_the_python_client_lacks_has_the_other_samples():
    """The page is shown without one; the test of Python samples misses it."""
    newest = replace(DESCRIBED[-1], id="list_what_is_new")
    assert [one.language for one in samples(newest, DOCUMENT)] == ["curl", "typescript"]


@pytest.mark.parametrize("endpoint", DESCRIBED, ids=lambda endpoint: endpoint.id)
def test_the_python_sample_sends_the_example(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch):
    """It sends the body of the example, to the endpoint's path, and understands the answer."""
    sample = {one.language: one.code for one in samples(endpoint, DOCUMENT)}["python"]
    answer = described(endpoint)["responses"][str(endpoint.successes[0].status)]
    example = answer["content"]["application/json"]["examples"]["answer"]["value"]
    sent: list[httpx2.Request] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(endpoint.successes[0].status, json=example)

    class Client(claim_ledger_client.Client):
        """The client, without a network."""

        def __init__(self, key: str, *, base_url: str) -> None:
            super().__init__(key, base_url=base_url, transport=httpx2.MockTransport(handle))

    monkeypatch.setattr(claim_ledger_client, "Client", Client)
    monkeypatch.setenv("CLAIMS_API_KEY", "pk_test_ptn_1.key_1.secret")
    monkeypatch.setenv("CLAIMS_API_URL", f"{PUBLIC_URL}{API_PATH}")
    exec(sample, {})  # noqa: S102 - it is ours, and what the test is about
    (request,) = sent
    path = re.sub(r"\{\w+\}", "[^/]+", f"{API_PATH}{endpoint.path}")
    assert re.fullmatch(path, request.url.path)
    assert request.method == endpoint.method.upper()
    if endpoint.body:
        assert not re.search(r'_date="', sample), "a date is no string to a type checker"
        # With the defaults that the client knows.
        assert least(described(endpoint)).items() <= json.loads(request.content).items()


@pytest.mark.parametrize("endpoint", DESCRIBED, ids=lambda endpoint: endpoint.id)
def test_the_typescript_sample_calls_the_client(endpoint: Endpoint):
    """Its method is one of the generated client's, and given what this takes, in its order."""
    sample = {one.language: one.code for one in samples(endpoint, DOCUMENT)}["typescript"]
    (method,) = re.findall(r"await client\.(\w+)\(", sample)
    (taken,) = re.findall(rf"^  {method}\(\n(.*?)^  \)", OPERATIONS, re.MULTILINE | re.DOTALL)
    named = re.findall(r"^    (\w+):", taken, re.MULTILINE)
    examples = {"parameters": required(described(endpoint))}
    if endpoint.body:
        examples["body"] = least(described(endpoint))
    expected = [examples[name] for name in named if examples.get(name)]
    assert typescript_arguments(sample) == expected


@pytest.fixture
def reminding(monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """Return an endpoint, which nobody serves, with a part of the path, a query and a body."""
    monkeypatch.setitem(clients.PYTHON, "remind_claim", "claims.remind")
    return replace(
        next(one for one in DESCRIBED if one.body is ConnectRequest),
        id="remind_claim",
        path="/claims/{claim_id}/reminders",
        in_path=ClaimInPath,
        query=ClaimListQuery,
    )


def test_parameters_and_a_body_are_given_apart(
    reminding: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    """In Python path, body, query; in TypeScript one object of parameters, then the body."""
    api = document([reminding], f"{PUBLIC_URL}{API_PATH}", "")
    operation = api["paths"][reminding.path]["post"]
    given, body = required(operation), least(operation)
    assert set(given) == {"claim_id", "entity_id"}
    shown = {one.language: one.code for one in samples(reminding, api)}
    assert typescript_arguments(shown["typescript"]) == [given, body]

    called: list[tuple[str, object, str]] = []

    class Claims:
        """The method that the client would have."""

        def remind(self, claim_id: str, request: object, *, entity_id: str) -> None:
            """Note how it is called."""
            called.append((claim_id, request, entity_id))

    client = nullcontext(SimpleNamespace(claims=Claims()))
    monkeypatch.setattr(claim_ledger_client, "Client", lambda *_, **__: client)
    monkeypatch.setenv("CLAIMS_API_KEY", "pk_test_ptn_1.key_1.secret")
    monkeypatch.setenv("CLAIMS_API_URL", f"{PUBLIC_URL}{API_PATH}")
    exec(shown["python"], {})  # noqa: S102 - it is ours, and what the test is about
    asked = claim_ledger_client.models.ConnectRequest(**body)
    assert called == [(given["claim_id"], asked, given["entity_id"])]


def test_a_body_comes_after_parameters_of_which_none_is_required(reminding: Endpoint):
    """In TypeScript they are an empty object before it; in Python there are none."""
    endpoint = replace(reminding, path="/reminders", in_path=None, query=EventQuery)
    api = document([endpoint], f"{PUBLIC_URL}{API_PATH}", "")
    shown = {one.language: one.code for one in samples(endpoint, api)}
    empty, body = typescript_arguments(shown["typescript"])
    assert (empty, body) == ({}, least(api["paths"]["/reminders"]["post"]))
    assert "client.claims.remind(ConnectRequest(" in shown["python"]
