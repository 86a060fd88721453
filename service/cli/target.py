"""Choosing the installation that a command works on, and running the command against it."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial, wraps
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click
import structlog
from asyncpg import PostgresError

from service.app.bootstrap import Service
from service.app.key_service import KeyServiceFault
from service.app.setting import SettingsError
from service.app.settings import LEDGER_URLS, SETTINGS, TEAM, Settings, given
from service.app.storage import storage_of_mode
from service.archive.port import ArchiveUnavailable
from service.cli.dev.state import FACTS, DevState
from service.cli.options import as_option, json_option
from service.cli.outage import why
from service.cli.output import print_answer, refuse
from service.cli.verdict import Unjudged
from service.core import logs
from service.core.errors import Refusal, invalid
from service.core.forked_processes import NO_SPARES, Spares
from service.evidence.checkpoints.behind import Behind
from service.ledger.database import LedgerError
from service.ledger.encryption import KeyGone, KeyUnknown
from service.ledger.events import Cause, Unreadable
from service.ledger.sequencer import HeadAltered
from service.storage.lazy import lazy_storage
from service.storage.port import StorageUnavailable

FIRST_ACTOR = "system:installation"
"""Who adds the first member of the team: whoever installed the service."""
_NOBODY = "system:auditor"
"""Whoever only reads, without a master key: no event names it."""
DEADLINE_SECONDS = 10.0
"""A person waits longer than a partner's server does."""
DEV_DIRECTORY = Path(".claim-ledger")

Named = Literal["always", "unless-first", "never"]
"""Whether a command names a member of the team; `unless-first`: only once there is one."""


class Target(NamedTuple):
    """The service's parts, and the cause that this command's events will name.

    `person` is the address of whoever runs it, and `spares` work beside it.
    """

    service: Service
    cause: Cause
    person: str | None = None
    spares: Spares = NO_SPARES

    @property
    def staff_id(self) -> str:
        """The staff id of whoever runs the command."""
        return self.cause.actor.partition(":")[2]


Command = Callable[..., Awaitable[Mapping[str, Any]]]
Run = Callable[..., None]


class _Call(NamedTuple):
    """A command, whether it names somebody, whom `--as` named, and what works beside it."""

    command: Command
    named: Named
    person: str | None
    spares: Spares


class Environment(NamedTuple):
    """What a command requires of the environment if no running dev is named, and how it is read."""

    require: Collection[str]
    read: Callable[..., Settings] = Settings.from_environment


_OF_TEAM = Environment(TEAM)

_data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Work on the running `claim-ledger dev` of this directory.",
)


def team_command(
    command: Command,
    environment: Environment = _OF_TEAM,
    around: Callable[[Run], Run] = lambda run: run,
    named: Named = "always",
    spares: Callable[[Mapping[str, object]], int] = lambda _options: 0,
) -> click.Command:
    """Make a function a command of its name, with `--json`, `--data-dir` and `--as`.

    It opens the service for the function, and prints what that returns. `environment` has
    the settings when no running dev is named; `around` wraps what click calls. Unless it is `named`
    never, it refuses to run for anybody who is not in the team. `spares` says by its options how
    many processes may work beside it.
    """

    @wraps(command)
    def run(
        *, as_json: bool, data_dir: Path | None, person: str | None = None, **options: object
    ) -> None:
        try:
            with Spares(spares(options)) as beside:
                call = _Call(command, named, person, beside)
                answer = _answer(call, environment, data_dir, options)
        except Refusal as refusal:
            refuse(refusal, as_json=as_json)
        print_answer(answer, as_json=as_json)

    made = click.command(command.__name__.strip("_").replace("_", "-"))(around(run))
    made = _data_dir_option(json_option(made))
    return made if named == "never" else as_option(made)


