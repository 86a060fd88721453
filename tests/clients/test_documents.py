"""What the README and the reference show, and no other test runs, on a running dev."""

import json
import os
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.clients.samples import samples_of, settings_of
from tests.dev_process import PROGRAM
from tests.patience import PATIENCE_SECONDS
from tests.snippets import blocks

pytestmark = [pytest.mark.server, pytest.mark.timeout(1_800)]

VERIFIER = "deploy/verify_export.py"


def shell(text: str, cwd: Path, **given: str) -> str:
    """Run commands as a reader would paste them; return what they print."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", **given},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_readmes_audit_is_carried_out(dev):
    """The log is verified and exported; the export and a receipt are good without a database."""
    *_, on_dev, elsewhere = blocks(Path("README.md"), "sh")
    live = {"Authorization": f"Bearer {dev.facts['live_key']}"}
    claim = {
        "entity_id": dev.facts["entity_id"],
        "partner_claim_id": "case-of-an-auditor",
        "defendant": {"name": "Debtor Ltd"},
        "invoices": [{"total_amount_for_invoice": "10.00"}],
    }
    made = httpx.post(
        f"{dev.facts['base_url']}/claims", headers=live, json=claim, timeout=PATIENCE_SECONDS
    ).json()
    folder = dev.data_dir.parent

    def pasted(text: str) -> str:
        text = text.replace("uv run ", "").replace("CLAIM_ID", made["claim_id"])
        return text.replace(VERIFIER, str(Path(VERIFIER).resolve()))

    shell(pasted(on_dev), folder)
    key = shell("claim-ledger audit public-key --data-dir .claim-ledger --json", folder)
    offline = elsewhere.replace("[--checkpoint OLD]", "").replace("KEY", public_key(key))
    assert "claim-ledger audit check receipt.json --public-key KEY" in elsewhere
    assert (
        "claim-ledger audit check receipt.json --public-key KEY"
        in Path("docs/partners/receipts.md").read_text()
    )
    said = shell(pasted(offline), folder)
    assert (said.startswith("OK: "), said.count("ok  "), said.count('"ok": true')) == (True, 2, 1)


def public_key(answer: str) -> str:
    """Return the key that offline checks are given."""
    return json.loads(answer)["keys"][0]["public_key"]


def test_the_references_commands_succeed(dev, tmp_path):
    """Each endpoint's command in curl does what it shows, with the sandbox's own ids."""
    answer, settings = tmp_path / "answer.json", settings_of(dev)
    for name, command in samples_of(dev, "curl").items():
        told = shell(f"{command} -o answer.json -w '%{{http_code}}'", tmp_path, **settings)
        assert told in {"200", "201"}, (name, answer.read_text())
