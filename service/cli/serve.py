"""`claim-ledger serve` and `worker`."""

import click

from service.app.serve import ServeFault, serve_forever
from service.app.settings import SERVE
from service.app.worker import work
from service.cli.environment import settings_for


@click.command()
def serve() -> None:
    """Serve the API, configured by the environment."""
    try:
        serve_forever(settings_for(SERVE))
    except ServeFault as error:
        raise click.ClickException(str(error)) from error


@click.command()
def worker() -> None:
    """Run the sequencer and the subscribers, without the API. Any number may run."""
    work(settings_for(SERVE))
