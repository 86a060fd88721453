"""Facts about entities: the businesses that the service acts for."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple
from uuid import UUID

from service.core.ids import stream_id
from service.facts.changes import Changes
from service.ledger.events import Event, Recorded


class EntityRegistered(Event, frozen=True):
    """A business was registered. `established`: it already uses the service (or finished with us).

    The hashes are keyed lookups of the folded email address and company number (decision 8).
    They are encrypted with what they were made from, so an erasure covers them too.
    """

    personal: ClassVar = ("name", "email", "company_number", "email_hash", "company_number_hash")
    entity_id: str
    established: bool
    name: str | None = None
    email: str | None = None
    company_number: str | None = None
    email_hash: str | None = None
    company_number_hash: str | None = None


class EntityCorrected(Event, frozen=True):
    """A person corrected a partner's details of their business, before the onboarding ended."""

    personal: ClassVar = ("name", "company_number", "company_number_hash")
    entity_id: str
    name: str | None = None
    company_number: str | None = None
    company_number_hash: str | None = None


class StageMailsChosen(Event, frozen=True):
    """A business's person chose whether to be told by mail when a claim moves to another stage."""

    entity_id: str
    wanted: bool


def entity_stream(mode: str, entity_id: str) -> UUID:
    """Return the id of an entity's stream, which is also that of its data key."""
    return stream_id("entity", mode, entity_id)


class StageMails(NamedTuple):
    """What a business's person wants to be told, and how often they chose of late."""

    version: int = 0
    wanted: bool = False
    changes: Changes = Changes()


def stage_mails(before: StageMails, past: Sequence[Recorded]) -> StageMails:
    """Return what a business's person wants to be told after further events of its stream."""
    chosen = [one.event.wanted for one in past if isinstance(one.event, StageMailsChosen)]
    return StageMails(
        past[-1].version,
        chosen[-1] if chosen else before.wanted,
        before.changes.after(past, (StageMailsChosen,)),
    )
