"""The three ledgers by the settings, and the parts of each mode over its ledger."""

from collections.abc import Sequence
from typing import Any

from projections.activity.projector import ActivityProjector
from projections.claim_documents.projector import ClaimDocumentsProjector
from projections.claim_documents.reader import ClaimDocumentsReader
from projections.claim_list.projector import ClaimListProjector
from projections.claim_list.reader import ClaimListReader
from projections.connect_links.projector import ConnectLinksProjector
from projections.connections.projector import ConnectionsProjector
from projections.connections.reader import ConnectionsReader
from projections.onboardings.projector import OnboardingsProjector
from projections.onboardings.reader import OnboardingsReader
from projections.partner_events.projector import PartnerEventsProjector
from projections.partner_events.reader import PartnerEventsReader
from projections.partners.reader import PartnersReader
from service.app.databases import database_of
from service.app.settings import Settings
from service.claims.commands import ClaimCommands
from service.claims.details import ClaimDetails
from service.connections.commands import ConnectionCommands
from service.core.clock import Clock
from service.core.ids import NewId
from service.documents.commands import DocumentCommands, StorageFailures
from service.entities.commands import EntityCommands
from service.ledger.batching import Batcher
from service.ledger.encryption import MasterKeys
from service.ledger.events import Catalogue
from service.ledger.ledger import Ledger, Projector
from service.ledger.service_keys import GetSecrets, ServiceKeyStore
from service.onboardings.commands import OnboardingCommands
from service.storage.port import Storage


def ledger_for(
    settings: Settings,
    master_keys: MasterKeys,
    clock: Clock,
    deadline_seconds: float,
    secrets: GetSecrets,
    name: str,
    events: Catalogue,
    projectors: Sequence[Projector],
) -> Ledger:
    """Return the ledger accounts, live or test, its pool not yet opened."""
    database = database_of(settings, name, deadline_seconds)
    return Ledger(database, events, projectors, master_keys, clock, secrets)


def inline_projectors() -> Sequence[Projector]:
    """Return the read models that a mode's ledger projects in the append's transaction."""
    return [
        ConnectionsProjector(),
        OnboardingsProjector(),
        ConnectLinksProjector(),
        ClaimListProjector(),
        ClaimDocumentsProjector(),
    ]


def catch_up_projectors(name: str) -> Sequence[Projector]:
    """Return the read models that follow a ledger's log."""
    if name == "accounts":
        return [ActivityProjector()]
    return [ActivityProjector(), PartnerEventsProjector()]


class PartnerLedger:
    """Everything of one mode. Nothing of the other can be reached from it (decision 5)."""

    def __init__(
        self,
        ledger: Ledger,
        storage: Storage,
        storage_failures: StorageFailures,
        partner_list: PartnersReader,
        secrets: ServiceKeyStore,
        public_url: str,
        clock: Clock,
        new_id: NewId,
        make_batcher: type[Batcher[Any, Any]],
    ) -> None:
        """Wire the mode's commands and readers."""
        database = ledger.database
        self.ledger = ledger
        self.storage = storage
        self.claim_list = ClaimListReader(database)
        self.claim_documents = ClaimDocumentsReader(database)
        self.onboarding_list = OnboardingsReader(database)
        self.connection_list = ConnectionsReader(ledger)
        self.partner_events = PartnerEventsReader(database)
        self.documents = DocumentCommands(
            ledger, self.connection_list, secrets, storage, clock, new_id, storage_failures
        )
        self.claims = ClaimCommands(
            ledger, self.claim_list, self.documents, clock, new_id, make_batcher
        )
        self.details = ClaimDetails(ledger, self.claim_list, self.connection_list)
        self.entities = EntityCommands(ledger, secrets, clock, new_id)
        self.onboardings = OnboardingCommands(
            ledger, self.onboarding_list, partner_list, secrets, public_url, clock, new_id
        )
        self.connections = ConnectionCommands(
            ledger, partner_list, secrets, public_url, clock, new_id
        )
