"""Generated requests, good and bad: every answer conforms to the OpenAPI document.

Schemathesis makes them up, the same ones in every run: examples, each constraint at and beyond its
limits, and some at random. The application answers in this process. Sequences of requests follow
the document's links.
"""

import asyncio
import json
from copy import deepcopy
from functools import cache
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from requests import Request
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.core.transport import Response
from schemathesis.generation import GenerationMode
from schemathesis.generation.hypothesis.builder import (
    HypothesisTestConfig,
    HypothesisTestMode,
    create_test,
)

from service.partner_api.gate import API_PATH
from tests.conformance import described
from tests.document_store import Documents
from tests.tables import every_row
from tests.world import PUBLIC_URL

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.followed]

RANDOM_EXAMPLES = 10
"""Of each endpoint. Bodies at random are for tests/http/test_decoding_generated.py."""
SEQUENCES, STEPS = 12, 6
"""Requests that follow one another, along the document's links where there are some."""
BEYOND_THE_SCHEMA = {"defendant", "user_email", "page_token", "after", "document_refs"}
"""Fields with rules that a schema cannot say: of email addresses, tokens, cursors, uploads."""
ENTITIES = ("ent_connected", "ent_disconnected", "ent_unconnected")
"""Stand for entities that exist; any other is 404 and gets no further."""
CHECK_NAMES = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
)
"""Not `positive_data_acceptance`: email addresses and page tokens obey more than a schema says.

Nor `ignored_auth`: test_authentication.py tries every credential at every endpoint.
"""


STEADY = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
"""The same requests in every run."""


@cache
def cases() -> list[Any]:
    """Return the cases, which are the same for both modes."""
    schema = schemathesis.openapi.from_dict(_with_entities(deepcopy(described())))
    steady = settings(STEADY, max_examples=RANDOM_EXAMPLES)
    config = HypothesisTestConfig(
        project=schema.config, modes=list(HypothesisTestMode), settings=steady
    )
    found: list[Any] = []

    def keep(case: Any) -> None:
        found.append(case)

    for operation in schema.get_all_operations():
        create_test(operation=operation.ok(), test_func=keep, config=config)()
    return found


def _with_entities(document: dict[str, Any], *entities: str) -> dict[str, Any]:
    """Make requests name one of these entities, by default of all three."""
    entities = entities or ENTITIES
    schemas = document["components"]["schemas"]
    listing = document["paths"]["/claims"]["get"]["parameters"][0]
    assert listing["name"] == "entity_id"
    for body in ("ClaimRequest", "UploadRequest"):
        schemas[body]["properties"]["entity_id"] |= {"enum": entities, "examples": entities}
    listing["schema"] |= {"enum": entities}
    listing["example"] = ENTITIES[0]
    for path in ("/claims", "/documents/upload-url"):
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        for one in body["examples"].values():
            one["value"]["entity_id"] = ENTITIES[0]
    return json.loads(json.dumps(document))


def request_of(case: Any, key: str, entities: list[str]) -> httpx.Request:
    """Return a case as a request, with a key unless the case is about credentials."""
    given = case.as_transport_kwargs(base_url=f"{PUBLIC_URL}{API_PATH}")
    prepared = Request(
        given["method"],
        given["url"],
        headers=given["headers"],
        params=given.get("params"),
        data=given.get("data"),
        json=given.get("json"),
        cookies=given.get("cookies"),
    ).prepare()
    url, body = prepared.url or "", prepared.body or b""
    content = body.encode() if isinstance(body, str) else body
    for placeholder, entity_id in zip(ENTITIES, entities, strict=True):
        url = url.replace(placeholder, entity_id)
        content = content.replace(placeholder.encode(), entity_id.encode())
    headers = {name: text for name, text in prepared.headers.items() if name != "Content-Length"}
    if not _is_about_authorization(case):
        headers |= {"Authorization": f"Bearer {key}"}
    latin = [
        (one.encode("latin-1"), two if isinstance(two, bytes) else two.encode("latin-1"))
        for one, two in headers.items()
    ]
    return httpx.Request(prepared.method or "", url, headers=latin, content=content)


