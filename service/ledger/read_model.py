"""A read model as a rebuild sees it: its ledger, its projector, how its rows keep up."""

from typing import Literal, NamedTuple

from service.ledger.ledger import Ledger
from service.ledger.projector import Projector

Kind = Literal["inline", "catch-up"]
"""Inline rows are written with the events; catch-up rows follow the numbered log."""


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
        """The names of its tables, in the order in which they are locked."""
        return tuple(sorted(table.name for table in self.projector.tables))

    @property
    def topics(self) -> list[str]:
        """The topics that may change a row."""
        return [topic.__name__ for topic in self.projector.topics]

    @property
    def next_schema(self) -> str:
        """Where the new tables are built."""
        return f"{self.ledger.name}_next"

    @property
    def previous_schema(self) -> str:
        """Where the replaced tables are kept."""
        return f"{self.ledger.name}_previous"
