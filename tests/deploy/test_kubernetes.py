"""The manifests of deploy/kubernetes agree with the product; `just check-deploy` builds them."""

import json
import os
import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from service.app.setting_values import time_anchor, witness_policy
from service.app.settings import LEDGER_URLS, MIGRATE, SERVE, SETTINGS, TEAM, Settings
from service.ledger.connection_limit import OTHERS_MIN
from service.ledger.database import BACKGROUND_SIZE
from service.operations.addresses import LIVE, READY
from tests import runbook
from tests.calls import hold
from tests.certificates import certificate
from tests.deploy.manifests import (
    BASE,
    KUBERNETES,
    OVERLAYS,
    Manifest,
    ingress_snippets,
    manifests,
    named,
    remote_keys,
    settings_of,
    workloads,
)

POSTGRES = KUBERNETES / "components" / "postgres"
TRACES = KUBERNETES / "components" / "traces"
SIGNERS = {"witnesses": witness_policy, "time-stamps": time_anchor}
"""Components by which others sign checkpoints, and what reads the file of each."""
AUTHORITY = "/run/secrets/authority/ca.crt"
REDIS_AUTHORITY = "/run/secrets/claim-ledger/redis-authority"
DEVELOPMENT, PRODUCTION = "development", "production"
ROOT = KUBERNETES.parents[1]
EXPORTED_BYTES_AN_EVENT = 800
"""Of `audit export`: the 760 that an event of the demo has, and something for longer ones."""
TRACKS = "tcp-request connection track"
PROBES = ("startup", "liveness", "readiness")
IN_PRODUCTION = {
    "claim-ledger-redis-url": f"rediss://:made-up@10.30.0.3:6378/0?ssl_ca_certs={REDIS_AUTHORITY}"
}
"""What the vault has instead: Redis outside the cluster, over TLS."""
WORKLOADS = workloads()
NEEDS = dict.fromkeys(("api", "worker", "team"), SERVE)
NEEDS |= {"migrate": MIGRATE | LEDGER_URLS, "owner": MIGRATE | TEAM}
ARGUMENTS = {
    "api": ["serve"],
    "worker": ["worker"],
    "migrate": ["migrate", "--wait", "3600"],
    "team": None,
}
"""Of the image; the team's pod waits for what is executed in it."""
KNOWN = {name for one in SETTINGS for name in one.variables} | {
    one.file_variable for one in SETTINGS if one.file_variable
}


def made_up(directory: Path, overlay: str) -> dict[str, str]:
    """Return values by the vault's names, with an authority of ours: the development store's.

    But for what is another one in production.
    """
    authority = str(certificate(directory, "ca.example.com"))
    store = named("SecretStore", "claim-ledger", OVERLAYS / DEVELOPMENT)
    rows = {row["key"]: row["value"] for row in store["spec"]["provider"]["fake"]["data"]}
    rows |= IN_PRODUCTION if overlay == PRODUCTION else {}
    return {
        key: value.replace(AUTHORITY, authority).replace(REDIS_AUTHORITY, authority)
        for key, value in rows.items()
    }


@pytest.mark.parametrize("overlay", [DEVELOPMENT, PRODUCTION])
@pytest.mark.parametrize("component", WORKLOADS)
def test_settings_are_those_of_the_product(tmp_path, component, overlay):
    """None is unknown, none that is required is missing, each can be parsed, and files exist."""
    workload, vault = WORKLOADS[component], made_up(tmp_path, overlay)
    given = workload.environment(overlay)
    assert set(given) <= KNOWN
    files, remote = workload.secret_files(), remote_keys(BASE)
    assert set(files) - {AUTHORITY, REDIS_AUTHORITY} == {
        path for name, path in given.items() if name.endswith("_FILE")
    }
    values = {
        name.removesuffix("_FILE"): vault[remote[files[text]]] if name.endswith("_FILE") else text
        for name, text in given.items()
    }
    assert workload.container.get("args") == ARGUMENTS.get(component)
    Settings.from_environment(values, require=NEEDS[component])


def test_each_process_has_the_secrets_that_it_needs():
    """The owner's URL is for what works as the owner, and the key that signs for the worker."""
    holders = {
        variable: {
            name for name, one in WORKLOADS.items() if variable in one.environment(PRODUCTION)
        }
        for variable in ("CLAIM_LEDGER_DATABASE_URL_FILE", "CLAIM_LEDGER_CHECKPOINT_KEYS_FILE")
    }
    assert list(holders.values()) == [{"migrate", "owner"}, {"worker"}]
    for one in manifests(KUBERNETES):
        assert one["kind"] != "Secret"
    roles = {
        url.partition("://")[2].partition(":")[0]
        for key, url in _store(DEVELOPMENT).items()
        if key.endswith("database-url")
    }
    assert len(roles) == len(LEDGER_URLS) + 1


