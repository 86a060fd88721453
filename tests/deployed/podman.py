"""Podman for the tests: an overlay of deploy/kubernetes, played as far as Podman goes.

What the cluster would do is done here: External Secrets (the store's values become files), jobs
(their pod is played), and a pod's own disk, which is a directory. Probes are left out: Podman would
run a `curl` that the image does not have.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from tests.deployed import docker

OVERLAYS = docker.ROOT / "deploy" / "kubernetes" / "overlays"
IMAGE = f"localhost/{docker.IMAGE}:latest"
_GROUP = 10001
"""As which the kubelet lets a pod read its secrets: its `fsGroup`."""
_LIMITS = '[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n'
"""Podman asks for more than a container that it runs in may have."""
_OF_THE_CLUSTER = ("startupProbe", "livenessProbe", "readinessProbe", "lifecycle", "ports")
Manifest = dict[str, Any]


def missing() -> str:
    """Return what is not here of what this takes, or nothing."""
    lacking = [name for name in ("podman", "kubectl") if shutil.which(name) is None]
    return ", ".join(lacking) or ("" if docker.answers() else "a Docker that answers")


class Podman:
    """Plays workloads of an overlay with the machine's own network; secrets are files of `home`."""

    def __init__(self, home: Path) -> None:
        """Load the service's image; `home` is a directory that everybody can read."""
        self._home = home
        self._environment = os.environ | {"CONTAINERS_CONF": str(home / "containers.conf")}
        (home / "containers.conf").write_text(_LIMITS)
        packed = home / "image.tar"
        docker.docker("save", "--output", packed, docker.built())
        self.run("load", "--input", packed)
        packed.unlink()

    def run(self, *words: str | Path) -> str:
        """Run a command of Podman's, which must succeed; return its output."""
        done = subprocess.run(
            ["podman", *words],
            cwd=self._home,  # where no directory has an image's name, which would be built
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"podman {words[0]}: {(done.stdout + done.stderr)[-3000:]}"
        return done.stdout.strip()

    def answers(self, container: str, *words: str) -> bool:
        """Return whether a command ends with 0 in a container."""
        command = ["podman", "exec", container, *words]
        done = subprocess.run(command, env=self._environment, capture_output=True, check=False)
        return done.returncode == 0

    def logs(self, container: str) -> str:
        """Return what a container has printed."""
        command = ["podman", "logs", container]
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    def exit_code(self, container: str) -> int:
        """Wait until a container ends, and return its exit code."""
        return int(self.run("wait", container))

    @contextmanager
    def played(
        self, overlay: "Overlay", name: str, given: Mapping[str, str]
    ) -> Iterator[tuple[str, str]]:
        """Play a workload until the block ends; yield the names of its pod and of its container.

        `given` are settings that differ on one machine, such as ports.
        """
        workload = deepcopy(overlay.workload(name))
        template = workload["spec"]["template"]
        unique = f"{name}-{uuid4().hex[:8]}"
        self._adapt(template["spec"], overlay)
        # Podman, other than Kubernetes, lets a config map win over what the container itself has.
        settings = deepcopy(overlay.of("ConfigMap"))
        for one in settings:
            one["data"] |= given
        is_job = workload["kind"] == "Job"
        played = (
            {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]} if is_job else workload
        )
        played["metadata"] = {"name": unique, "labels": template["metadata"]["labels"]}
        path = self._home / f"{unique}.yaml"
        path.write_text(yaml.safe_dump_all([*settings, played]))
        pod = unique if is_job else f"{unique}-pod-0"
        (container,) = template["spec"]["containers"]
        try:
            self.run("kube", "play", "--network", "host", path)
            yield pod, f"{pod}-{container['name']}"
        finally:
            self.run("pod", "rm", "--force", "--ignore", pod)

    def _adapt(self, pod: Manifest, overlay: "Overlay") -> None:
        (container,) = pod["containers"]
        container["image"] = IMAGE
        for part in _OF_THE_CLUSTER:
            container.pop(part, None)
        for volume in pod["volumes"]:
            if volume.pop("ephemeral", None):
                volume["emptyDir"] = {}
            if "emptyDir" not in volume:
                directory = self._home / uuid4().hex
                _write_secrets(directory, volume, overlay.secrets)
                name = volume["name"]
                volume.clear()
                volume |= {"name": name, "hostPath": {"path": str(directory)}}


class Overlay:
    """What `kubectl kustomize` makes of an overlay, and the secrets that its store would give."""

    def __init__(
        self, name: str, secrets: Mapping[str, Mapping[str, str]], moved: Mapping[str, str]
    ) -> None:
        """`secrets` are those of operators; `moved` says what the store's values have instead."""
        done = subprocess.run(
            ["kubectl", "kustomize", OVERLAYS / name], capture_output=True, text=True, check=True
        )
        self._documents: list[Manifest] = list(yaml.safe_load_all(done.stdout))
        (store,) = self.of("SecretStore")
        values = {row["key"]: row["value"] for row in store["spec"]["provider"]["fake"]["data"]}
        for before, after in moved.items():
            values = {key: text.replace(before, after) for key, text in values.items()}
        self.secrets = {
            one["spec"]["target"]["name"]: {
                row["secretKey"]: values[row["remoteRef"]["key"]] for row in one["spec"]["data"]
            }
            for one in self.of("ExternalSecret")
        } | dict(secrets)

    def of(self, kind: str) -> list[Manifest]:
        """Return the documents of a kind."""
        return [one for one in self._documents if one["kind"] == kind]

    def workload(self, name: str) -> Manifest:
        """Return a deployment or a job."""
        both = [*self.of("Deployment"), *self.of("Job")]
        (found,) = [one for one in both if one["metadata"]["name"] == name]
        return found


def _write_secrets(
    directory: Path, volume: Manifest, secrets: Mapping[str, Mapping[str, str]]
) -> None:
    """Write the files of a volume, as the kubelet does: its mode, and the pod's group."""
    directory.mkdir()
    kind = "secret" if "secret" in volume else "projected"
    source = volume[kind]
    of_volume = [source] if kind == "secret" else [one["secret"] for one in source["sources"]]
    for one in of_volume:
        values = secrets[one.get("secretName") or one["name"]]
        items = one.get("items") or [{"key": key, "path": key} for key in values]
        for item in items:
            path = directory / item["path"]
            path.write_text(values[item["key"]])
            os.chown(path, 0, _GROUP)
            path.chmod(source["defaultMode"])
