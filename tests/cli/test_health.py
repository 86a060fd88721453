"""`claim-ledger health`, which the image's health check runs."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from click.testing import CliRunner

from service.cli import cli
from service.cli.health import SECTIONS
from service.operations.addresses import LIVE
from tests import runbook
from tests.dev_process import environment
from tests.processes import free_port
from tests.tables import every_row
from tests.world import MASTER_KEY

HEAVY = {"asyncpg", "cryptography", "email_validator", "litestar", "psycopg", "service.evidence"}
"""Libraries and rooms that take most of a start's time, and are not for asking two listeners."""


@contextmanager
def answering(status: int | None, live: int | None = None) -> Iterator[int]:
    """Yield a port on which every request has this status; of liveness checks, `live` if given.

    None: a port where nothing listens; 0: the port 0.
    """
    if not status:
        yield free_port() if status is None else 0
        return

    class Answers(BaseHTTPRequestHandler):
        """Answers each GET alike."""

        def do_GET(self) -> None:
            """Answer."""
            self.send_response(live if live and self.path == LIVE else status)
            self.end_headers()

        def log_message(self, *_parts: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_what_listens_has_to_work(host):
    """A `serve` has both listeners; a `worker`, or with the port 0, one; none is not healthy.

    Where the operations listener has gone, so has the worker.
    """
    rows = {
        (200, 200): 0,
        (200, None): 1,
        (200, 0): 0,
        (None, 200): 0,
        (503, 200): 1,
        (200, 503): 1,
        (None, None): 1,
        (None, 0): 1,
    }
    with every_row() as row:
        for (api, operations), code in rows.items():
            with answering(api) as port, answering(operations) as other, row(api, operations):
                given = {"HOST": host, "PORT": str(port), "OPERATIONS_PORT": str(other)}
                variables = {f"CLAIM_LEDGER_{name}": text for name, text in given.items()}
                result = CliRunner().invoke(cli, ["health"], env=variables)
                assert result.exit_code == code, result.output
                assert result.output.startswith("WRONG: " if code else "OK: ")


@pytest.mark.parametrize(("words", "code"), [([], 1), (["--live"], 0)])
def test_a_container_is_not_unhealthy_while_postgresql_is_away(words, code):
    """Its check asks who lives: one that is not ready is not to be replaced."""
    with answering(503, live=200) as port, answering(200) as other:
        given = {"PORT": str(port), "OPERATIONS_PORT": str(other)}
        variables = {f"CLAIM_LEDGER_{name}": text for name, text in given.items()}
        result = CliRunner().invoke(cli, ["health", *words], env=variables)
    assert result.exit_code == code, result.output


def test_a_container_that_hangs_is_unhealthy():
    """One whose API does not answer what asks whether it lives."""
    with answering(200, live=503) as port, answering(200) as other:
        given = {"PORT": str(port), "OPERATIONS_PORT": str(other)}
        variables = {f"CLAIM_LEDGER_{name}": text for name, text in given.items()}
        result = CliRunner().invoke(cli, ["health", "--live"], env=variables)
    assert (result.exit_code, f"127.0.0.1:{port}{LIVE} answers 503" in result.output) == (1, True)


def test_a_check_loads_no_library_that_it_does_not_need():
    """Containers run it every ten seconds, with all of the service's settings around it."""
    told = (
        "import contextlib, sys\n"
        "from service.cli import cli\n"
        "with contextlib.suppress(SystemExit):\n"
        "    cli.main(['health', '--live'])\n"
        "print(*sys.modules)"
    )
    given = environment(DATABASE_URL="postgresql://made-up@127.0.0.1/none", MASTER_KEYS=MASTER_KEY)
    done = subprocess.run(
        [sys.executable, "-c", told],
        env=given | {"CLAIM_LEDGER_PORT": str(free_port())},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "service.cli.health" in loaded
    assert loaded & HEAVY == set()


def test_each_listener_is_named_with_what_it_answered():
    """By address and path, with the section of the runbook that goes on from there."""
    with answering(503) as port, answering(None) as other:
        given = {"PORT": str(port), "OPERATIONS_PORT": str(other)}
        variables = {f"CLAIM_LEDGER_{name}": text for name, text in given.items()}
        shown = CliRunner().invoke(cli, ["health"], env=variables)
        told = CliRunner().invoke(cli, ["health", "--json"], env=variables)
    assert shown.output.startswith(
        f"WRONG: 127.0.0.1:{port}/health/ready answers 503; "
        f"127.0.0.1:{other}/health/live: nobody listens\n"
    )
    api = {"listener": "API", "address": f"127.0.0.1:{port}", "path": "/health/ready"}
    operations = {"listener": "operations", "address": f"127.0.0.1:{other}"}
    assert json.loads(told.output) == {
        "is_well": False,
        "listeners": [
            api | {"answer": "503", "see": "PostgreSQL down"},
            operations
            | {
                "path": "/health/live",
                "answer": "nobody listens",
                "see": "Operations listener silent",
            },
        ],
    }
    assert told.exit_code == 1
    anchors = {section.lower().replace(" ", "-") for section in SECTIONS.values()}
    assert anchors <= runbook.anchors()