def _is_about_authorization(case: Any) -> bool:
    return getattr(case.meta.phase.data, "parameter", None) == "Authorization"


def check_accepted(answer: httpx.Response) -> None:
    """Check that a request which the document allows was not refused for its form."""
    if answer.status_code == 400 and answer.json()["code"] == "validation_failed":
        assert answer.json()["details"]["fieldErrors"].keys() <= BEYOND_THE_SCHEMA, answer.text


@pytest.mark.timeout(600)  # some 800 requests: half a minute where other work shares the machine
@pytest.mark.parametrize("mode", ["live", "test"])
async def test_no_answer_is_outside_the_document(documents: Documents, mode: str):
    """Every answer is documented, and none is a 500."""
    load_all_checks()
    checks = CHECKS.get_by_names(CHECK_NAMES)
    world = documents.world
    partner = await world.partner()
    if mode == "test":
        entities = list(await partner.sandbox())
    else:
        entities = [await partner.connected_entity() for _ in range(2)] + [await world.entity()]
        await partner.disconnect(entities[1])
    statuses = set()
    with every_row() as row:
        for case in cases():
            request = request_of(case, partner.keys[mode], entities)
            with row(request.method, request.url, request.content[:200]):
                answer = await world.client.send(request)
                statuses.add(answer.status_code)
                if answer.status_code == 404 and answer.json()["code"] == "not_found":
                    assert "%" in request.url.raw_path.decode()  # no path of ours has it
                    continue
                case.validate_response(answer, checks=checks)
                if case.meta.generation.mode is GenerationMode.POSITIVE:
                    check_accepted(answer)
    assert statuses >= {200, 201, 400, 401, 403, 404, 405}
    listed = await partner.call("GET", "/claims", mode=mode, params={"entity_id": entities[0]})
    assert listed.json()["claims"] != [], "no request got as far as a claim"


async def test_links_lead_from_an_upload_to_the_list(documents: Documents):
    """Requests made from the answers to earlier ones get as far as a claim with a document."""
    load_all_checks()
    world, loop = documents.world, asyncio.get_running_loop()
    partner = await world.partner()
    good = SchemathesisConfig.from_dict({"generation": {"mode": "positive"}})
    document = _with_entities(deepcopy(described()), ENTITIES[0])
    schema = schemathesis.openapi.from_dict(document, config=good)
    linked: list[tuple[str, httpx.Response]] = []

    async def send(case: Any, entity: str) -> httpx.Response:
        answer = await world.client.send(request_of(case, partner.keys["live"], [entity] * 3))
        if case.path == "/documents/upload-url" and answer.status_code == 201:
            await documents.put(answer)
        return answer

    class Sequence(schema.as_state_machine()):
        """Sends what schemathesis makes up to the application in the test's own loop."""

        def setup(self) -> None:
            # Each has an entity of its own: a claim that is made up again is new again, so that the
            # same choices have the same answers, as the generator expects.
            self.entity = asyncio.run_coroutine_threadsafe(
                partner.connected_entity(), loop
            ).result()

        def call(self, case: Any, **_more: Any) -> Response:
            answer = asyncio.run_coroutine_threadsafe(send(case, self.entity), loop).result()
            linked.append((f"{case.method} {case.path}", answer))
            return Response.from_any(answer)

        def validate_response(self, response: Response, case: Any, **_more: Any) -> None:
            case.validate_response(response, checks=CHECKS.get_by_names(CHECK_NAMES))

    steady = settings(STEADY, max_examples=SEQUENCES, stateful_step_count=STEPS)
    await asyncio.to_thread(Sequence.run, settings=steady)
    made = [one.json() for name, one in linked if (name, one.status_code) == ("POST /claims", 201)]
    assert any(one["document_ids"] for one in made), "no upload led to a claim"
    lists = [one for name, one in linked if name == "GET /claims"]
    assert any(one.json().get("claims") for one in lists), "no claim led to its list"
