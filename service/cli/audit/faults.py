"""What the audit commands that sign have in common."""

from collections.abc import Generator
from contextlib import contextmanager

import click

from service.core.errors import Refusal
from service.facts.caller import LEDGERS

ledger_option = click.option("--ledger", type=click.Choice(LEDGERS), help="One ledger alone.")
"""For commands that else work on each ledger."""


@contextmanager
def archive_needed() -> Generator[None]:
    """Tell an operator of an archive that holds nothing of ours."""
    from service.evidence.checkpoints.published import ArchiveEmpty

    try:
        yield
    except ArchiveEmpty as error:
        raise Refusal(
            "service_unavailable",
            f"CLAIM_LEDGER_ARCHIVE_URL: {error}; only if it is a new one, begin it by "
            "`claim-ledger audit checkpoint --begin-publication`",
        ) from error


@contextmanager
def key_needed() -> Generator[None]:
    """Tell an operator of a key that is missing."""
    from service.evidence.checkpoints.signing import KeyMissing

    try:
        yield
    except KeyMissing as error:
        raise click.ClickException(f"nothing was signed: {error}") from error
