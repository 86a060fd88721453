"""Facts about entities: the businesses that the service acts for."""

from typing import ClassVar
from uuid import UUID

from service.core.ids import stream_id
from service.ledger.events import Event


class EntityRegistered(Event, frozen=True):
    """A business became known. `established`: it uses the service already (or finished with us).

    The hashes are keyed look-ups of the folded e-mail address and company number (decision 5).
    They are sealed with what they were made from: an erasure takes them along.
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
    """Its person corrected what a partner had said of a business, before the onboarding ended."""

    personal: ClassVar = ("name", "company_number", "company_number_hash")
    entity_id: str
    name: str | None = None
    company_number: str | None = None
    company_number_hash: str | None = None


EVENTS = (EntityRegistered, EntityCorrected)


def entity_stream(mode: str, entity_id: str) -> UUID:
    """Return the id of an entity's stream, which is also that of its data key."""
    return stream_id("entity", mode, entity_id)