def test_the_first_migration_waits_for_the_database():
    """Which is made meanwhile: the job may try for as long as each try waits."""
    job = named("Job", "claim-ledger-migrate", BASE)["spec"]
    arguments = WORKLOADS["migrate"].container["args"]
    hold(f"claim-ledger {' '.join(arguments)}")
    assert (job["backoffLimit"] + 1) * int(arguments[-1]) <= job["activeDeadlineSeconds"]


def test_probes_and_ports_are_the_products():
    """The API is asked at its own port, the worker at its operations port."""
    settings = settings_of(PRODUCTION)
    ports = {
        "http": settings["CLAIM_LEDGER_PORT"],
        "operations": settings["CLAIM_LEDGER_OPERATIONS_PORT"],
    }
    for name, port in (("api", "http"), ("worker", "operations")):
        container = WORKLOADS[name].container
        assert {one["name"]: str(one["containerPort"]) for one in container["ports"]}.items() <= (
            ports.items()
        )
        asked = [container[f"{kind}Probe"]["httpGet"] for kind in PROBES]
        assert {one["port"] for one in asked} == {port}
        ready = READY if name == "api" else LIVE  # the worker's listener has no other
        assert [one["path"] for one in asked] == [LIVE, LIVE, ready]
    (public,) = named("Service", "claim-ledger-api", BASE)["spec"]["ports"]
    assert public["targetPort"] == "http"
    (scraped,) = named("PodMonitor", "claim-ledger", BASE)["spec"]["podMetricsEndpoints"]
    assert scraped["port"] == "operations"


def test_what_removes_documents_runs_as_the_team_alone():
    """Its pod has its own account, and there is none until somebody asks for it, as the owner's."""
    accounts = {name: one.pod["serviceAccountName"] for name, one in WORKLOADS.items()}
    its_own = {name: f"claim-ledger-{name}" for name in WORKLOADS}
    assert accounts == its_own | {"owner": "claim-ledger-migrate"}
    assert (WORKLOADS["team"].replicas, WORKLOADS["owner"].replicas) == (0, 0)


def test_the_owners_shell_has_what_the_runbook_begins_with():
    """A container with `psql`, in which the page's first block finds the URL, and no other key."""
    owner = WORKLOADS["owner"]
    (shell,) = [one for one in owner.pod["containers"] if one is not owner.container]
    (variable,) = shell["env"]
    assert shell["image"] == _cluster()["imageName"]
    assert variable["name"] == "CLAIM_LEDGER_DATABASE_URL_FILE"
    assert variable in owner.container["env"]
    (secret,) = [one for one in shell["volumeMounts"] if one["name"] == "secrets"]
    assert secret["mountPath"] == variable["value"]
    assert secret["subPath"] == variable["value"].rpartition("/")[2]


def test_the_owner_reaches_the_database():
    """As the migration does, whichever database is taken."""
    for component in ("postgres", "cloud-sql"):
        folder = KUBERNETES / "components" / component
        policies = [one for one in manifests(folder) if one["kind"] == "NetworkPolicy"]
        for policy in policies:
            text = json.dumps(policy)
            assert text.count('"migrate"') == text.count('"owner"'), policy["metadata"]["name"]


@pytest.mark.parametrize("component", ["worker", "team", "owner"])
def test_files_have_room_where_commands_write_them(component):
    """Of a log as large as docs/performance.md measures: its export, and what verifying puts aside.

    On a disk of a size of its own: what fills it ends a command, and not the pod.
    """
    figures = (ROOT / "docs" / "performance.md").read_text()
    assert "10,000,000 events (two per claim)" in figures
    assert "to disk beyond 16 MB: 48 bytes each" in figures
    events, streams = 10_000_000, 5_000_000
    (volume,) = [one for one in WORKLOADS[component].pod["volumes"] if one["name"] == "tmp"]
    claim = volume["ephemeral"]["volumeClaimTemplate"]["spec"]
    size = int(claim["resources"]["requests"]["storage"].removesuffix("Gi")) << 30
    assert events * EXPORTED_BYTES_AN_EVENT + streams * 48 < size


