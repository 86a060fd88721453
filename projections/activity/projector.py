"""From every fact to a row for each thing that it is about: the index of timelines."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER
from service.facts.claims import DocumentsAttached
from service.ledger.events import Event, Recorded
from service.ledger.projector import Insert, Projector, Table, Write

SUBJECT_FIELDS: Final = (
    "claim_id",
    "entity_id",
    "partner_id",
    "onboarding_id",
    "link_id",
    "endpoint_id",
    "key_id",
    "member_id",
    "message_id",
    "document_id",
    "staff_id",
    "person_id",
    "passkey_id",
    "subject",
)
"""Fields of events that hold an id of ours; partners' own references are not among them."""

ACTIVITY = Table(
    "activity",
    "subject text, position bigint, topic text, at timestamptz, actor text, request_id text",
)


class ActivityProjector(Projector):
    """Table `activity`. It holds ids and nothing personal."""

    name = "activity"
    version = 1
    tables = (ACTIVITY,)
    topics = tuple({**ACCOUNTS, **PARTNER_LEDGER}.values())

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return a row for each subject, and one for the request; needs the event's position."""
        topic, meta = type(recorded.event).__name__, recorded.meta
        for subject in dict.fromkeys((*subjects(recorded.event), meta.request_id)):
            row = (subject, recorded.position, topic, meta.at, meta.actor, meta.request_id)
            yield Insert(ACTIVITY, row)


def subjects(event: Event) -> list[str]:
    """Return the ids of what an event is about, some perhaps twice."""
    found = [getattr(event, name) for name in _fields(type(event))]
    if isinstance(event, DocumentsAttached):
        found += [document.document_id for document in event.documents]
    return [subject for subject in found if subject is not None]


@cache
def _fields(cls: type[Event]) -> Sequence[str]:
    return [name for name in SUBJECT_FIELDS if name in cls.__struct_fields__]
