"""Requests made up from the document, good and bad, against a server process: all phases."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.partner_api.gate import API_PATH
from tests.document_store import storage_settings, store_on
from tests.world import MASTER_KEY, Partner, World

SEED = 20260301
SECONDS = 22
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)
"""Not `positive_data_acceptance`: e-mail addresses and page tokens obey more than a schema says."""


@pytest.fixture
async def server(database_url, tmp_path, store_credentials) -> AsyncGenerator[str, None]:
    """Return the address of `claim-ledger serve` on this test's database and a local store."""
    async with store_on(tmp_path, store_credentials) as store:
        with _serving(database_url, tmp_path, storage_settings(store)) as url:
            yield url


@contextmanager
def _serving(database_url: str, tmp_path: Path, storage: dict[str, str]) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    given = {
        "DATABASE_URL": database_url,
        "MASTER_KEYS": MASTER_KEY,
        "PUBLIC_URL": url,
        "SMTP_URL": (tmp_path / "mail").as_uri(),
        "RATE_LIMIT_PER_MINUTE": "1000000",
        "PORT": str(port),
    } | storage
    environment = os.environ | {f"CLAIM_LEDGER_{name}": value for name, value in given.items()}
    with (tmp_path / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("claim-ledger"), "serve"],
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            _wait(url)
            yield url
        finally:
            process.terminate()
            process.wait(20)


def _wait(url: str) -> None:
    for _ in range(200):
        try:
            if httpx.get(f"{url}/health/ready").is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise TimeoutError(url)


@pytest.mark.parametrize("mode", ["live", "test"])
async def test_no_answer_is_outside_the_document(
    mode: str, world: World, server: str, tmp_path: Path
):
    """Whatever is sent, the answer is one that the document has, and never a 500."""
    partner = await world.partner()
    document = (await world.client.get(f"{API_PATH}/openapi.json")).json()
    _name_entities(document, await _entities(world, partner, mode))
    described = tmp_path / "openapi.json"
    described.write_text(json.dumps(document))
    ran = await asyncio.to_thread(_schemathesis, described, server, partner.keys[mode])
    assert ran.returncode == 0, ran.stdout[-10_000:]
    created = await partner.call("GET", "/claims", mode=mode, params=_some(document))
    assert created.json()["claims"] != [], "no request got as far as a claim"


def _schemathesis(described: Path, server: str, key: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [
            Path(sys.executable).with_name("schemathesis"),
            "run",
            described,
            *("--url", f"{server}{API_PATH}"),
            *("--header", f"Authorization: Bearer {key}"),
            *("--phases", "examples,coverage,fuzzing,stateful"),
            *("--checks", ",".join(CHECKS)),
            *("--seed", str(SEED)),
            *("--max-examples", "30"),
            *("--max-time", str(SECONDS)),
            *("--warnings", "off"),
            "--continue-on-failure",
            "--no-color",
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS * 4,
        check=False,
        cwd=described.parent,
    )


async def _entities(world: World, partner: Partner, mode: str) -> list[str]:
    """Return a connected entity, one that disconnected and one never connected."""
    if mode == "test":
        return list(await world.service.sandbox.ensure(partner.partner_id))
    gone = await partner.connected_entity()
    await partner.disconnect(gone)
    return [await partner.connected_entity(), gone, await world.entity()]


def _name_entities(document: dict[str, Any], entities: list[str]) -> None:
    """Have requests name entities that exist; any other is 404 and gets no further."""
    schemas = document["components"]["schemas"]
    listing = document["paths"]["/claims"]["get"]["parameters"][0]
    assert listing["name"] == "entity_id"
    for body in ("ClaimRequest", "UploadRequest"):
        schemas[body]["properties"]["entity_id"] |= {"enum": entities, "examples": entities}
    listing["schema"] |= {"enum": entities}
    listing["example"] = entities[0]
    for path in ("/claims", "/documents/upload-url"):
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        for one in body["examples"].values():
            one["value"]["entity_id"] = entities[0]


def _some(document: dict[str, Any]) -> dict[str, str]:
    return {"entity_id": document["paths"]["/claims"]["get"]["parameters"][0]["example"]}
