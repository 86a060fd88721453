"""`claim-ledger serve` as a process of its own, on a free port, for what needs a real socket."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx

from tests.databases import with_logins
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, until
from tests.prepared import PreparedProcess, start_prepared
from tests.processes import end, free_port
from tests.world import MASTER_KEY


class Served(NamedTuple):
    """A server that answers: its port, the file that its output goes to, and its public host."""

    port: int
    log: Path
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        """The origin."""
        return f"http://{self.host}:{self.port}"


@contextmanager
def served(
    database_url: str,
    directory: Path,
    *,
    host: str = "127.0.0.1",
    patient: bool = True,
    **given: str,
) -> Iterator[Served]:
    """Serve until left; `given` are more settings, without their prefix.

    `host`: of its public address; browsers have no passkeys of a bare IP address. `patient`: as of
    `start_prepared`.
    """
    port = free_port()
    values = {
        "DATABASE_URL": database_url,
        "MASTER_KEYS": MASTER_KEY,
        "PUBLIC_URL": f"http://{host}:{port}",
        "SMTP_URL": (directory / "mail").as_uri(),
        "PORT": str(port),
        "OPERATIONS_PORT": "0",
        "LOG_LEVEL": "info",
    } | given
    given = with_logins(values)
    environment = os.environ | {f"CLAIM_LEDGER_{name}": text for name, text in given.items()}
    one = Served(port, directory / "serve.log", host)
    with one.log.open("wb") as log:
        process = start_prepared(["serve"], environment, log, log, patient=patient)
        try:
            _wait(one, process, workers=int(given.get("WORKERS", "1")))
            yield one
        finally:
            end(process)


def _wait(one: Served, process: PreparedProcess, *, workers: int) -> None:
    """Wait for every worker, not for the first: one that is still starting hears no SIGTERM."""

    def is_up() -> bool:
        assert process.poll() is None, one.log.read_text()
        if one.log.read_text().count("Started worker-") >= workers:
            with suppress(httpx.TransportError):
                return httpx.get(
                    f"{one.url}/health/ready", timeout=PATIENCE_SECONDS, verify=NO_TLS
                ).is_success
        return False

    until(is_up, one.log.read_text, look=0.05)
