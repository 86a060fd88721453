"""What the audit commands share: the choice of a ledger, and faults of signing."""

from collections.abc import Generator
from contextlib import contextmanager

import click

from service.core.errors import Refusal
from service.evidence.checkpoints.published import ArchiveEmpty
from service.evidence.checkpoints.stored import KeyMissing
from service.facts.caller import LEDGERS

ledger_option = click.option("--ledger", type=click.Choice(LEDGERS), help="Only this ledger.")
"""For commands that otherwise work on every ledger."""


@contextmanager
def archive_needed() -> Generator[None]:
    """Turn ArchiveEmpty into a Refusal that names the way on."""
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
    """Turn KeyMissing into a ClickException."""
    try:
        yield
    except KeyMissing as error:
        raise click.ClickException(f"nothing was signed: {error}") from error
