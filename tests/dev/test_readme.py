"""The README's commands and links, tried as written."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.dev_process import environment, run

README = Path("README.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def directory(dev) -> Path:
    """Return a folder in which a dev runs in its default data directory."""
    return dev.data_dir.parent


def answers(block: str, directory: Path) -> list[str]:
    """Run a block; return the JSON objects that it prints."""
    done = subprocess.run(
        ["bash", "-ec", block], capture_output=True, text=True, check=True, cwd=directory
    )
    return re.findall(r"\{.*?\}(?=\{|\s*$)", done.stdout.replace("\n", ""))


def test_a_first_claim_in_a_minute(directory):
    """The README's own commands create a claim and list it."""
    created, listed = answers(BLOCKS[0], directory)
    claim = json.loads(created)
    assert not claim["already_existed"]
    assert claim["claim_id"] in [one["claim_id"] for one in json.loads(listed)["claims"]]


def test_a_claim_with_a_document(directory):
    """The README's own commands mint, upload and link a file; an audit finds it."""
    variables = BLOCKS[0].partition("\n\n")[0]
    (created,) = answers(f"{variables}\n{BLOCKS[1]}", directory)
    minted = json.loads((directory / "minted.json").read_text())
    headers = [f"-H '{name}: {value}'" for name, value in minted["required_headers"].items()]
    (document_id,) = json.loads(created)["document_ids"]
    audit = run("documents", "verify", "--data-dir", ".claim-ledger", "--json", cwd=directory)
    assert " ".join(headers) in BLOCKS[1]
    assert f"/{document_id}.pdf" in minted["storage_path"]
    verdict = json.loads(audit.stdout)
    assert verdict.pop("documents") >= 1  # the quickstart's, too, on the same dev
    assert (audit.returncode, verdict) == (0, {"erased": 0, "findings": []})


def test_the_teams_command_works_on_a_running_dev(directory):
    """`partners list` finds the demonstration's partner."""
    answer = run("partners", "list", "--data-dir", ".claim-ledger", "--json", cwd=directory)
    (partner,) = json.loads(answer.stdout)["partners"]
    assert partner["status"] == "approved"


@pytest.mark.parametrize("command", re.findall(r"claim-ledger ([a-z]+)", README))
def test_every_command_of_the_readme_exists(command):
    """Each command that the README names is one of the CLI's."""
    assert run(command, "--help", env=environment()).returncode == 0


@pytest.mark.parametrize("path", re.findall(r"\]\(([^)#]+)\)", README))
def test_every_link_of_the_readme_exists(path):
    """Each linked document exists."""
    assert path.startswith("http") or Path(path).exists()
