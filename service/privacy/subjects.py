"""Whose an event is: under whose key its personal fields are, and by which id they are erased."""

from typing import Final

from service.ledger.events import Event

SUBJECT_FIELDS: Final = ("claim_id", "link_id", "entity_id", "partner_id", "staff_id")
"""Fields of events that have a subject's id, the most specific first."""


def subject_in(event: Event) -> str | None:
    """Return the id of an event's subject; None where it has none."""
    found = (getattr(event, name, None) for name in (*SUBJECT_FIELDS, "subject"))
    return next((one for one in found if one is not None), None)
