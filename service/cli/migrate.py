"""`claim-ledger migrate`."""

import json

import click

import migrations
from service.app.setting import SettingsError
from service.app.settings import MIGRATE, Settings
from service.cli.faults import one_line
from service.cli.options import json_option


@click.command()
@json_option
def migrate(*, as_json: bool) -> None:
    """Migrate the database to the newest schema."""
    with one_line(SettingsError, migrations.MigrationFailed):
        migrations.migrate(Settings.from_environment(require=MIGRATE).database_url)
    if as_json:
        click.echo(json.dumps({"revision": migrations.newest_revision()}))
    else:
        click.echo("The database is at the newest revision.")
