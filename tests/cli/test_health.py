"""`claim-ledger health`, which the image's health check runs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from click.testing import CliRunner

from service.cli import cli
from service.cli.health import SECTIONS
from tests import runbook
from tests.processes import free_port
from tests.tables import every_row


@contextmanager
def answering(status: int | None) -> Iterator[int]:
    """Yield a port on which every request has this status.

    None: a port where nothing listens; 0: the port 0.
    """
    if not status:
        yield free_port() if status is None else 0
        return

    class Answers(BaseHTTPRequestHandler):
        """Answers each GET alike."""

        def do_GET(self) -> None:
            """Answer."""
            self.send_response(status)
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
                environment = {f"CLAIM_LEDGER_{name}": text for name, text in given.items()}
                result = CliRunner().invoke(cli, ["health"], env=environment)
                assert result.exit_code == code, result.output
                assert result.output.startswith("WRONG: " if code else "OK: ")


def test_each_listener_is_named_with_what_it_answered():
    """By address and path, with the section of the runbook that goes on from there."""
    with answering(503) as port, answering(None) as other:
        given = {"PORT": str(port), "OPERATIONS_PORT": str(other)}
        environment = {f"CLAIM_LEDGER_{name}": text for name, text in given.items()}
        shown = CliRunner().invoke(cli, ["health"], env=environment)
        told = CliRunner().invoke(cli, ["health", "--json"], env=environment)
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
