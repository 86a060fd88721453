"""Facts about the service's team."""

from typing import ClassVar
from uuid import UUID

from service.core.ids import derived_id, stream_id
from service.ledger.events import Event


class StaffAdded(Event, frozen=True):
    """An email address was added to the service's team.

    `email_hash` is the keyed lookup of the folded address, encrypted with it (decision 8).
    """

    personal: ClassVar = ("email", "email_hash")
    staff_id: str
    email: str | None = None
    email_hash: str | None = None


class StaffRemoved(Event, frozen=True):
    """An email address was removed from the team. Its sessions lose the team's access."""

    staff_id: str


class PersonalDataOpened(Event, frozen=True):
    """A team member opened a claim's personal data. Recorded before the data is shown."""

    staff_id: str
    claim_id: str


class PersonSignedOut(Event, frozen=True):
    """The team ended a person's sessions, or one of them. `sessions`: how many held until then."""

    person_id: str
    sessions: int


def person_id(email_hash: str) -> str:
    """Return the id by which events name a person: it reveals nothing without the look-up key."""
    return derived_id("per", email_hash)


def staff_stream(email_hash: str, erased: int = 0) -> UUID:
    """Return the id of an address's stream, so that adding it twice has no effect.

    It is another one after it was `erased` so many times: its key opens nothing any more.
    """
    return stream_id("staff", email_hash, *([str(erased)] if erased else []))


def signed_out_stream(request_id: str, person_id: str) -> UUID:
    """Return the id of the stream of one sign-out by the team: each is its own fact."""
    return stream_id("signed-out", request_id, person_id)


def opened_stream(request_id: str, claim_id: str) -> UUID:
    """Return the id of the stream of one access: each is its own fact and waits for no other."""
    return stream_id("personal-data-opened", request_id, claim_id)
