"""The options that demand what others have signed of a checkpoint, and what is said of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import click

from service.cli.verdict import Fields
from service.core.clock import timestamp
from service.evidence.policy import POLICY_BYTES_MAX, parse_policy
from service.evidence.time_stamp import ANCHOR_BYTES_MAX, TimeAnchor
from service.evidence.verdict import Countersigned

T = TypeVar("T")


def _in_file(parse: Callable[[bytes], T], bytes_max: int) -> Callable[[str], T]:
    def read(path: str) -> T:
        """Return what is in a file; fail if it cannot be read or is nothing of that kind."""
        try:
            with Path(path).open("rb") as file:
                return parse(file.read(bytes_max + 1))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise click.BadParameter(f"{path!r}: {why}") from error

    return read


policy_option: Final = click.option(
    "--policy",
    type=_in_file(parse_policy, POLICY_BYTES_MAX),
    metavar="FILE",
    help="Require the cosignatures of witnesses that this policy asks for.",
)
time_anchor_option: Final = click.option(
    "--time-anchor",
    type=_in_file(TimeAnchor.parse, ANCHOR_BYTES_MAX),
    metavar="FILE",
    multiple=True,
    help="Require a time stamp by an authority under this certificate (PEM).",
)


def fields_of(found: Countersigned) -> Fields:
    """Return what others have signed, as far as it was demanded."""
    fields: Fields = {}
    if found.witnesses is not None:
        fields["witnesses"] = found.witnesses
    if found.existed_before is not None:
        fields["existed_before"] = timestamp(found.existed_before)
    return fields | ({"countersigned_size": found.size} if fields else {})
