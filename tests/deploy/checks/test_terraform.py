"""deploy/terraform is formatted, and the stored schema is the provider's."""

import json
import subprocess

import pytest

from tests.deploy.provider_schema import STORED, provider_schema
from tests.deploy.terraform import TERRAFORM, blocks

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


def test_files_are_formatted():
    """As `terraform fmt` would."""
    done = subprocess.run(
        ["terraform", "fmt", "-check", "-diff", TERRAFORM],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_stored_schema_is_the_providers():
    """For every resource that is used."""
    used = {(one.kind, one.type) for one in blocks() if one.type}
    assert json.loads(STORED.read_text()) == provider_schema(used)


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
