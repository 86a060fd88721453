"""`clients/python`: generated, built, installed into an empty environment, and used on a dev."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from tests.clients.fault_script import TIMEOUT_SECONDS, claims_in, fault_server, report
from tests.clients.samples import samples_of, settings_of
from tests.snippets import blocks

pytestmark = pytest.mark.server

PYTHON = Path("clients/python").absolute()
VERSIONS = ("3.11", "3.12", "3.13")
CLAIMS = 1_000
FAULTS = {
    *("cut_before", "cut_after", "cut_within", "slow", "internal_error", "bad_gateway"),
    *("half_json", "html", "other_json", "empty"),
    *("rate_limited", "service_unavailable", "unanswered_503", "claim_conflict"),
}


def run(*command: str | Path, cwd: Path, **given: str) -> str:
    """Run a program; return what it prints. It imports nothing of this project's environment."""
    own = ("PYTHON", "VIRTUAL_ENV")
    kept = {name: one for name, one in os.environ.items() if not name.startswith(own)}
    done = subprocess.run(
        command, cwd=cwd, env=kept | given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def interpreter(version: str) -> Path:
    """Return a Python of this version on this machine; skip the test where there is none."""
    asked = ["pyenv", "whence", "--path", f"python{version}"] if shutil.which("pyenv") else ["true"]
    of_pyenv = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    for path in (sys.executable, shutil.which(f"python{version}"), *of_pyenv):
        shown = subprocess.run([path or "false", "-V"], capture_output=True, text=True, check=False)
        if shown.stdout.startswith(f"Python {version}."):
            return Path(cast("str", path))
    pytest.skip(f"there is no Python {version} here")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """Return the built wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    run("uv", "build", "-q", "--wheel", "--out-dir", folder, PYTHON, cwd=folder)
    return next(folder.glob("*.whl"))


def installed(wheel: Path, version: str, folder: Path) -> Path:
    """Return the Python of an empty environment into which the wheel was installed."""
    run("uv", "venv", "-q", "--python", interpreter(version), folder / "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    run("uv", "pip", "install", "-q", "--python", python, f"{wheel}[ed25519]", cwd=folder)
    return python


@pytest.fixture(scope="session")
def python(wheel, tmp_path_factory) -> Path:
    """Return one of this test's own version."""
    version = "{}.{}".format(*sys.version_info)
    return installed(wheel, version, tmp_path_factory.mktemp("python"))


def settings(dev, **more: str) -> dict[str, str]:
    """Return what the programs are configured by."""
    return {
        "CLAIMS_API_KEY": dev.facts["live_key"],
        "CLAIMS_API_URL": dev.facts["base_url"],
        "CLAIMS_ENTITY_ID": dev.facts["entity_id"],
        "CLAIMS_WEBHOOK_SECRET": f"whsec_{base64.b64encode(bytes(32)).decode()}",
    } | more


def test_generating_it_again_changes_nothing():
    """Types, errors, rules and the synchronous client are those of today's document."""
    generate = Path("clients/python/generate.py").absolute()
    run("uv", "run", "--no-sync", "python", generate, "--check", cwd=Path.cwd())


@pytest.mark.parametrize("version", VERSIONS)
def test_the_readmes_programs_run_against_a_dev(wheel, version, dev, tmp_path):
    """A first claim, a repeat, a document, many at once, an error, events, a webhook's refusal."""
    python = installed(wheel, version, tmp_path)
    assert f"Python {version}." in run(python, "-V", cwd=tmp_path)
    programs = [
        one.replace("case-", f"case-{version}-") for one in blocks(PYTHON / "README.md", "python")
    ]
    said = []
    for number, program in enumerate(programs):
        path = tmp_path / f"program_{number}.py"
        path.write_text(program)
        said.append(run(python, path, cwd=tmp_path, **settings(dev)))
    first, repeat, document, many, error, events, _ = said
    found = dict(claims_in(dev, dev.facts["entity_id"], "").keys())
    assert first.splitlines()[0] == f"{found[f'case-{version}-1001']} False"
    assert f"case-{version}-1001 triage" in first
    assert first.splitlines()[-1] == "['triage']"
    assert re.fullmatch(r"None\nFalse\nreq_\w+\n", repeat)
    assert re.fullmatch(r"\['doc_\w+'\]\n", document)
    assert many == "10\n"
    assert re.search(r"req_\w+$", error)
    assert f"claim.created {found[f'case-{version}-1002']}" in events
    webhook = tmp_path / "webhook.py"
    webhook.write_text(programs[-1] + "print(receive(b'{}', {}))\n")
    assert run(python, webhook, cwd=tmp_path, **settings(dev)) == "400\n"


def test_the_references_samples_succeed(python, dev, tmp_path):
    """Each endpoint's sample does what it shows, with the sandbox's own ids."""
    for name, program in samples_of(dev, "python").items():
        path = tmp_path / f"{name}.py"
        path.write_text(program)
        run(python, path, cwd=tmp_path, **settings_of(dev))


@pytest.mark.timeout(900)  # a thousand claims, each through some faults
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_no_claim_is_lost_or_doubled_by_faults(python, dev, kind):
    """Refused, cut off, late and wrong answers: what the client was told is what the ledger has."""
    program = Path("tests/clients/faults.py").absolute()
    entity_id, prefix = dev.facts["entity_id"], f"faults-{kind}"
    with fault_server(dev, kind) as base_url:
        given = settings(dev, CLAIMS_API_URL=base_url, CLAIMS_TIMEOUT=str(TIMEOUT_SECONDS))
        told = json.loads(
            run(python, program, kind, prefix, str(CLAIMS), cwd=python.parent, **given)
        )
        seen = report(base_url)
    claims = claims_in(dev, entity_id, prefix)
    assert len(told["created"]) == CLAIMS
    assert set(claims.values()) == {1}
    assert set(claims) == {tuple(pair) for pair in told["created"] + told["attached"]}
    assert {claim_id for _, claim_id in claims} <= set(told["listed"])
    assert len(set(told["listed"])) == len(told["listed"])
    assert len(set(told["events"])) == len(told["events"])
    assert seen["faults"].keys() >= FAULTS
    links = [one for one in told["links"] if one.startswith("http")]
    assert 0 < len(set(links)) == len(links) < len(told["links"])
    assert seen["forwarded"]["POST /v1/connect-requests"] <= len(told["links"])