def _answer(
    call: _Call,
    environment: Environment,
    data_dir: Path | None,
    options: Mapping[str, object],
) -> Mapping[str, Any]:
    """Return the command's answer; every fault becomes a Refusal or a ClickException."""
    for name, value in options.items():
        if isinstance(value, str) and not _is_text(value):
            raise invalid(name, "not text in UTF-8")
    settings: Settings | None = None
    try:
        logs.configure("warning", sys.stderr.buffer)  # before anything can fail, and be logged
        settings = _settings(data_dir, environment)
        return asyncio.run(_run(call, settings, options))
    except (Refusal, click.ClickException, click.Abort):
        raise
    except (KeyUnknown, KeyServiceFault, Unreadable, SettingsError) as error:
        of_ring = isinstance(error, KeyUnknown | KeyServiceFault) and type(error) is not KeyGone
        whose = "CLAIM_LEDGER_MASTER_KEYS: " if of_ring else ""
        raise click.ClickException(f"{whose}{error}") from error
    except ArchiveUnavailable as error:
        message = f"CLAIM_LEDGER_ARCHIVE_URL cannot be written or read: {error}"
        raise Refusal("service_unavailable", message) from error
    except StorageUnavailable as error:
        message = f"The document store is unavailable ({error}): run `claim-ledger storage check`."
        raise Refusal("service_unavailable", message) from error
    except HeadAltered as error:
        message = f"Nothing can be numbered: {error}. `audit verify` shows more."
        raise Refusal("service_unavailable", message) from error
    except (LedgerError, PostgresError) as error:
        raise Refusal("service_unavailable", why(error, data_dir, settings)) from error
    except Exception as error:  # a bug of ours: logged whole, and answered with one line
        structlog.get_logger().exception("command failed")
        raise Refusal("internal_error") from error


async def _run(call: _Call, settings: Settings, options: Mapping[str, object]) -> Mapping[str, Any]:
    service = Service(
        settings,
        deadline_seconds=DEADLINE_SECONDS,
        storage=lambda mode: lazy_storage(partial(storage_of_mode, settings, mode)),
    )
    async with service.opened():
        person = call.person or settings.staff
        actor = await _actor(call.named, person, service)
        cause = Cause(actor, service.new_id("req", service.clock()))
        try:
            return await call.command(Target(service, cause, person, call.spares), **options)
        except Behind as error:
            fields = {"ok": None, "ledger": error.ledger, "behind": error.size}
            return Unjudged(fields, str(error))


async def _actor(named: Named, email: str | None, service: Service) -> str:
    """Return who runs a command, as its events name them; refuses with `not_staff`."""
    if named == "never":
        return _NOBODY
    if named == "unless-first" and not await service.staff.has_anyone():
        return FIRST_ACTOR
    if email is None:
        raise click.ClickException(
            "who runs this command? Give --as EMAIL, an address of the team, or set "
            "CLAIM_LEDGER_STAFF; `claim-ledger staff add EMAIL` adds the first one"
        )
    staff_id = await service.staff.find(email)
    if staff_id is None:
        raise Refusal("not_staff", f"{email} does not belong to the service's team.")
    return f"staff:{staff_id}"


def _settings(data_dir: Path | None, environment: Environment) -> Settings:
    """Return the settings of a running dev, or those of the environment."""
    if data_dir is not None:
        try:
            return DevState.of_running(data_dir).settings()
        except FileNotFoundError as error:
            message = f"no `claim-ledger dev` is running on {data_dir}: it has no {FACTS}"
            raise click.ClickException(message) from error
        except (OSError, ValueError, KeyError) as error:
            message = f"{data_dir}/{FACTS} cannot be read ({type(error).__name__})"
            raise click.ClickException(message) from error
    if not given(*LEDGER_URLS):
        nearby = (DEV_DIRECTORY / FACTS).exists()
        hint = f"--data-dir {DEV_DIRECTORY}, which runs here," if nearby else "--data-dir DIRECTORY"
        *others, last = [one.variable for one in SETTINGS if one.name in environment.require]
        raise click.ClickException(
            f"which installation? Give {hint} for a running `claim-ledger dev`, or set "
            f"{', '.join(others)} and {last}"
        )
    return environment.read(require=environment.require)


def _is_text(value: str) -> bool:
    """Return whether an argument is UTF-8 without NUL; other bytes are lone surrogates in argv."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
