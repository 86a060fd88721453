"""`deploy/compose.yaml` against the schema of compose files, and against what it deploys."""

import importlib.util
import json
import re
import runpy
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from service.app.settings import MIGRATE, SETTINGS, TEAM, Settings
from tests.tables import every_row

DEPLOY = Path(__file__).parents[1] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
SECRET = re.compile(r"PASSWORD|SECRET|_KEYS|DATABASE_URL|REDIS_URL|TOKEN")
ONCE = {"migrate", "owner", "logins", "psql", "team"}
"""Services that end by themselves."""


def by_default(text):
    """Return what Compose makes of a value where no variable is set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def schema():
    """Return the schema of the Compose Specification, as check-jsonschema keeps it."""
    package = importlib.util.find_spec("check_jsonschema")
    assert package is not None
    assert package.origin is not None
    folder = Path(package.origin).parent / "builtin_schemas" / "vendor"
    return json.loads((folder / "compose-spec.json").read_text())


def test_the_file_has_the_form_of_a_compose_file():
    """As `docker compose config` would hold; its references lead somewhere."""
    errors = [
        f"{error.instance_path}: {error.message}"
        for error in jsonschema_rs.validator_for(schema()).iter_errors(COMPOSE)
    ]
    assert errors == []
    with every_row() as row:
        for name, one in SERVICES.items():
            with row(name):
                assert set(one.get("depends_on", ())) <= SERVICES.keys()
                assert set(one.get("secrets", ())) <= COMPOSE["secrets"].keys()
                assert set(one.get("networks", ())) <= COMPOSE["networks"].keys()


def test_every_container_is_held_to_the_least():
    """Nobody is root; a read-only root, bounds on memory, processor and processes, a restart."""
    with every_row() as row:
        for name, one in SERVICES.items():
            with row(name):
                assert re.fullmatch(r"[1-9][0-9]*:[1-9][0-9]*", by_default(one["user"]))
                assert one["cap_drop"] == ["ALL"]
                assert one["security_opt"] == ["no-new-privileges:true"]
                assert one["read_only"]
                assert {"mem_limit", "cpus", "pids_limit"} <= one.keys()
                assert one["restart"] == ("no" if name in ONCE else "unless-stopped")
                for port in one.get("ports", ()):
                    assert port.startswith("127.0.0.1:")


def test_requests_in_progress_are_waited_for():
    """A container of ours is killed no sooner than deploy/README.md says of `docker run`."""
    page = (DEPLOY / "README.md").read_text()
    (seconds,) = re.findall(r"`--stop-timeout (\d+)`", page)
    with every_row() as row:
        for name, one in SERVICES.items():
            if "CLAIM_LEDGER_IMAGE" in one["image"]:
                with row(name):
                    assert one["stop_grace_period"] == f"{seconds}s"


def test_every_container_that_stays_has_a_health_check():
    """Ours by the image, all others by what is in theirs."""
    checked = {name for name, one in SERVICES.items() if "test" in one.get("healthcheck", {})}
    by_the_image = {"api-one", "api-two", "worker"}
    assert checked | by_the_image == SERVICES.keys() - ONCE


def test_grafana_finds_what_is_mounted():
    """Its dashboards are where their provider looks, and ask the data source that there is."""
    mounts = dict(one.split(":")[1::-1] for one in SERVICES["grafana"]["volumes"])
    (provider,) = yaml.safe_load((DEPLOY / "grafana/provisioning.yml").read_text())["providers"]
    folder = DEPLOY / mounts[provider["options"]["path"]]
    (source,) = yaml.safe_load((DEPLOY / "compose/grafana.yml").read_text())["datasources"]
    assert source["url"] == f"http://{source['type']}:9090"
    assert source["type"] in SERVICES
    dashboards = list(folder.glob("*.json"))
    assert dashboards
    for path in dashboards:
        (chosen,) = json.loads(path.read_text())["templating"]["list"]
        assert (chosen["type"], chosen["query"]) == ("datasource", source["type"])


def test_settings_exist_and_secrets_are_in_files():
    """No secret's text is in the environment of any container."""
    known = {name for one in vars(Settings).values() for name in getattr(one, "variables", ())}
    with every_row() as row:
        for name, one in SERVICES.items():
            for variable in one.get("environment", {}):
                with row(name, variable):
                    assert not SECRET.search(variable) or variable.endswith("_FILE")
                    assert variable in known or not variable.startswith("CLAIM_LEDGER_")


def test_no_process_that_stays_has_the_owners_url():
    """It is for what ends; of that, what an operator starts is in a profile."""
    holders = {
        name
        for name, one in SERVICES.items()
        if {"database_url", "owner_service"} & {*one.get("secrets", ())}
    }
    assert holders == {"migrate", "owner", "logins", "psql"}
    assert {name for name, one in SERVICES.items() if one.get("profiles") == ["owner"]} == {
        *("owner", "psql")
    }
    given = SERVICES["owner"]["environment"]
    assert {
        one.name for one in SETTINGS if {*given} & {one.variable, one.file_variable}
    } >= MIGRATE | TEAM


@pytest.mark.server
def test_the_mounted_files_and_secrets_are_made():
    """Files of the tree are there; what is not, `prepare.py` makes."""
    made = runpy.run_path(str(DEPLOY / "compose/prepare.py"))
    secrets = {name for texts, _ in made["groups"]() for name in texts}
    assert COMPOSE["secrets"].keys() == secrets | {"certificate", "authority"}
    with every_row() as row:
        for name, one in SERVICES.items():
            for volume in one.get("volumes", ()):
                source = volume.partition(":")[0]
                with row(name, source):
                    if source.startswith("./compose/state/"):
                        assert source.rpartition("/")[2] in made["DIRECTORIES"]
                    elif source.startswith("."):
                        assert (DEPLOY / source).exists()


def test_prometheus_scrapes_every_process():
    """The two servers and the worker, and alerts by the rules of `deploy/`."""
    scraped = yaml.safe_load((DEPLOY / "compose/prometheus.yml").read_text())
    (job,) = scraped["scrape_configs"]
    assert job["static_configs"] == [
        {"targets": [f"{name}:9464" for name in ("api-one", "api-two", "worker")]}
    ]
    assert (DEPLOY / scraped["rule_files"][0]).is_file()


def test_the_schema_refuses_what_is_no_compose_file():
    """So that the first test means something."""
    wrong = {"services": {"one": {"imagee": "x"}}}
    assert not jsonschema_rs.validator_for(schema()).is_valid(wrong)
