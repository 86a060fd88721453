"""The catalogue of events: every topic that a ledger can hold, and where it is a fact."""

from typing import Final

from service.claims.events import EVENTS as CLAIMS
from service.connections.events import EVENTS as CONNECTIONS
from service.entities.events import EVENTS as ENTITIES
from service.ledger.events import Catalogue
from service.onboardings.events import EVENTS as ONBOARDINGS
from service.partners.events import EVENTS as PARTNERS

ACCOUNTS: Final[Catalogue] = {event.__name__: event for event in PARTNERS}
"""What the ledger of accounts holds."""

PARTNER_LEDGER: Final[Catalogue] = {
    event.__name__: event for event in (*ENTITIES, *CONNECTIONS, *ONBOARDINGS, *CLAIMS)
}
"""What the ledgers live and test hold."""
