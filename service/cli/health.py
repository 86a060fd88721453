"""`claim-ledger health`, for people, and for the checks of containers, which may have no curl.

A container runs it every few seconds: what is imported here counts.
"""

import http.client
from collections.abc import Sequence
from typing import Final

import click

from service.app.setting import SettingsError
from service.app.settings import some
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
_API: Final = "API"
_OPERATIONS: Final = "operations"
SECTIONS: Final = {
    (_API, str(http.HTTPStatus.SERVICE_UNAVAILABLE.value)): "PostgreSQL down",
    (_API, SILENT): "Connections held open",
    (_OPERATIONS, SILENT): _UNREACHED,
    (_OPERATIONS, CLOSED): _UNREACHED,
}
"""Of the runbook, by who is asked, and what is answered."""


@click.command()
@click.option(
    "--live",
    "only_live",
    is_flag=True,
    help="Ask the API whether it lives, not whether it is ready, which takes PostgreSQL.",
)
@json_option
def health(*, only_live: bool, as_json: bool) -> None:
    """Check that the `serve` or `worker` on this machine works; exits with 1 if not.

    Whether the operations listener lives, where its port is not 0, and whether the API is ready, if
    it listens. One of them has to. `see` is the section of the runbook that goes on from an answer.
    `/health` of the operations listener says what is wrong with the service itself.
    """
    with one_line(SettingsError):
        given = some("HOST", "PORT", "OPERATIONS_HOST", "OPERATIONS_PORT")
    answer = _answer(
        [
            _asked(_API, given["HOST"], given["PORT"], LIVE if only_live else READY),
            _asked(_OPERATIONS, given["OPERATIONS_HOST"], given["OPERATIONS_PORT"], LIVE),
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
        if (one["listener"], one["answer"])
        == (_OPERATIONS, CLOSED)  # there may be no API here, but a worker
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
        "see": SECTIONS.get((listener, said)),
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
