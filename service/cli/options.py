"""Options that several commands have."""

import re
from datetime import timedelta
from typing import ClassVar

import click

from service.facts.caller import LEDGERS


class WholeNumber(click.IntRange):
    """A whole number within bounds, by a name that people know: click's is "integer range"."""

    name = "number"


class Age(click.ParamType[timedelta]):
    """Whole hours or days, such as `12h` or `7d`, from a least number of hours to 99,999 days."""

    name = "age"
    _HOURS: ClassVar = {"h": 1, "d": 24}

    def __init__(self, hours_min: int = 1) -> None:
        self._hours_min = hours_min

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Return the age; fail if it is no such text, or less than the least."""
        if isinstance(value, timedelta):
            return value
        match = re.fullmatch(r"([0-9]{1,5})([hd])", str(value), re.ASCII)
        hours = int(match[1]) * self._HOURS[match[2]] if match else 0
        if match is None or hours < self._hours_min:
            expected = f"expected hours or days, at least {self._hours_min}h, such as 7d"
            self.fail(f"{value!r}: {expected}", param, ctx)
        return timedelta(hours=hours)


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
"""For commands without an installation; `team_command` gives it to the others."""

as_option = click.option(
    "--as",
    "person",
    metavar="EMAIL",
    help="Who you are: an address of the team; default: CLAIM_LEDGER_STAFF.",
)
"""For the team's commands: `team_command` gives it to them."""


def _reference(
    _context: click.Context, _parameter: click.Parameter, given: str | None
) -> str | None:
    if given is not None and not given.strip():
        raise click.BadParameter("expected a reference")  # an unset variable of a shell, perhaps
    return given


once_option = click.option(
    "--once",
    metavar="REFERENCE",
    callback=_reference,
    help="A reference of your own, which makes it safe to repeat the command.",
)
"""For commands that make something new each time."""

ledger_option = click.option("--ledger", type=click.Choice(LEDGERS), help="Only this ledger.")
"""For commands that otherwise work on every ledger."""

one_ledger_option = click.option(
    "--ledger", type=click.Choice(LEDGERS), default="live", show_default=True, help="The ledger."
)
"""For commands that work on one ledger."""

yes_option = click.option(
    "--yes", is_flag=True, help="Do not ask for confirmation; required without a terminal."
)
"""For commands that ask before they do what cannot be undone."""
