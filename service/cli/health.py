"""`claim-ledger health`, for the health checks of containers, which may have no shell or curl."""

import http.client
import sys
from typing import Final

import click

from service.app.setting import SettingsError
from service.app.settings import Settings
from service.cli.faults import one_line
from service.operations.addresses import LIVE, READY, reached_at

SECONDS_MAX: Final = 4.0
"""For each answer: less than the image's health check waits for both."""


@click.command()
def health() -> None:
    """Check that the `serve` or `worker` of this machine works; exits with 1 if not.

    Whether the API is ready, and whether the operations listener lives: those of them that listen,
    of which there has to be one.
    """
    with one_line(SettingsError):
        settings = Settings.from_environment(require=frozenset())
    asked = [
        _status(settings.host, settings.port, READY),
        _status(settings.operations_host, settings.operations_port, LIVE),
    ]
    answers = [status for status in asked if status is not None]
    if not answers:
        click.echo("WRONG: nothing of ours listens here")
        sys.exit(1)
    if any(status != http.HTTPStatus.OK for status in answers):
        click.echo("WRONG: it listens, and cannot work")
        sys.exit(1)
    click.echo("OK: it works")


def _status(host: str, port: int, path: str) -> int | None:
    """Return the status of a GET, 0 without an answer, None where nothing listens."""
    if not port:
        return None
    connection = http.client.HTTPConnection(reached_at(host), port, timeout=SECONDS_MAX)
    try:
        connection.request("GET", path, headers={"Host": "localhost"})
        return connection.getresponse().status
    except ConnectionRefusedError:
        return None
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