def test_the_ingress_does_what_every_proxy_has_to():
    """Each line is one of deploy/haproxy.cfg, with its figures, and all that limits or answers.

    The controller counts with sc0 itself, and each section has a table of its own: requests are
    counted where they are known to be for us.
    """
    text = (ROOT / "deploy" / "haproxy.cfg").read_text()
    figures = dict(re.findall(r"presetenv (\w+) (\S+)", text))
    lines = {
        re.sub(r"\$\{(\w+)\}", lambda found: figures[found[1]], line.strip())
        for line in text.splitlines()
    }
    ours = [
        re.sub(r"sc[12](_| src)", r"sc0\1", line).replace("http-request track", TRACKS)
        for snippet in ingress_snippets().values()
        for line in snippet.splitlines()
    ]
    (table,) = [one for one in lines if one.startswith("stick-table")]
    tables = [one.split() for one in ours if one.startswith("stick-table")]
    assert {one for row in tables for one in row[-1].split(",")} == {*table.split()[-1].split(",")}
    assert {*ours} - {" ".join(row) for row in tables} <= lines
    kinds = ("http-request return", "http-error", "http-after-response", "tcp-request connection")
    assert {one for one in lines if one.startswith(kinds)} <= {*ours}


def test_traces_reach_their_collector():
    """Where the component is taken, at the address that its settings name."""
    text = (KUBERNETES / "components" / "traces" / "settings.env").read_text()
    ((name, url),) = (line.split("=", 1) for line in text.splitlines())
    address = urlsplit(url)
    (rule,) = named("NetworkPolicy", "to-the-collector", TRACES)["spec"]["egress"]
    (to,), (port,) = rule["to"], rule["ports"]
    service, namespace = str(address.hostname).split(".")
    assert name in KNOWN
    assert to["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": service}
    assert to["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": namespace}
    assert port["port"] == address.port


@pytest.mark.parametrize("component", SIGNERS)
def test_what_others_sign_with_is_where_the_settings_say(component):
    """Each process that has the component's settings has its file, which the product reads."""
    folder = KUBERNETES / "components" / component
    made = yaml.safe_load((folder / "kustomization.yaml").read_text())
    (settings, files), (patch,) = made["configMapGenerator"], made["patches"]
    assert settings["name"] == "claim-ledger-settings"
    given = dict(line.split("=", 1) for line in (folder / "settings.env").read_text().splitlines())
    assert set(given) <= KNOWN
    mount, volume = (one["value"] for one in yaml.safe_load(patch["patch"]))
    assert volume == {"name": mount["name"], "configMap": {"name": files["name"]}}
    (name,) = files["files"]
    (path,) = (text for variable, text in given.items() if variable.endswith("_FILE"))
    assert path == f"{mount['mountPath']}/{name}"
    assert SIGNERS[component](str(folder / name))
    with_settings = [one for one in WORKLOADS if "envFrom" in WORKLOADS[one].container]
    wanted = f"app.kubernetes.io/component in ({', '.join(with_settings)})"
    assert patch["target"] == {"kind": "Deployment", "labelSelector": wanted}


def test_the_worker_reaches_the_time_stamping_authority():
    """By http, at the port of the address that is set; the base has https."""
    folder = KUBERNETES / "components" / "time-stamps"
    url = (folder / "settings.env").read_text().partition("_TIME_STAMP_URL=")[2].split()[0]
    policy = named("NetworkPolicy", "to-the-time-stamping-authority", folder)["spec"]
    (rule,), (outside,) = (
        policy["egress"],
        named("NetworkPolicy", "mail-outside", BASE)["spec"]["egress"],
    )
    assert _selected(policy["podSelector"]) == ["worker"]
    assert rule["to"] == outside["to"]
    assert (urlsplit(url).scheme, [one["port"] for one in rule["ports"]]) == ("http", [80])


def test_nothing_is_reached_that_need_not_be():
    """All is refused but what is listed; the operations port is the monitoring's alone."""
    deny = named("NetworkPolicy", "default-deny", BASE)["spec"]
    assert deny == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    reached: dict[tuple[str, int], list[str]] = {}
    for one in manifests(BASE, OVERLAYS):
        if one["kind"] == "NetworkPolicy":
            for component in _selected(one["spec"]["podSelector"]):
                for rule in one["spec"].get("ingress", []):
                    for port in rule["ports"]:
                        reached.setdefault((component, port["port"]), []).append(_from(rule))
    for (component, port), whom in reached.items():
        if component in WORKLOADS:
            assert whom == [{8000: "ingress", 9464: "monitoring"}[port]], component
    assert {one for one in reached if one[0] in WORKLOADS} == {
        ("api", 8000),
        ("api", 9464),
        ("worker", 9464),
    }


