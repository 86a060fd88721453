"""The reference's samples: Python is run as it is, TypeScript calls what the client has."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import claim_ledger_client
import httpx2
import pytest

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
        body = described(endpoint)["requestBody"]["content"]["application/json"]["examples"]
        # With the defaults that the client knows.
        assert body["least"]["value"].items() <= json.loads(request.content).items()


@pytest.mark.parametrize("endpoint", DESCRIBED, ids=lambda endpoint: endpoint.id)
def test_the_typescript_sample_calls_the_client(endpoint: Endpoint):
    """Its method is one of the generated client's, and its argument the example's fields."""
    sample = {one.language: one.code for one in samples(endpoint, DOCUMENT)}["typescript"]
    (method,) = re.findall(r"await client\.(\w+)\(", sample)
    assert re.search(rf"^  {method}\(", OPERATIONS, re.MULTILINE)
    if endpoint.body:
        for field in described(endpoint)["requestBody"]["content"]["application/json"]["examples"][
            "least"
        ]["value"]:
            assert f"  {field}: " in sample
