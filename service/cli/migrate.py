"""`claim-ledger migrate`."""

import json

import click

import migrations
from service.app.settings import MIGRATE
from service.cli.environment import settings_for


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def migrate(*, as_json: bool) -> None:
    """Migrate the database to the newest schema."""
    try:
        migrations.migrate(settings_for(MIGRATE).database_url)
    except migrations.MigrationFailed as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps({"revision": migrations.newest_revision()}))
    else:
        click.echo("The database is at the newest revision.")
