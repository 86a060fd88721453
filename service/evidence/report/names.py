"""The names of those who acted, from the events of the ledger of accounts."""

from collections.abc import Mapping
from typing import Final, Self

from service.evidence.replay.log_fault import refuse_foreign
from service.facts.partners import ApiKeyIssued, MemberAdded, PartnerApplied
from service.facts.people import StaffAdded
from service.ledger.events import Event
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

SECONDS_MAX: Final = 600.0
PAGE: Final = 1000
"""Events that are read at once."""

_TOPICS: Final = (PartnerApplied, ApiKeyIssued, MemberAdded, StaffAdded)
_SQL = queries("service.evidence.report")


class Names:
    """Names of actors: a partner's name, a person's address."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """Take the names by id: of partners, keys, staff and people."""
        self._names = names

    @classmethod
    async def read(cls, accounts: Ledger) -> Self:
        """Read them all; what was erased has none.

        A name is what events of this service say that have a number. Raises LogFault for a numbered
        one that another wrote: it would name whom it likes.
        """
        names: dict[str, str] = {}
        topics, last = [topic.__name__ for topic in _TOPICS], 0
        async with accounts.transaction(background=SECONDS_MAX) as transaction:
            while rows := await transaction.fetch(_SQL.named, topics, last, PAGE):
                await refuse_foreign(accounts, rows)
                for recorded in await transaction.decode(rows):
                    names |= _named(recorded.event)
                last = rows[-1]["append_id"]
        return cls(names)

    def of_id(self, subject: str) -> str | None:
        """Return the name of a partner or person by their id; None: unknown."""
        return self._names.get(subject)

    def of(self, actor: str) -> str | None:
        """Return the name of an event's actor, such as `partner:ptn_…/key_…`; None: unknown."""
        kind, _, name = actor.partition(":")
        if kind == "system":
            return "claim-ledger"
        if kind != "partner":
            return self._names.get(name)
        partner_id, _, key_id = name.partition("/")
        partner, key = self._names.get(partner_id), self._names.get(key_id)
        return f"{partner} (key {key})" if partner and key else partner


def _named(event: Event) -> Mapping[str, str]:
    match event:
        case PartnerApplied(partner_id=partner_id, name=str(name)):
            return {partner_id: name}
        case ApiKeyIssued(key_id=key_id, name=str(name)):
            return {key_id: name}
        case MemberAdded(person_id=str(person_id), email=str(email)):
            return {person_id: email}
        case StaffAdded(staff_id=staff_id, email=str(email)):
            return {staff_id: email}
        case _:
            return {}