@pytest.mark.parametrize("component", WORKLOADS)
def test_pods_have_no_more_than_they_need(component):
    """No root, no capability, no writable file system but /tmp, no token, limits of both kinds."""
    pod = WORKLOADS[component].pod
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 10001,
        "runAsGroup": 10001,
        "fsGroup": 10001,  # as which secret files are read
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    # Service links would be variables of our prefix, which are unknown settings.
    assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert set(container["resources"]["limits"]) == {"cpu", "memory"}
        assert {one["mountPath"] for one in container["volumeMounts"] if "readOnly" not in one} == {
            "/tmp"  # noqa: S108 - the container's own
        }
    for volume in pod["volumes"]:
        for kind in ("secret", "projected"):
            assert volume.get(kind, {}).get("defaultMode", 0o440) == 0o440


def test_connections_fit_the_database():
    """Every process at once, one pod more at a roll-out, the owner's ten and the reserved ones."""
    limit, least = runbook.connections()["deploy/kubernetes"]
    pool = int(settings_of(PRODUCTION)["CLAIM_LEDGER_POOL_SIZE"])
    of_a_process = 2 * pool + BACKGROUND_SIZE
    most = named("HorizontalPodAutoscaler", "claim-ledger-api", BASE)["spec"]["maxReplicas"]
    processes = int(WORKLOADS["api"].environment(PRODUCTION)["CLAIM_LEDGER_WORKERS"]) + 1
    assert of_a_process * ((most + 1) * processes + WORKLOADS["worker"].replicas + 1) + 2 == limit
    parameters = _cluster()["postgresql"]["parameters"]
    reserved = int(parameters["superuser_reserved_connections"])
    assert (
        len(LEDGER_URLS) * limit + OTHERS_MIN + reserved
        == least
        <= int(parameters["max_connections"])
    )
    assert f"[{limit}](../runbook.md#connections)" in (KUBERNETES / "README.md").read_text()


@pytest.mark.server
def test_a_file_leaves_a_pod_whole(tmp_path):
    """By the page's commands, with no more in the image than Python; it is gone from there then."""
    page = (KUBERNETES / "README.md").read_text()
    (script,) = [one for one in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "POD=" in one]
    there, here = tmp_path / "pod", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    stand_ins = """
        claim-ledger() { head -c 300000 /dev/urandom | tee "$KEPT" > "${@: -1}"; }
        kubectl() { [ "$3" = exec ] || { echo pod/one; return; }; shift 5; "$@"; }
    """
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail"],
        input=textwrap.dedent(stand_ins) + script.replace("/tmp/", f"{there}/"),  # noqa: S108 - the pod's
        cwd=here,
        env={"PATH": os.environ["PATH"], "KEPT": str(tmp_path / "kept")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "live.ndjson: OK\n"), done.stderr
    assert (here / "live.ndjson").read_bytes() == (tmp_path / "kept").read_bytes()
    assert list(there.iterdir()) == []


def test_commits_are_on_two_machines():
    """A synchronous replica that commits wait for, on another node; backups are a bucket's."""
    cluster = _cluster()
    assert cluster["instances"] >= 3
    assert (
        cluster["postgresql"]["synchronous"] | {"number": 1, "dataDurability": "required"}
        == (cluster["postgresql"]["synchronous"])
    )
    assert cluster["affinity"]["podAntiAffinityType"] == "required"
    store = named("ObjectStore", "claim-ledger-backup", OVERLAYS / PRODUCTION)["spec"]
    archive = settings_of(PRODUCTION)["CLAIM_LEDGER_ARCHIVE_URL"]
    backup = store["configuration"]["destinationPath"]
    assert backup.split("/")[2] != archive.split("/")[2]


def _cluster() -> Manifest:
    return named("Cluster", "claim-ledger-db", POSTGRES)["spec"]


def _store(overlay: str) -> dict[str, str]:
    store = named("SecretStore", "claim-ledger", OVERLAYS / overlay)
    return {row["key"]: row["value"] for row in store["spec"]["provider"]["fake"]["data"]}


def _selected(selector: Manifest) -> list[str]:
    """Return the components that a selector has: by a label, or by a list."""
    label = "app.kubernetes.io/component"
    by_label = selector.get("matchLabels", {}).get(label)
    listed: list[Any] = [
        one["values"] for one in selector.get("matchExpressions", []) if one["key"] == label
    ]
    return [by_label] if by_label else [name for values in listed for name in values]


def _from(rule: Manifest) -> str:
    (source,) = rule["from"]
    if "podSelector" in source:
        return "/".join(_selected(source["podSelector"]))
    return source["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
