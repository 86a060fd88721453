"""What the audit commands that sign have in common."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import click

LEDGERS: Final = ("accounts", "live", "test")

ledger_option = click.option("--ledger", type=click.Choice(LEDGERS), help="One ledger alone.")
"""For commands that else work on each ledger."""


@contextmanager
def key_needed() -> Generator[None]:
    """Tell an operator of a key that is missing."""
    from service.audit.checkpoints import KeyMissing

    try:
        yield
    except KeyMissing as error:
        raise click.ClickException(f"nothing was signed: {error}") from error
