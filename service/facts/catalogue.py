"""The catalogue of events: every topic that a ledger can hold, and where it is a fact."""

from typing import Final

from service.facts.claims import EVENTS as CLAIMS
from service.facts.connections import EVENTS as CONNECTIONS
from service.facts.entities import EVENTS as ENTITIES
from service.facts.lineages import EVENTS as AUDIT
from service.facts.onboardings import EVENTS as ONBOARDINGS
from service.facts.partners import EVENTS as PARTNERS
from service.facts.people import EVENTS as PEOPLE
from service.facts.privacy import EVENTS as PRIVACY
from service.ledger.events import Catalogue

ACCOUNTS: Final[Catalogue] = {event.__name__: event for event in (*PARTNERS, *PEOPLE, *AUDIT)}
"""What the ledger of accounts holds."""

PARTNER_LEDGER: Final[Catalogue] = {
    event.__name__: event
    for event in (*ENTITIES, *CONNECTIONS, *ONBOARDINGS, *CLAIMS, *PRIVACY, *AUDIT)
}
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
