"""The overlays build, and hold to the schemas of their kinds and to checkov's policies."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.manifests import KUBERNETES, OVERLAYS

kubernetes_validate = pytest.importorskip("kubernetes_validate")  # `just check-deploy` has it
ROOT = Path(__file__).parents[3]
MODELS = ROOT / "build" / "models"
"""Where `just check-deploy` puts npm's models of the custom resources."""
CUSTOM = ("cnpg.io", "external-secrets.io", "monitoring.coreos.com")
VERSION = "1.34"
CHECKOV = ("uvx", "checkov==3.3.30", "--quiet", "--compact", "--output", "json")
ALLOWED = {
    "CKV_K8S_43": "a digest is a release's: the registry's tags cannot be moved (deploy/terraform)",
    "CKV_K8S_15": "as above: what was pulled under a tag stays what it is",
}
"""What checkov finds, and why it may stay."""

pytestmark = pytest.mark.server


@cache
def built(overlay: str) -> list[dict[str, Any]]:
    """Return what an overlay makes."""
    return made_by(OVERLAYS / overlay)


def made_by(directory: Path) -> list[dict[str, Any]]:
    """Return what `kubectl kustomize` makes of a directory."""
    done = subprocess.run(
        ["kubectl", "kustomize", directory], capture_output=True, text=True, check=True
    )
    return list(yaml.safe_load_all(done.stdout))


def is_custom(one: dict[str, Any]) -> bool:
    """Return whether a resource's kind is not Kubernetes' own."""
    return any(group in one["apiVersion"] for group in CUSTOM)


def faults(resources: list[dict[str, Any]]) -> list[str]:
    """Return what npm's models find in custom resources."""
    done = subprocess.run(
        ["node", Path(__file__).with_name("custom.mjs"), MODELS],
        input=json.dumps(resources),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("overlay", ["development", "production"])
def test_resources_hold_to_their_schemas(overlay):
    """Strictly: no field is unknown."""
    for one in built(overlay):
        if not is_custom(one):
            kubernetes_validate.validate(one, VERSION, strict=True)
    assert faults([one for one in built(overlay) if is_custom(one)]) == []


@pytest.mark.parametrize("component", ["cloud-sql", "time-stamps", "traces", "witnesses"])
def test_components_that_no_overlay_has_build(tmp_path, component):
    """Beside the base; what they make holds to its schema."""
    shutil.copytree(KUBERNETES, tmp_path / "kubernetes")
    overlay = tmp_path / "kubernetes" / "overlays" / "trial"
    overlay.mkdir()
    given = {"resources": ["../../base"], "components": [f"../../components/{component}"]}
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(given))
    resources = made_by(overlay)
    for one in resources:
        if not is_custom(one):
            kubernetes_validate.validate(one, VERSION, strict=True)
    assert faults([one for one in resources if is_custom(one)]) == []


def test_the_models_find_faults():
    """Misspelt fields, and required ones that are missing."""
    bad = {
        ("external-secrets.io/v1", "ExternalSecret"): {"data": [{"secretKey": "a"}]},
        ("external-secrets.io/v1", "SecretStore"): {"provider": {"fake": {"daata": []}}},
        ("monitoring.coreos.com/v1", "PodMonitor"): {"podMetricsEndpoints": [{"portt": "a"}]},
        ("postgresql.cnpg.io/v1", "Cluster"): {"postgresql": {"synchronus": {"number": 1}}},
        ("barmancloud.cnpg.io/v1", "ObjectStore"): {"configuration": {"destination": "gs://a"}},
    }
    for (version, kind), spec in bad.items():
        one = {"apiVersion": version, "kind": kind, "metadata": {"name": "bad"}, "spec": spec}
        assert faults([one]), kind


def test_policies_are_held(tmp_path):
    """Every finding of checkov's is listed, with its reason."""
    path = tmp_path / "production.yaml"
    path.write_text(yaml.safe_dump_all(built("production")))
    done = subprocess.run(
        [*CHECKOV, "--framework", "kubernetes", "--file", path],
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    assert found["summary"]["passed"] > 200
    assert {one["check_id"] for one in found["results"]["failed_checks"]} == set(ALLOWED)
