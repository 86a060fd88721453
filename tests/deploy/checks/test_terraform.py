"""deploy/terraform is formatted, valid and can be planned; the stored schema is the provider's."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.provider_schema import STORED, provider_schema, used
from tests.deploy.terraform import TERRAFORM

pytest.importorskip("kubernetes_validate")  # of the group that `just check-deploy` has
pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]

CHECKOV = ("uvx", "checkov==3.3.30", "--quiet", "--compact", "--output", "json")
OFFLINE = ("--skip-download", "--download-external-modules", "false")
_DOCUMENTS = "what is deleted stays for a week or two (soft delete), and uploads never overwrite"
ALLOWED = {
    "CKV2_GCP_13": "a line for each statement; Query Insights has durations without their values",
    "CKV2_GCP_18": "a network without rules refuses what comes in; Autopilot adds what nodes need",
    "CKV_GCP_6": "ENCRYPTED_ONLY refuses clear text; logins have passwords, not certificates",
    "CKV_GCP_12": "Autopilot enforces network policies, and the argument is not its own",
    "CKV_GCP_61": "Autopilot sees traffic inside a node; flow logs are the subnetwork's",
    "CKV_GCP_62": "the bucket of access logs: its own would go around in a circle",
    "CKV_GCP_65": "a group is the operators' own: it takes a Google Workspace",
    "CKV_GCP_69": "Autopilot always has the metadata server",
    "CKV_GCP_78": f"{_DOCUMENTS}; the archive's retention takes the place of versions",
    "CKV_GCP_108": "asks the name server at each connection, all of which are the cluster's own",
    "CKV_GCP_109": "ERROR is what PostgreSQL has where nothing is said",
    "CKV_GCP_110": "every write is an event that says who made it; statements have personal data",
    "CKV_GCP_111": "statements have personal data",
}
"""What checkov finds, and why it may stay."""
STAND_IN = Path(__file__).parents[1] / "stand_in_provider.py"
VALIDATE, TEST = ("validate",), ("test",)


@pytest.fixture
def copy(tmp_path, monkeypatch) -> Path:
    """A copy of deploy/terraform, to which Terraform finds the stand-in for Google's provider."""
    providers, data = tmp_path / "providers", tmp_path / "data"
    providers.mkdir()
    data.mkdir()
    (providers / "terraform-provider-google").symlink_to(STAND_IN)
    settings = tmp_path / "terraform.rc"
    overrides = f'dev_overrides {{ "hashicorp/google" = "{providers}" }}'
    settings.write_text(f"provider_installation {{\n  {overrides}\n}}\n")
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(settings))
    monkeypatch.setenv("TF_DATA_DIR", str(data))
    monkeypatch.setenv("CHECKPOINT_DISABLE", "1")
    own = shutil.ignore_patterns(".terraform*")
    return shutil.copytree(TERRAFORM, tmp_path / "configuration", ignore=own)


def terraform(command: tuple[str, ...], folder: Path) -> tuple[int, str]:
    """Return Terraform's exit status and what it said, on one line."""
    done = subprocess.run(
        ["terraform", *command, "-no-color"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, " ".join(done.stdout.replace("│", "").split())


def test_files_are_formatted():
    """As `terraform fmt` would."""
    done = subprocess.run(
        ["terraform", "fmt", "-check", "-diff", "-recursive", TERRAFORM],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_stored_schema_is_the_providers():
    """For every resource that is used."""
    assert json.loads(STORED.read_text()) == provider_schema(used())


def test_policies_are_held():
    """Every finding of checkov's is listed, with its reason, and nothing is asked of a network."""
    done = subprocess.run(
        [*CHECKOV, *OFFLINE, "--framework", "terraform", "--directory", TERRAFORM],
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    assert found["summary"]["passed"] > 70
    assert found["summary"]["parsing_errors"] == 0
    assert {one["check_id"] for one in found["results"]["failed_checks"]} == set(ALLOWED)


def test_it_is_valid_and_can_be_planned(copy):
    """By Terraform itself, with the provider's schema and made-up answers of Google's."""
    status, said = terraform(VALIDATE, copy)
    assert (status, "The configuration is valid" in said) == (0, True), said
    status, said = terraform(TEST, copy)
    assert (status, "2 passed, 0 failed" in said) == (0, True), said


@pytest.mark.parametrize(
    ("command", "file", "right", "wrong", "said"),
    [
        (VALIDATE, "cluster.tf", '["nodes"].email', '["nodes"].mail', 'attribute named "mail"'),
        (VALIDATE, "storage.tf", "var.browser_origins)", "var.origins)", "undeclared input"),
        (VALIDATE, "storage.tf", "access_logs.name", "logs.name", "undeclared resource"),
        (VALIDATE, "identities.tf", "setproduct(", "product(", "no function named"),
        (VALIDATE, "storage.tf", "retention_duration_seconds = ", "retention = ", "Unsupported"),
        (VALIDATE, "storage.tf", "age = 1", 'age = "a day"', "a number is required"),
        (TEST, "identities.tf", "of[each.value[1]]", "of[each.value[0]]", "Invalid index"),
        (TEST, "storage.tf", "? [1] : []", "? [] : [1]", "although no origin is named"),
        (TEST, "variables.tf", "= false", "= true", "although nobody said so"),
    ],
)
def test_what_is_wrong_is_refused(copy, command, file, right, wrong, said):
    """References, variables, functions, arguments, types; and what only a plan comes upon."""
    text = (copy / file).read_text()
    assert right in text
    (copy / file).write_text(text.replace(right, wrong))
    status, answer = terraform(command, copy)
    assert (status, said in answer) == (1, True), answer
