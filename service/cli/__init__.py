"""The command line: `claim-ledger`."""

import json
import sys
from typing import Final

import click

from service.cli.audit import audit
from service.cli.lazy import LazyGroup
from service.core.errors import Refusal


@click.group(
    cls=LazyGroup,
    lazy={
        "dev": "service.cli.dev.command",
        "serve": "service.cli.serve",
        "worker": "service.cli.serve",
        "migrate": "service.cli.migrate",
    },
    summaries={
        "dev": "Run everything locally, with demo data.",
        "serve": "Serve the API, configured by the environment.",
        "worker": "Run the sequencer and the subscribers, without the API.",
        "migrate": "Migrate the database to the newest schema.",
    },
)
@click.version_option(package_name="claim-ledger")
def cli() -> None:
    """A partner API for debt recovery whose every write is an event in a ledger."""


_GROUPS: Final = {
    "partners": (
        "Partner accounts: add, review, revoke, configure.",
        ("add", "approve", "decline", "revoke", "set", "list", "show"),
    ),
    "keys": ("API keys of partners.", ("issue", "list", "revoke", "roll")),
    "members": (
        "People of a partner, who may use its developer console.",
        ("add", "list", "remove"),
    ),
    "staff": ("The service's team, who may use the back office.", ("add", "remove", "list")),
    "entities": (
        "Businesses and their connections to partners.",
        ("add", "show", "disconnect"),
    ),
    "connect": ("Connect links, used as the customer would.", ("approve", "decline")),
    "onboardings": ("Onboardings, used as their person would.", ("complete", "show")),
    "claims": ("Claims and their stages.", ("show", "move")),
    "documents": ("Documents of claims, and uploads that were never used.", ("verify", "sweep")),
    "storage": ("The document store.", ("check",)),
    "privacy": ("Personal data: erase it, find it.", ("erase", "find", "reapply")),
    "keys-at-rest": (
        "Encryption keys in the database, wrapped by the master keys.",
        ("rotate", "verify"),
    ),
}
"""Groups of one module each: their help, and their commands."""

for _name, (_help, _commands) in _GROUPS.items():
    _module = f"service.cli.{_name.replace('-', '_')}"
    cli.add_command(LazyGroup(name=_name, help=_help, lazy=dict.fromkeys(_commands, _module)))
cli.add_command(audit)
cli.add_command(
    LazyGroup(
        name="projections",
        help="Read models: status, and rebuilding them from the log.\n\n"
        "`rebuild`, `rollback` and `verify` work as the owner of the tables, over a direct "
        "connection to PostgreSQL: not through a transaction pooler.",
        lazy={
            "status": "service.cli.projections.status",
            "rebuild": "service.cli.projections.rebuild",
            "rollback": "service.cli.projections.rebuild",
            "verify": "service.cli.projections.rebuild",
            "retry": "service.cli.projections.retry",
        },
    )
)


def main() -> None:
    """Run the command line; with `--json`, wrong usage is an object too, and exits with 2."""
    try:
        code: object = cli.main(standalone_mode=False)
    except click.ClickException as error:
        if "--json" in sys.argv:
            message = error.format_message()
            click.echo(json.dumps(Refusal("validation_failed", message).envelope()))
        else:
            error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("Aborted.", err=True)
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)
