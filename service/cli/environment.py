"""The settings of the environment, for a command."""

from collections.abc import Collection

import click

from service.app.setting import SettingsError
from service.app.settings import Settings


def settings_for(required: Collection[str]) -> Settings:
    """Return them; a ClickException names every fault."""
    try:
        return Settings.from_environment(require=required)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
