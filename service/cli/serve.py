"""`claim-ledger serve`. It imports nothing that counts: see `service/app/serve.py`."""

import click

from service.app.key_service import KeyServiceFault
from service.app.serve import ServeFault, serve_forever
from service.app.setting import SettingsError
from service.app.settings import SERVE, Settings
from service.cli.closed_streams import lose_output
from service.cli.faults import one_line


@click.command()
def serve() -> None:
    """Serve the API, configured by the environment."""
    lose_output()
    with one_line(SettingsError, ServeFault, KeyServiceFault):
        serve_forever(Settings.from_environment(require=SERVE))
