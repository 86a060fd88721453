"""Events of somebody who could not act, of which an operator has explained so many.

They stay in the log for good. How many are explained is a setting, not a fact in the database:
whoever can forge an event could write that, too.
"""

from typing import Final

from service.app.setting import PREFIX
from service.app.settings import Settings
from service.core.counted import counted

_SETTING: Final = f"{PREFIX}EXPLAINED_ACTORS"


class ExplainedActors:
    """How many findings about actors are explained, by ledger."""

    def __init__(self, settings: Settings) -> None:
        self._numbers = settings.explained_actors

    def of(self, ledger: str) -> int:
        """Return how many are explained."""
        return self._numbers.get(ledger, 0)

    def cover(self, ledger: str, faults: int | None) -> bool:
        """Return whether so many findings are explained; none at all are, too."""
        return (faults or 0) <= self.of(ledger)

    def told(self, ledger: str, faults: int) -> str:
        """Return what is said of explained findings where all is well."""
        return f"{ledger} has {counted(faults, 'explained event')} of somebody who could not act"

    def excess(self, ledger: str, faults: int | None) -> str | None:
        """Return what is said of a number that explains more than there is."""
        if faults is None or faults >= self.of(ledger):
            return None
        explained = self.of(ledger)
        return f"{ledger}: {_SETTING} explains {explained}, but there are only {faults}: lower it"
