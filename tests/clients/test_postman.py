"""The Postman collection, run by newman against a running dev."""

import json
from pathlib import Path

import pytest

from tests.clients.npm import run

pytestmark = [pytest.mark.server, pytest.mark.timeout(1_800)]

POSTMAN = Path("clients/postman").resolve()


def test_every_request_of_the_collection_succeeds(dev, tmp_path):
    """In order and in the sandbox: each answer has a status and the members that it promises."""
    if not (POSTMAN / "node_modules").exists():
        run(["npm", "ci"], POSTMAN)
    report = tmp_path / "report.json"
    given = {
        "base_url": dev.facts["base_url"],
        "api_key": dev.facts["test_key"],
        "entity_id": dev.facts["sandbox"]["connected_entity_id"],
    }
    variables = [part for pair in given.items() for part in ("--env-var", "=".join(pair))]
    reporter = ["--reporters", "json", "--reporter-json-export", report]
    run(["npx", "newman", "run", "collection.json", *variables, *reporter], POSTMAN)
    made = json.loads(report.read_text())["run"]
    folders = json.loads((POSTMAN / "collection.json").read_text())["item"]
    requests = [item for folder in folders for item in folder["item"]]
    assert made["failures"] == []
    assert made["stats"]["requests"]["total"] == len(requests) >= 7
    assert made["stats"]["assertions"]["total"] >= len(requests)
