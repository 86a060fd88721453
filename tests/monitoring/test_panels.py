"""A real Prometheus, configured as `deploy/prometheus.yml` has it, scrapes a running service.

Every panel's query then shows something. Apart from `just test`: `just test-monitoring`.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
import yaml

from deploy.grafana.dashboards import HERE, documents
from service.cli.audit.verdict_metrics import write_metrics
from service.core.clock import system_clock
from service.evidence.note import NoteKey
from service.evidence.verdict import Verdict
from service.facts.caller import LEDGERS
from tests.databases import with_logins
from tests.monitoring.rules import DEPLOY
from tests.patience import PATIENCE_SECONDS, until
from tests.processes import free_port, started
from tests.serving import served
from tests.world import MASTER_KEY, claim_body, settings_for, world_on

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

Ask = Callable[[str], Any]


class Quiet(SimpleHTTPRequestHandler):
    """Serves the node exporter's file at `/metrics`."""

    extensions_map = {"": "text/plain; version=0.0.4"}  # noqa: RUF012 - as the base has it

    def log_message(self, *_given: object) -> None:
        """Log nothing."""


@contextmanager
def node_exporter(directory: Path) -> Iterator[str]:
    """Serve what `audit verify --metrics` writes."""
    write_metrics(
        directory / "metrics",
        [Verdict(ledger=name, ok=True, size=1, root="", actor_faults=0) for name in LEDGERS],
        system_clock(),
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(directory)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def prometheus(directory: Path, ours: list[str], node: str) -> Iterator[Ask]:
    """Run one as configured, but for targets, intervals and where alerts go; yield what asks it."""
    config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    del config["alerting"]
    config["global"]["evaluation_interval"] = "1s"
    config["rule_files"] = [str(DEPLOY / name) for name in config["rule_files"]]
    targets: dict[str, list[str]] = {"claim-ledger": ours, "node": [node], "proxy": []}
    for job in config["scrape_configs"]:
        job["static_configs"] = [{"targets": targets[job["job_name"]]}]
        job |= {"scrape_interval": "1s", "scrape_timeout": "1s"}
    file = directory / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    url = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={url}",
        "--log.level=warn",
    ]
    log = directory / "prometheus.log"
    with (
        log.open("wb") as output,
        started(command, stdout=output, stderr=output),
        httpx.Client(base_url=f"http://{url}", timeout=PATIENCE_SECONDS) as client,
    ):

        def ask(path: str, **parameters: str) -> Any:
            try:
                answer = client.get(f"/api/v1/{path}", params=parameters)
            except httpx.TransportError:
                return None
            if answer.status_code == 503:  # it is starting
                return None
            assert answer.json()["status"] == "success", (parameters, answer.text)
            return answer.json()["data"]

        until(lambda: ask("targets"), log.read_text)
        yield ask


async def _customer(database_url: str, directory: Path) -> tuple[str, str]:
    """Return a key, and an entity that its partner is connected to."""
    async with world_on(settings_for(database_url, directory), directory, follow=False) as world:
        partner = await world.partner()
        return partner.keys["live"], await partner.connected_entity()


def _evidence(directory: Path) -> dict[str, str]:
    """Return the settings with which checkpoints are signed, and the logs' tiles written."""
    for name in ("archive", "tiles"):
        (directory / name).mkdir(mode=0o700)
    return {
        "CHECKPOINT_KEYS": NoteKey.generate("example.com/claim-ledger").private_text,
        "ARCHIVE_URL": (directory / "archive").as_uri(),
        "TILES_URL": (directory / "tiles").as_uri(),
    }


async def test_every_panel_shows_something(database_url, tmp_path):
    """The listeners of a `serve` and of a `worker` are scraped, and no query is empty or fails."""
    key, entity_id = await _customer(database_url, tmp_path)
    ports = [free_port(), free_port()]
    values = {
        "DATABASE_URL": database_url,
        "MASTER_KEYS": MASTER_KEY,
        "PUBLIC_URL": "http://127.0.0.1",
        "SMTP_URL": (tmp_path / "mail").as_uri(),
        "OPERATIONS_PORT": str(ports[1]),
    }
    evidence = _evidence(tmp_path)
    given = {f"CLAIM_LEDGER_{name}": text for name, text in with_logins(values | evidence).items()}
    worker = [sys.executable, "-c", "from service.cli import main; main()", "worker"]
    data = tmp_path / "prometheus"
    (data / "node").mkdir(parents=True)
    with (
        served(database_url, tmp_path, OPERATIONS_PORT=str(ports[0]), **evidence) as serving,
        (tmp_path / "worker.log").open("wb") as log,
        started(worker, env=os.environ | given, stdout=log, stderr=log),
        node_exporter(data / "node") as node,
        prometheus(data, [f"127.0.0.1:{port}" for port in ports], node) as ask,
        httpx.Client(
            base_url=f"{serving.url}/v1",
            headers={"Authorization": f"Bearer {key}"},
            timeout=PATIENCE_SECONDS,
        ) as us,
    ):
        numbers = iter(range(10**6))

        def all_up() -> bool:
            found = ask("targets")["activeTargets"]
            return len(found) == 3 and {one["health"] for one in found} == {"up"}

        def empty() -> dict[str, str]:
            assert us.post("/claims", json=claim_body(entity_id, f"c-{next(numbers)}")).is_success
            us.get("/claims", params={"entity_id": entity_id})
            us.get("/claims")
            return {title: query for title, query in queries() if not shows(ask, query)}

        until(all_up, lambda: json.dumps(ask("targets"), indent=1), look=0.2)
        until(lambda: not empty(), lambda: json.dumps(empty(), indent=1), look=0.5)
        rules = [one for group in ask("rules")["groups"] for one in group["rules"]]
        assert {one["health"] for one in rules} == {"ok"}
        firing = {one["name"] for one in rules if one.get("state") == "firing"}
        assert {name for name in firing if "Slow" not in name} == set()  # a slow machine is slow


def queries() -> Iterator[tuple[str, str]]:
    """Yield each query of the dashboards' files, as Grafana would send it."""
    for path in documents():
        for panel in json.loads((HERE / path.name).read_text())["panels"]:
            for target in panel.get("targets", ()):
                yield panel["title"], target["expr"].replace("$__rate_interval", "1m")


def shows(ask: Any, query: str) -> bool:
    """Return whether a query has a line, and a figure in one of them."""
    found = ask("query", query=query)["result"]
    return any(one["value"][1] != "NaN" for one in found)
