"""`deploy/compose.yaml`, run: the commands of deploy/README.md as far as a first claim.

Where no registry is reachable, images of Debian's packages stand for the official ones
(`stand_ins/`), and the mail catcher and Grafana, which Debian does not have, are left out (their
mounts are compared in tests/test_compose.py).
`just test-compose`; skipped where no Docker answers, or Docker has no compose.
"""

import json
import os
import re
import shutil
import subprocess

import httpx
import pytest
import yaml

from tests import runbook
from tests.deployed import docker
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, until

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]

STAND_INS = "claim-ledger-tests/stand-ins"
STOOD_FOR = ("HAPROXY", "PGBOUNCER", "POSTGRES", "PROMETHEUS", "REDIS")
SERVICES = ("proxy", "storage", "api-one", "api-two", "worker", "prometheus")
RULES = ("alerts.yml", "slo.yml")
COMPOSE = "docker compose -f deploy/compose.yaml"
WITH_TLS = "curl -sS --cacert deploy/compose/state/secrets/authority"


REPEATED = """
eval "once_$(declare -f team)"
team() {
  for _ in 1 2 3 4 5; do
    if said=$(once_team "$@"); then echo "$said"; return; fi
    [[ $said == *service_unavailable* ]] || break
  done
  echo "$said"; return 1
}
"""
"""On a busy machine the service may say to come back, which people then do."""


def block_of(name, word):
    """Return the block of commands of a page of `deploy/` that has a word."""
    page = (docker.ROOT / "deploy" / name).read_text()
    (script,) = [one for one in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if word in one]
    assert COMPOSE in script
    return script


def first_claim():
    """Return the commands of the page that make a first claim."""
    script = block_of("README.md", "team()")
    assert WITH_TLS in " ".join(script.split("\\\n"))
    return script


@pytest.fixture
def composed(folder):
    """Return a copy of `deploy/` whose services run, and the environment to reach them in."""
    if not docker.answers():
        pytest.skip("no Docker answers here")
    if (found := program()) is None:
        pytest.skip("Docker has no compose here")
    docker.base()
    stand_ins = docker.ROOT / "tests/deployed/stand_ins"
    words = ["--network", "host", "--build-arg", f"BASE={docker.BASE}", "-t", STAND_INS]
    docker.docker("build", *words, stand_ins)
    left_out = shutil.ignore_patterns("state", ".env", "__pycache__")
    shutil.copytree(docker.ROOT / "deploy", folder / "deploy", ignore=left_out)
    images = {f"{name}_IMAGE": STAND_INS for name in STOOD_FOR}
    environment = os.environ | images | {"CLAIM_LEDGER_IMAGE": docker.built()}
    subprocess.run(["python3", "deploy/compose/prepare.py"], cwd=folder, check=True)
    # The project's name is of this run, so that nobody else's containers are touched.
    environment["COMPOSE_PROJECT_NAME"] = f"claim-ledger-{folder.name.lower()}"

    def compose(*words):
        command = [*found, "-f", "deploy/compose.yaml", *words]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout

    try:
        compose("up", "--detach", "--no-build", *SERVICES)
        yield compose, folder, environment
    finally:
        compose("down", "--volumes")


def program():
    """Return the words that run compose: a plugin of Docker's, or the program of before."""
    for words in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(words[0]) is None:
            continue
        if subprocess.run([*words, "version"], capture_output=True, check=False).returncode == 0:
            return words
    return None


def test_from_nothing_to_a_first_claim(composed):
    """Every container becomes healthy; the page's commands work; Prometheus sees all processes.

    The log is signed, written as tiles, and exported; what takes the owner's URL has it.
    """
    compose, folder, environment = composed

    def bash(script):
        """Run a page's commands by what is Compose here; return what they print."""
        script = script.replace(COMPOSE, f"{' '.join(program())} -f deploy/compose.yaml")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout

    names = compose("ps", "--quiet").split()

    def settled():
        found = [docker.inspected(name)["State"] for name in names]
        return all(
            one["ExitCode"] == 0 if one["Status"] == "exited" else is_well(one) for one in found
        )

    until(settled, lambda: compose("ps"), look=1)
    begins, blank, commands = first_claim().partition("\n\n")
    printed = bash(f"{begins}{REPEATED}{blank}{commands}")
    made = json.loads(printed[printed.rindex('{"claim_id"') :])
    assert (made["already_existed"], made["claim_id"][:4]) == (False, "clm_")

    bash(block_of("README.md", "mkdir -m 700 out"))
    events = [json.loads(line) for line in (folder / "out/live.ndjson").read_text().splitlines()]
    assert made["claim_id"] in json.dumps(events)
    of_owner = block_of("runbook.md", "run --rm owner").replace("run --rm", "run --rm -T")
    verify, shell = of_owner.replace("EMAIL", "me@example.com").splitlines()[-2:]
    assert json.loads(bash(f"{verify} --json").splitlines()[-1])["verified"]
    named = runbook.block("bash", "for name in CLAIM_LEDGER_DATABASE_URL")
    asked = 'psql "$CLAIM_LEDGER_DATABASE_URL" -Atc "select current_user"\n'
    told = bash(f"{shell} <<'END'\n{named}{asked}END\n")
    assert told.splitlines()[-1] == "claim_ledger"

    logs = folder / "deploy/compose/state/tiles/localhost/claim-ledger"
    team = ("run", "--rm", "-T", "-e", "CLAIM_LEDGER_STAFF=me@example.com", "team")
    compose(*team, "audit", "checkpoint")
    compose(*team, "audit", "tiles")
    assert {one.parts[-3] for one in logs.glob("*/*/checkpoint")} == {"accounts", "live", "test"}

    def all_up():
        answer = httpx.get(
            "http://127.0.0.1:9090/api/v1/query",
            params={"query": "up"},
            timeout=PATIENCE_SECONDS,
            verify=NO_TLS,
        )
        values = [one["value"][1] for one in answer.json()["data"]["result"]]
        return values == ["1", "1", "1"]

    until(all_up, look=1)
    loaded = httpx.get(
        "http://127.0.0.1:9090/api/v1/rules", timeout=PATIENCE_SECONDS, verify=NO_TLS
    ).json()["data"]["groups"]
    written = [yaml.safe_load((folder / "deploy" / name).read_text()) for name in RULES]
    assert {one["name"] for one in loaded} == {
        group["name"] for file in written for group in file["groups"]
    }
    # A container with a check is waited for; those that stay all have one.
    states = [docker.inspected(name)["State"] for name in names]
    assert all("Health" in one for one in states if one["Running"])


def is_well(state):
    """Return whether a container runs, and is healthy if it has a check."""
    return state["Running"] and state.get("Health", {}).get("Status", "healthy") == "healthy"
