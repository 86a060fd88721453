"""Faults of signing and publishing, as the audit commands report them."""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from service.cli.faults import one_line
from service.core.errors import Refusal
from service.evidence.checkpoints.published import ArchiveEmpty
from service.evidence.checkpoints.stored import KeyMissing


@contextmanager
def archive_needed() -> Generator[None]:
    """Turn ArchiveEmpty into a Refusal that says how to continue."""
    try:
        yield
    except ArchiveEmpty as error:
        raise Refusal(
            "service_unavailable",
            f"CLAIM_LEDGER_ARCHIVE_URL: {error}; only if it is a new one, begin it by "
            "`claim-ledger audit checkpoint --begin-publication`",
        ) from error


def key_needed() -> AbstractContextManager[None]:
    """Turn KeyMissing into a ClickException."""
    return one_line(KeyMissing, before="nothing was signed: ")
