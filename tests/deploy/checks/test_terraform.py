"""deploy/terraform is formatted, and the stored schema is the provider's."""

import json
import subprocess

import pytest

from tests.deploy.provider_schema import STORED, provider_schema
from tests.deploy.terraform import TERRAFORM, blocks

pytest.importorskip("kubernetes_validate")  # of the group that `just check-deploy` has
pytestmark = pytest.mark.server


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
