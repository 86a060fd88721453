"""`claim-ledger migrate`."""

import json

import click

import migrations
from service.app.setting import SettingsError
from service.app.setting_values import database_place
from service.app.settings import MIGRATE, Settings
from service.cli.faults import one_line
from service.cli.options import WholeNumber, json_option
from service.cli.output import refuse
from service.core.errors import Refusal
from service.facts.caller import LEDGERS


@click.command()
@click.option(
    "--wait",
    "wait_seconds",
    type=WholeNumber(0, 86_400),
    default=0,
    show_default=True,
    metavar="SECONDS",
    help="Wait so long for a PostgreSQL that cannot be reached yet, or is starting.",
)
@json_option
def migrate(*, wait_seconds: int, as_json: bool) -> None:
    """Migrate the database to the newest schema. Then the roles of the ledgers can log in.

    Each of claim_ledger_accounts, claim_ledger_live and claim_ledger_test gets the password of its
    URL in the settings. Nothing else of the service needs the owner's login, but for rebuilds.
    """
    with one_line(SettingsError):
        settings = Settings.from_environment(require=MIGRATE)
        urls = {name: settings.values[f"{name.upper()}_DATABASE_URL"] for name in LEDGERS}
    given = {name: url for name, url in urls.items() if url is not None}
    place = database_place(settings.database_url)

    def tell(why: str) -> None:
        click.echo(f"waiting for PostgreSQL at {place}, {wait_seconds} s in all: {why}", err=True)

    migrations.wait(settings.database_url, wait_seconds, tell)
    try:
        logins = migrations.migrate(settings.database_url, given)
    except migrations.MigrationUnavailable as error:
        said = f"PostgreSQL at {place}: {error}"
        refuse(Refusal("service_unavailable", said), as_json=as_json)
    except migrations.MigrationFailed as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        answer = {"revision": migrations.newest_revision(), "logins": logins}
        click.echo(json.dumps(answer))
        return
    click.echo("The database is at the newest revision.")
    for name in logins:
        click.echo(f"{name} can log in.")
    lacking = [f"CLAIM_LEDGER_{name.upper()}_DATABASE_URL" for name in LEDGERS if name not in given]
    if lacking:
        click.echo(f"The service also needs {', '.join(lacking)}: set them, and run this again.")
