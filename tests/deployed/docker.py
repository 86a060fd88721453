"""Docker for the tests: images without a registry, and containers that end with their test."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

ROOT = Path(__file__).parents[2]
BASE = os.environ.get("TESTS_DOCKER_BASE", "claim-ledger-tests/base")
"""Debian with Python, and what `venv` needs: made here if the daemon has no such image."""
WITHOUT_SHELL = "claim-ledger-tests/without-shell"
IMAGE = "claim-ledger-tests/service"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
LOCKED_DOWN = (
    *("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"),  # noqa: S108 - of the container
    *("--security-opt", "no-new-privileges", "--pids-limit", "200", "--memory", "512m"),
)


def answers() -> bool:
    """Return whether there is a daemon."""
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


def docker(*words: str | Path, **more: Any) -> str:
    """Run a command of Docker's, which must succeed; return its output."""
    # The old builder is in every daemon; the new one is a plugin that there may not be.
    environment = os.environ | {"DOCKER_BUILDKIT": "0"}
    done = subprocess.run(
        ["docker", *words], env=environment, capture_output=True, text=True, check=False, **more
    )
    assert done.returncode == 0, f"docker {words[0]}: {(done.stdout + done.stderr)[-3000:]}"
    return done.stdout.strip()


def inspected(what: str) -> dict[str, Any]:
    """Return what Docker knows of an image or a container."""
    return json.loads(docker("inspect", what))[0]


def exists(image: str) -> bool:
    """Return whether the daemon has an image."""
    return bool(docker("images", "-q", image))


def base() -> None:
    """Make the base image from Debian's packages, if there is none."""
    if exists(BASE):
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        include = "--include=python3,python3-venv,ca-certificates"
        command = ["debootstrap", "--variant=minbase", include, "bookworm", name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        # A company's own authority is needed where one reaches the packages.
        shutil.copyfile(AUTHORITIES, f"{name}{AUTHORITIES}")
        for left in Path(name, "var/cache/apt/archives").glob("*.deb"):
            left.unlink()
        with subprocess.Popen(["tar", "-C", name, "-c", "."], stdout=subprocess.PIPE) as tar:
            docker("import", "-", BASE, stdin=tar.stdout)


def without_shell() -> None:
    """Make the base image again without a shell, as a distroless one is."""
    if exists(WITHOUT_SHELL):
        return
    base()
    name = f"claim-ledger-tests-{uuid4().hex}"
    docker("run", "--name", name, BASE, "rm", "/bin/sh", "/bin/dash", "/bin/bash", "/bin/rbash")
    with subprocess.Popen(["docker", "export", name], stdout=subprocess.PIPE) as exported:
        docker("import", "-", WITHOUT_SHELL, stdin=exported.stdout)
    docker("rm", name)


def built() -> str:
    """Build the service's image, and return its name."""
    without_shell()
    words = ["--network", "host", "--build-arg", f"BASE={WITHOUT_SHELL}"]
    words += ["--build-arg", f"BUILD_BASE={BASE}", "--build-arg", "REVISION=of-a-test"]
    docker("build", *words, "-f", ROOT / "deploy/Dockerfile", "-t", IMAGE, ROOT)
    return IMAGE


@contextmanager
def running(*words: str | Path) -> Iterator[str]:
    """Run a container in the background until the block ends; yields its name."""
    name = f"claim-ledger-tests-{uuid4().hex}"
    docker("run", "--detach", "--name", name, *words)
    try:
        yield name
    finally:
        docker("rm", "--force", "--volumes", name)
