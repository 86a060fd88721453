"""Facts about erasures."""

from uuid import UUID

from service.ledger.events import Event


class PersonalDataErased(Event, frozen=True):
    """A subject's data key was destroyed: what it sealed can be read by nobody (decision 5).

    In the subject's own stream. `subject` is the id of the claim or entity, `data_key` that of the
    destroyed key; `reason` is the team's own words, in the clear.
    """

    subject: str
    data_key: UUID
    reason: str


EVENTS = (PersonalDataErased,)
