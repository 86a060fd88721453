"""Facts about entities: the businesses that the service acts for."""

from typing import ClassVar
from uuid import UUID

from service.core.ids import stream_id
from service.ledger.events import Event


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
