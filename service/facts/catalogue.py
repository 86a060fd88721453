"""The catalogue of events: every topic that a ledger can hold, and where it is a fact."""

from types import ModuleType
from typing import Final

from service.facts import (
    claims,
    connections,
    endpoints,
    entities,
    event_keys,
    lineages,
    onboardings,
    partners,
    passkeys,
    people,
    privacy,
    reviews,
)
from service.ledger.events import Event


def _events(*modules: ModuleType) -> dict[str, type[Event]]:
    """Return the events that modules define, in the order in which they do."""
    return {
        cls.__name__: cls
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Event) and cls.__module__ == module.__name__
    }


ACCOUNTS: Final = _events(
    partners, reviews, endpoints, people, passkeys, event_keys, privacy, lineages
)
"""What the ledger of accounts holds."""

PARTNER_LEDGER: Final = _events(entities, connections, onboardings, claims, privacy, lineages)
"""What the ledgers live and test hold."""


def catalogue_document() -> str:
    """Return the documentation's catalogue: each event, its ledger, version, fields and meaning."""
    lines: list[str] = []
    for topic, event in (ACCOUNTS | PARTNER_LEDGER).items():
        ledgers = [
            *(["accounts"] if topic in ACCOUNTS else []),
            *(["live", "test"] if topic in PARTNER_LEDGER else []),
        ]
        meaning = (event.__doc__ or "").partition("\n")[0]
        fields = [
            f"`{name}`" + (" (encrypted)" if name in event.personal else "")
            for name in event.__struct_fields__
        ]
        lines += [
            f"### {topic}",
            "",
            f"{meaning} Ledger: {', '.join(ledgers)}. Version {event.class_version}.",
            "",
            f"Fields: {', '.join(fields)}.",
            "",
        ]
    return "\n".join(lines)
