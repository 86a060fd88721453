"""`claim-ledger dev`."""

from pathlib import Path

import click

from migrations import MigrationFailed
from service.app.setting import SettingsError
from service.app.settings import given
from service.cli.dev.faults import DevFault
from service.cli.dev.postgres.faults import describe
from service.cli.dev.run import run
from service.cli.dev.storage import OF_PRODUCTION
from service.cli.dev.welcome import announce, say_goodbye
from service.cli.options import WholeNumber


@click.command()
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=WholeNumber(0, 65535),
    help="Port on 127.0.0.1; 0 chooses a free one.",
)
@click.option(
    "--data-dir",
    default=".claim-ledger",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Directory for database, keys, mail, documents and logs.",
)
def dev(port: int, data_dir: Path) -> None:
    """Run everything locally, with demo data."""
    try:
        taken_over = given("RATE_LIMIT_PER_MINUTE", "REDIS_URL", "SITE_PATH", *OF_PRODUCTION)
        run(data_dir, port, taken_over, announce)
        say_goodbye(data_dir)
    except (DevFault, MigrationFailed, SettingsError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(describe(error, data_dir)) from error
