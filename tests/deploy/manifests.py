"""The manifests of deploy/kubernetes, read as they stand: what a workload is given and may do."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
BASE, OVERLAYS = KUBERNETES / "base", KUBERNETES / "overlays"
OUR_IMAGE = "claim-ledger"
Manifest = dict[str, Any]


def manifests(*directories: Path) -> Iterator[Manifest]:
    """Yield every document below some directories, Kustomize's own files left out."""
    for directory in directories:
        for path in sorted(directory.rglob("*.yaml")):
            if path.name != "kustomization.yaml":
                yield from _documents(path)


def named(kind: str, name: str, *directories: Path) -> Manifest:
    """Return the one manifest of a name."""
    (found,) = [
        one
        for one in manifests(*directories)
        if (one["kind"], one["metadata"]["name"]) == (kind, name)
    ]
    return found


def settings_of(overlay: str) -> dict[str, str]:
    """Return the settings that every workload of ours has from the overlay's config map."""
    found: dict[str, str] = {}
    for path in (BASE / "settings.env", OVERLAYS / overlay / "settings.env"):
        found |= dict(line.split("=", 1) for line in path.read_text().splitlines() if line)
    return found


class Workload(NamedTuple):
    """A deployment or a job of the base."""

    name: str
    pod: Manifest
    replicas: int

    @property
    def container(self) -> Manifest:
        """Its only container of our image."""
        (found,) = [one for one in self.pod["containers"] if one["image"] == OUR_IMAGE]
        return found

    def environment(self, overlay: str) -> dict[str, str]:
        """Return the variables that its process has."""
        given = settings_of(overlay) if "envFrom" in self.container else {}
        return given | {one["name"]: one["value"] for one in self.container["env"]}

    def secret_files(self) -> dict[str, tuple[str, str]]:
        """Return the secret and the key that are mounted at each path; of whole secrets, all."""
        mounts = {one["name"]: one["mountPath"] for one in self.container["volumeMounts"]}
        found: dict[str, tuple[str, str]] = {}
        for volume in self.pod["volumes"]:
            for name, items in _secrets(volume):
                keys = items or [{"key": k, "path": k} for k in _keys_of(name)]
                for one in keys:
                    found[f"{mounts[volume['name']]}/{one['path']}"] = (name, one["key"])
        return found


def workloads() -> dict[str, Workload]:
    """Return the base's workloads by their component."""
    return {
        one["metadata"]["labels"]["app.kubernetes.io/component"]: Workload(
            one["metadata"]["name"], one["spec"]["template"]["spec"], one["spec"].get("replicas", 0)
        )
        for one in manifests(BASE)
        if one["kind"] in {"Deployment", "Job"}
    }


def ingress_snippets() -> dict[str, str]:
    """Return what the proxy's sections get: its `backend`, by the ingress, and its `frontend`."""
    ingress = named("Ingress", "claim-ledger", OVERLAYS / "production")["metadata"]["annotations"]
    (settings,) = _documents(KUBERNETES / "controller.yaml")
    return {
        "backend": ingress["haproxy.org/backend-config-snippet"],
        "frontend": settings["data"]["frontend-config-snippet"],
    }


def remote_keys(*directories: Path) -> dict[tuple[str, str], str]:
    """Return the vault's name of each key of each secret."""
    return {
        (one["spec"]["target"]["name"], row["secretKey"]): row["remoteRef"]["key"]
        for one in manifests(*directories)
        if one["kind"] == "ExternalSecret"
        for row in one["spec"]["data"]
    }


@cache
def _documents(path: Path) -> list[Manifest]:
    """Return a file's documents, which no test changes; by libyaml, ten times as fast."""
    return list(yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader))


def _secrets(volume: Manifest) -> Iterator[tuple[str, list[Manifest]]]:
    if "secret" in volume:
        yield volume["secret"]["secretName"], volume["secret"].get("items", [])
    for source in volume.get("projected", {}).get("sources", []):
        yield source["secret"]["name"], source["secret"].get("items", [])


def _keys_of(secret: str) -> list[str]:
    return [key for name, key in remote_keys(BASE) if name == secret]
