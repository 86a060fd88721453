"""`claim-ledger dev`, `serve`, `worker` and `migrate`."""

import json
from pathlib import Path

import click

from service.app.setting import SettingsError
from service.app.settings import MIGRATE, SERVE, Settings, given
from service.cli.welcome import announce


@click.command()
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port on 127.0.0.1; 0 takes a free one.",
)
@click.option(
    "--data-dir",
    default=".claim-ledger",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where database, keys, mail and logs are kept.",
)
def dev(port: int, data_dir: Path) -> None:
    """Run everything embedded, with a demonstration to try."""
    # Each command imports what it needs: together these are slower than any command.
    from migrations import MigrationFailed
    from service.cli.dev.faults import DevFault
    from service.cli.dev.postgres import EmbeddedPostgresError
    from service.cli.dev.run import run
    from service.cli.dev.storage import OF_PRODUCTION

    try:
        taken_over = given("RATE_LIMIT_PER_MINUTE", "REDIS_URL", *OF_PRODUCTION)
        run(data_dir, port, taken_over, announce)
    except (DevFault, EmbeddedPostgresError, MigrationFailed, SettingsError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or data_dir}: {error.strerror}") from error


@click.command()
def serve() -> None:
    """Serve the API; settings come from the environment."""
    from service.app.serve import ServeFault, serve_forever

    try:
        serve_forever(_settings(SERVE))
    except ServeFault as error:
        raise click.ClickException(str(error)) from error


@click.command()
def worker() -> None:
    """Run the sequencer and the subscribers alone; any number may run."""
    settings = _settings(SERVE)
    from service.app.worker import work

    work(settings)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def migrate(*, as_json: bool) -> None:
    """Bring the database to the newest schema."""
    from migrations import MigrationFailed, newest_revision
    from migrations import migrate as apply_migrations

    try:
        apply_migrations(_settings(MIGRATE).database_url)
    except MigrationFailed as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps({"revision": newest_revision()}))
    else:
        click.echo("The database is at the newest revision.")


def _settings(required: frozenset[str]) -> Settings:
    try:
        return Settings.from_environment(require=required)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
