"""`claim-ledger health`, for the health checks of containers, which may have no shell or curl."""

import http.client
from collections.abc import Sequence
from typing import Final

import click

from service.app.setting import SettingsError
from service.app.settings import Settings
from service.cli.faults import one_line
from service.cli.options import json_option
from service.cli.output import print_answer
from service.cli.verdict import Fields, Findings, Fine, listed
from service.operations.addresses import LIVE, READY, reached_at

SECONDS_MAX: Final = 4.0
"""For each answer: less than the image's health check waits for both."""
_UNREACHED: Final = "Operations listener silent"
SILENT: Final = "nothing"
CLOSED: Final = "nobody listens"
_OFF: Final = "off"
_WELL: Final = str(http.HTTPStatus.OK.value)
SECTIONS: Final = {
    (READY, str(http.HTTPStatus.SERVICE_UNAVAILABLE.value)): "PostgreSQL down",
    (READY, SILENT): "Connections held open",
    (LIVE, SILENT): _UNREACHED,
    (LIVE, CLOSED): _UNREACHED,
}
"""Of the runbook, by what is asked for and answered."""


@click.command()
@json_option
def health(*, as_json: bool) -> None:
    """Check that the `serve` or `worker` on this machine works; exits with 1 if not.

    Whether the operations listener lives, where its port is not 0, and whether the API is ready, if
    it listens. One of them has to. `see` is the section of the runbook that goes on from an answer.
    `/health` of the operations listener says what is wrong with the service itself.
    """
    with one_line(SettingsError):
        settings = Settings.from_environment(require=frozenset())
    answer = _answer(
        [
            _asked("API", settings.host, settings.port, READY),
            _asked("operations", settings.operations_host, settings.operations_port, LIVE),
        ]
    )
    print_answer(answer, as_json=as_json)


def _answer(listeners: Sequence[Fields]) -> Fields:
    """Return what each listener answered, with the verdict."""
    answering = [one for one in listeners if one["answer"] not in {CLOSED, _OFF}]
    wrong = [
        f"{one['address']}{one['path']} answers {one['answer']}"
        for one in answering
        if one["answer"] != _WELL
    ] + [
        f"{one['address']}{one['path']}: {CLOSED}"
        for one in listeners
        if (one["path"], one["answer"]) == (LIVE, CLOSED)  # there may be no API here, but a worker
    ]
    answer = {"is_well": bool(answering) and not wrong, "listeners": listeners}
    if not answering:
        return Findings(answer, f'nothing of ours listens here; see "{_UNREACHED}" in the runbook')
    return Findings(answer, listed(wrong)) if wrong else Fine(answer, "what listens here works")


def _asked(listener: str, host: str, port: int, path: str) -> Fields:
    """Return what a listener of this machine answers to a GET."""
    said = _said(reached_at(host), port, path) if port else _OFF
    shown = f"[{host}]" if ":" in host else host
    return {
        "listener": listener,
        "address": f"{shown}:{port}",
        "path": path,
        "answer": said,
        "see": SECTIONS.get((path, said)),
    }


def _said(host: str, port: int, path: str) -> str:
    connection = http.client.HTTPConnection(host, port, timeout=SECONDS_MAX)
    try:
        connection.request("GET", path, headers={"Host": "localhost"})
        return str(connection.getresponse().status)
    except ConnectionRefusedError:
        return CLOSED
    except (OSError, http.client.HTTPException):
        return SILENT
    finally:
        connection.close()
