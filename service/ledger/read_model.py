"""What a rebuild knows of a read model: its ledger, its projector, how its rows keep up."""

from typing import Literal, NamedTuple

from service.ledger.events import Event
from service.ledger.ledger import Ledger, Projector

Kind = Literal["inline", "catch-up"]
"""Inline rows are written with the events; catch-up rows follow the numbered log."""


class RebuildRefused(Exception):
    """A rebuild cannot go on; nothing live has changed. `str()` is fit for an operator."""


class ReadModel(NamedTuple):
    """A read model of one ledger.

    A catch-up read model's checkpoint is the row of `subscriptions` that has the projector's name.
    """

    ledger: Ledger
    projector: Projector
    kind: Kind

    @property
    def name(self) -> str:
        """The projector's name."""
        return self.projector.name

    @property
    def tables(self) -> tuple[str, ...]:
        """Its tables, in the order in which they are locked."""
        return tuple(sorted(self.projector.tables))

    @property
    def topics(self) -> list[str] | None:
        """The topics that may change a row, where the projector names them (`topics`)."""
        topics: tuple[type[Event], ...] = getattr(self.projector, "topics", ())
        return [topic.__name__ for topic in topics] or None

    @property
    def reads_personal(self) -> bool:
        """Whether rows depend on sealed fields. A projector may say that none does."""
        return bool(getattr(self.projector, "reads_personal", True))

    @property
    def next_schema(self) -> str:
        """Where the new tables are built."""
        return f"{self.ledger.name}_next"

    @property
    def previous_schema(self) -> str:
        """Where the replaced tables are kept."""
        return f"{self.ledger.name}_previous"
