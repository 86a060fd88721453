"""Facts about erasures."""

from uuid import UUID

from service.ledger.events import Event


class PersonalDataErased(Event, frozen=True):
    """A subject's data key was destroyed. Nobody can read what it encrypted (decision 8).

    In the subject's own stream. `subject` is the id of the claim, entity, link or member of the
    team, `data_key` that of the destroyed key. `reason` is in the team's own words, unencrypted.
    """

    subject: str
    data_key: UUID
    reason: str
