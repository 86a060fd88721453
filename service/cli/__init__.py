"""The command line: `claim-ledger`."""

import json
import sys
from typing import Final, NoReturn

import click

from service.cli.closed_streams import open_closed
from service.cli.lazy import LazyGroup
from service.cli.process_one import end_at_stop
from service.cli.stdout_errors import Unwritten, forget, tell, watch_output
from service.core.errors import Refusal


@click.group(
    cls=LazyGroup,
    modules={
        "dev.command": "dev",
        "serve": "serve",
        "worker": "worker",
        "migrate": "migrate",
        "health": "health",
        "mcp.command": "mcp",
    },
    summaries={
        "dev": "Run everything locally, with demo data.",
        "serve": "Serve the API, configured by the environment.",
        "worker": "Run the sequencer and the subscribers, without the API.",
        "migrate": "Migrate the database to the newest schema.",
        "health": "Check that the `serve` or `worker` of this machine works.",
        "mcp": "Serve the sandbox and the reference to an assistant, by MCP.",
    },
)
@click.version_option(package_name="claim-ledger")
def cli() -> None:
    """A partner API for debt recovery whose every write is an event in a ledger."""


_GROUPS: Final = {
    "partners": (
        "Partner accounts: add, review, revoke, configure.",
        {"partners": "add approve decline revoke set website list show"},
    ),
    "keys": ("API keys of partners.", {"keys": "issue list revoke roll"}),
    "members": (
        "People of a partner, who may use its developer console.",
        {"members": "add list remove"},
    ),
    "staff": ("The service's team, who may use the back office.", {"staff": "add remove list"}),
    "people": (
        "Sessions and passkeys of anybody who signs in.",
        {"people": "show sign-out recover"},
    ),
    "entities": (
        "Businesses and their connections to partners.",
        {"entities": "add show disconnect"},
    ),
    "connect": (
        "Connect links: approve or decline one for a customer.",
        {"connect": "approve decline"},
    ),
    "onboardings": (
        "Onboardings: complete one for its user, or show one.",
        {"onboardings": "complete show"},
    ),
    "claims": ("Claims and their stages.", {"claims": "show move"}),
    "documents": (
        "Documents of claims, and uploads that were never used.",
        {"documents": "verify sweep"},
    ),
    "storage": ("The document store.", {"storage": "check"}),
    "privacy": (
        "Personal data: erase it, find it, copy it.",
        {"privacy": "erase find copy reapply"},
    ),
    "keys-at-rest": (
        "Encryption keys in the database, wrapped by the master keys.",
        {"keys_at_rest": "keygen rotate verify", "event_keys": "rotate-event-key"},
    ),
    "audit": (
        "Checkpoints, verification, exports, receipts and replays of the ledgers.",
        {
            "audit.replay": "replay",
            "audit.verify": "verify",
            "audit.history": "history trace",
            "audit.keys": "keygen public-key",
            "audit.checkpoint": "checkpoint",
            "audit.lineage": "lineage",
            "audit.bind": "bind",
            "audit.set_aside": "set-aside take-back",
            "audit.export": "export",
            "audit.prove": "prove check",
            "audit.consistency": "consistency",
            "audit.report": "report",
            "audit.tiles": "tiles",
        },
    ),
    "projections": (
        (
            "Read models: status, and rebuilding them from the log.\n\n"
            "`rebuild`, `rollback` and `verify` work as the owner of the tables "
            "(`CLAIM_LEDGER_DATABASE_URL`), over a direct connection to PostgreSQL: not through a "
            "transaction pooler."
        ),
        {
            "projections.status": "status",
            "projections.rebuild": "rebuild rollback verify",
            "projections.retry": "retry",
        },
    ),
}
"""Groups: their help, and their commands by module."""

for _name, (_help, _modules) in _GROUPS.items():
    cli.add_command(LazyGroup(name=_name, help=_help, modules=_modules))


def main() -> None:
    """Run the command line; with `--json`, wrong usage is an object too, and exits with 2."""
    end_at_stop()
    has_no_stdout = open_closed()
    watch_output()
    try:
        _run()
    except Unwritten as error:
        tell(error)
    finally:
        if has_no_stdout:  # of a process that runs on, the lines of its log
            forget()
    sys.exit(1)


def _run() -> NoReturn:
    try:
        code: object = cli.main(standalone_mode=False)
    except click.ClickException as error:
        if "--json" in sys.argv:
            _print_envelope(Refusal("validation_failed", error.format_message()))
        else:
            error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("Stopped. Goodbye.", err=True)
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


def _print_envelope(refusal: Refusal) -> None:
    try:
        click.echo(json.dumps(refusal.envelope()))
    except Unwritten as error:  # the exit code is that of the fault
        tell(error)
