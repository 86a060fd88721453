"""`clients/typescript`: generated, tested, packed, installed and used against a running dev."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from service.core.clock import system_clock
from service.webhooks.messages import Messages
from service.webhooks.signing import headers, signing_now
from tests.clients.fault_script import TIMEOUT_SECONDS, claims_in, fault_server, report
from tests.clients.fault_server import EVERY
from tests.clients.npm import run
from tests.clients.samples import samples_of, settings_of
from tests.patience import PATIENCE_SECONDS
from tests.webhooks.secrets import SECRETS

pytestmark = [pytest.mark.server, pytest.mark.timeout(1_800)]

LINES = ("node@20.19.5", "node@22.23.3")
"""Of each line of Node that the client supports, one."""


def generated(folder: Path) -> dict[str, str]:
    """Return the generated files' text by name."""
    return {path.name: path.read_text() for path in (folder / "src/generated").iterdir()}


def test_generating_it_again_changes_nothing(typescript):
    """The committed types and operations are what the document says today."""
    before = generated(typescript)
    run(["npm", "run", "generate"], typescript)
    assert generated(typescript) == before


@pytest.mark.parametrize("node", LINES)
def test_its_own_tests_pass(typescript, node):
    """Retries, errors, pages, uploads and webhooks, on both lines of Node."""
    run([*on(node, typescript), "npm", "test"], typescript)


def on(node: str, folder: Path) -> list[str]:
    """Return what runs a command on a line of Node."""
    npx = ["npx", "--yes", "--package", node, "--"]
    version = run([*npx, "node", "--version"], folder).stdout.strip()
    assert version == node.replace("node@", "v")
    return npx


def blocks(typescript: Path) -> list[str]:
    """Return the programs of its README."""
    return re.findall(r"```js\n(.*?)```", (typescript / "README.md").read_text(), flags=re.DOTALL)


def environment(dev) -> dict[str, str]:
    """Return what the README's programs are configured by."""
    return {
        "CLAIMS_API_KEY": dev.facts["live_key"],
        "CLAIMS_API_URL": dev.facts["base_url"],
        "CLAIMS_ENTITY_ID": dev.facts["entity_id"],
    }


@pytest.mark.parametrize("node", LINES)
def test_the_readmes_programs_run_against_a_dev(typescript, installed, dev, node):
    """A first claim, a repeat, a document, a list and an error, with the installed package."""
    *programs, _webhook = blocks(typescript)
    (installed / "invoice.pdf").write_bytes(b"%PDF-1.7 of a test")
    (installed / "first.mjs").write_text("\n".join(programs))
    command = [*on(node, installed), "node", "first.mjs"]
    said = run(command, installed, environment(dev)).stdout.splitlines()
    listed = httpx.get(
        f"{dev.facts['base_url']}/claims",
        params={"entity_id": dev.facts["entity_id"]},
        headers={"Authorization": f"Bearer {dev.facts['live_key']}"},
        timeout=PATIENCE_SECONDS,
    ).json()["claims"]
    ids = {claim["partner_claim_id"]: claim["claim_id"] for claim in listed}
    assert {"case-1", "case-2"} <= set(ids)
    assert said[0] == ids["case-1"]
    assert re.fullmatch(r"false req_\w+", " ".join(said[1:3]))
    assert said[3:6] == ["case-2 triage", "case-3 triage", "case-1 triage"]
    assert re.fullmatch(r"entity_not_found \S+", said[-1])


def test_the_readmes_webhook_is_verified(typescript, installed):
    """What the service sends to an endpoint is an event, by its secret and by its public key."""
    now = system_clock()
    sent = Messages(cast("Any", None), "https://api.example.com", "live").test("whe_1", 7, now)
    keys = signing_now(SECRETS, "whe_1", 2, now, now)
    given = {"headers": headers(keys, sent.id, now, sent.body)}
    program = (
        f"const body = {json.dumps(sent.body)}; const request = {json.dumps(given)};\n"
        f"{blocks(typescript)[-1]}console.log(event.id, event.type);"
    )
    (installed / "webhook.mjs").write_text(program)
    for key in keys:
        for shown in (key.shown_secret, key.shown_public_key):
            said = run(["node", "webhook.mjs"], installed, {"CLAIMS_WEBHOOK_SECRET": shown}).stdout
            assert said == f"{sent.id} endpoint.test\n"


def test_of_a_thousand_claims_through_faults_none_is_lost_or_doubled(installed, dev, tmp_path):
    """Every call succeeds in the end, and the ledger has each claim once, under the id given."""
    shutil.copy(Path(__file__).with_name("faults.mjs"), installed)
    with fault_server(dev, "typescript") as base_url:
        given = {
            **environment(dev),
            "CLAIMS_API_URL": base_url,
            "CLAIMS": "1000",
            "AT_ONCE": "20",
            "TIMEOUT_MS": str(1_000 * TIMEOUT_SECONDS),
        }
        told = json.loads(run(["node", "faults.mjs"], installed, given).stdout)
        happened = report(base_url)
    (tmp_path / "report.json").write_text(json.dumps(happened))
    expected = {f"fault-{number}" for number in range(1_000)}
    assert set(told["created"]) == expected
    assert claims_in(dev, dev.facts["entity_id"], "fault-") == Counter(told["created"].items())
    assert told["created"].items() <= told["listed"].items()
    assert set(EVERY) <= set(happened["faults"]), "some fault was never tried"


def test_the_references_samples_compile_and_succeed(typescript, installed, dev):
    """With strict types, and with the sandbox's own ids."""
    written = samples_of(dev, "typescript")
    programs = {f"sample_{name}": program for name, program in written.items()}
    for name, program in programs.items():
        (installed / f"{name}.ts").write_text(program)
    tsc, types = (typescript / "node_modules" / one for one in (".bin/tsc", "@types"))
    strict = ["--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck"]
    where = ["--typeRoots", types, "--types", "node", "--outDir", "compiled"]
    files = [f"{name}.ts" for name in programs]
    (installed / "package.json").write_text(
        json.dumps(json.loads((installed / "package.json").read_text()) | {"type": "module"})
    )
    run([tsc, *strict, *where, *files], installed)
    for name in programs:
        run(["node", f"compiled/{name}.js"], installed, settings_of(dev))
