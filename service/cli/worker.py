"""`claim-ledger worker`."""

import click

from service.app.key_service import KeyServiceFault
from service.app.setting import SettingsError
from service.app.settings import SERVE, Settings
from service.app.worker import work
from service.cli.closed_streams import lose_output
from service.cli.faults import one_line


@click.command()
def worker() -> None:
    """Run the sequencer and the subscribers, without the API. Any number may run."""
    lose_output()
    with one_line(SettingsError, KeyServiceFault):
        work(Settings.from_environment(require=SERVE))
