"""The line that people read first: whether all is well, and what it rests on."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Final

from service.core.counted import counted

Fields = dict[str, Any]
"""A JSON object that is printed: a command's answer, or a part of it."""

_FAULTS_SHOWN: Final = 3
_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


_AS_THEY_ARE: Final[Mapping[str, str]] = {}


class Told(Fields):
    """An answer with a verdict, which people read above it; a program gets the facts alone.

    `labels` are what people read in the place of fields' names.
    """

    exit_code: ClassVar[int] = 0
    begins: ClassVar[str] = ""

    def __init__(
        self, fields: Mapping[str, Any], verdict: str, labels: Mapping[str, str] = _AS_THEY_ARE
    ) -> None:
        super().__init__(fields)
        self.verdict = self.begins + verdict
        self.labels = labels


class Findings(Told):
    """An answer that reports something wrong: printed like any other; the exit code is 1."""

    exit_code = 1
    begins = "WRONG: "


class Unjudged(Told):
    """An answer that neither is well nor wrong, as far as can be known here: exit code 3."""

    exit_code = 3
    begins = "NOT JUDGED: "


class Fine(Told):
    """An answer that reports that all is well."""

    begins = "OK: "


def ago(since: timedelta) -> str:
    """Return how long ago something was, in its largest unit: `2 minutes ago`."""
    seconds = max(int(since.total_seconds()), 0)
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{counted(seconds // size, unit)} ago"
    return "just now"


def listed(faults: Sequence[str]) -> str:
    """Return what is wrong on one line; of many faults, the first ones. Some are sentences."""
    shown, more = list(faults[:_FAULTS_SHOWN]), len(faults) - _FAULTS_SHOWN
    if more > 0:
        shown.append(f"and {more} more")
    return "; ".join([*(one.removesuffix(".") for one in shown[:-1]), *shown[-1:]])
