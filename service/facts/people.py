"""Facts about the service's team."""

from typing import ClassVar
from uuid import UUID

from service.core.ids import stream_id
from service.ledger.events import Event


class StaffAdded(Event, frozen=True):
    """An e-mail address belongs to the team from now on.

    `email_hash` is the keyed look-up of the folded address, sealed with it (decision 5).
    """

    personal: ClassVar = ("email", "email_hash")
    staff_id: str
    email: str | None = None
    email_hash: str | None = None


class StaffRemoved(Event, frozen=True):
    """It does no longer; sessions that it opened can do nothing of the team's from now on."""

    staff_id: str


class PersonalDataOpened(Event, frozen=True):
    """One of the team opened what is personal of a claim. Recorded before it is shown."""

    staff_id: str
    claim_id: str


EVENTS = (StaffAdded, StaffRemoved, PersonalDataOpened)


def staff_stream(email_hash: str) -> UUID:
    """Return the id of the stream of one address: adding it twice meets itself."""
    return stream_id("staff", email_hash)


def opened_stream(request_id: str, claim_id: str) -> UUID:
    """Return the id of the stream of one look: each is a fact of its own, and waits for none."""
    return stream_id("personal-data-opened", request_id, claim_id)
