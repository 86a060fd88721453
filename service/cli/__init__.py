"""The command line: `claim-ledger`."""

import json
import sys

import click

from service.cli.audit import audit
from service.cli.claims import claims
from service.cli.customers import connect, entities, onboardings
from service.cli.documents import documents, storage
from service.cli.keys_at_rest import keys_at_rest
from service.cli.members import members
from service.cli.partners import keys, partners
from service.cli.privacy import privacy
from service.cli.projections import projections
from service.cli.run import dev, migrate, serve, worker
from service.cli.staff import staff
from service.core.errors import Refusal


@click.group()
@click.version_option(package_name="claim-ledger")
def cli() -> None:
    """A partner API for debt recovery whose every write is an event in a ledger."""


for command in (
    dev,
    serve,
    worker,
    migrate,
    partners,
    keys,
    members,
    staff,
    entities,
    connect,
    onboardings,
    claims,
    documents,
    storage,
    audit,
    privacy,
    keys_at_rest,
    projections,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line; with `--json`, wrong usage is an object too, and ends with 2."""
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
