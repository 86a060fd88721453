"""Which installation a command works on, and running the command against it."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import click

from service import logs
from service.bootstrap import Service
from service.cli.output import refuse, show
from service.dev.state import DevState
from service.errors import Refusal
from service.ledger.database import LedgerUnavailable
from service.ledger.events import Cause
from service.ledger.sealing import KeyUnknown
from service.settings import TEAM, Settings, SettingsError

ACTOR = "staff:cli"
DEADLINE_SECONDS = 10.0
"""A person waits longer than a partner's server does."""


class Target(NamedTuple):
    """The parts, and the cause that this command's events will name."""

    service: Service
    cause: Cause


Command = Callable[..., Awaitable[Mapping[str, Any]]]


def team_command(command: Command) -> Callable[..., None]:
    """Give a command `--json` and `--data-dir`, open the service for it, print what it answers."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    @click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Work on the running `claim-ledger dev` of this directory.",
    )
    @wraps(command)
    def run(*args: object, as_json: bool, data_dir: Path | None, **options: object) -> None:
        logs.configure("warning", sys.stderr.buffer)
        try:
            settings = _settings(data_dir)
        except SettingsError as error:
            raise click.ClickException(str(error)) from error
        try:
            show(asyncio.run(_run(command, settings, args, options)), as_json=as_json)
        except Refusal as refusal:
            refuse(refusal)
        except LedgerUnavailable:
            refuse(Refusal("service_unavailable", "PostgreSQL does not answer."))
        except KeyUnknown as error:
            raise click.ClickException(f"CLAIM_LEDGER_MASTER_KEYS: {error}") from error

    return run


async def _run(
    command: Command, settings: Settings, args: tuple[object, ...], options: dict[str, object]
) -> Mapping[str, Any]:
    service = Service(settings, deadline_seconds=DEADLINE_SECONDS)
    cause = Cause(ACTOR, service.new_id("req", service.clock()))
    async with service.opened():
        return await command(Target(service, cause), *args, **options)


def _settings(data_dir: Path | None) -> Settings:
    """Answer the settings of a running dev, or those of the environment."""
    if data_dir is None:
        return Settings.from_environment(require=TEAM)
    try:
        return DevState.of_running(data_dir).settings()
    except FileNotFoundError as error:
        raise click.ClickException(
            f"no `claim-ledger dev` is running on {data_dir}: {error.filename} is missing"
        ) from error
