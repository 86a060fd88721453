"""The parts of one mode, live or test, over its ledger."""

from collections.abc import Sequence
from dataclasses import dataclass

from projections.claim_documents.projector import ClaimDocumentsProjector
from projections.claim_documents.reader import ClaimDocumentsReader
from projections.claim_list.projector import ClaimListProjector
from projections.claim_list.reader import ClaimListReader
from projections.connect_links.projector import ConnectLinksProjector
from projections.connections.projector import ConnectionsProjector
from projections.connections.reader import ConnectionsReader
from projections.onboardings.projector import OnboardingsProjector
from projections.onboardings.reader import OnboardingsReader
from projections.partners.reader import PartnersReader
from service.claims.commands import ClaimCommands
from service.connections.commands import ConnectionCommands
from service.core.clock import Clock
from service.core.ids import NewId
from service.documents.commands import DocumentCommands, StorageFailures
from service.entities.commands import EntityCommands
from service.ledger.ledger import Ledger, Projector
from service.ledger.service_keys import ServiceKeyStore
from service.onboardings.commands import OnboardingCommands
from service.storage.port import Storage


@dataclass(frozen=True)
class PartnerLedger:
    """Everything of one mode. Nothing of the other can be reached from it (decision 5)."""

    ledger: Ledger
    entities: EntityCommands
    onboardings: OnboardingCommands
    connections: ConnectionCommands
    claims: ClaimCommands
    documents: DocumentCommands
    claim_documents: ClaimDocumentsReader
    storage: Storage
    claim_list: ClaimListReader
    connection_list: ConnectionsReader
    onboarding_list: OnboardingsReader


def inline_projectors() -> Sequence[Projector]:
    """Return the read models that a mode's ledger projects in the append's transaction."""
    return [
        ConnectionsProjector(),
        OnboardingsProjector(),
        ConnectLinksProjector(),
        ClaimListProjector(),
        ClaimDocumentsProjector(),
    ]


def partner_ledger(
    ledger: Ledger,
    storage: Storage,
    storage_failures: StorageFailures,
    partner_list: PartnersReader,
    secrets: ServiceKeyStore,
    public_url: str,
    clock: Clock,
    new_id: NewId,
) -> PartnerLedger:
    """Wire a mode's commands and readers."""
    claim_list = ClaimListReader(ledger.database)
    onboarding_list = OnboardingsReader(ledger.database)
    connection_list = ConnectionsReader(ledger.database)
    documents = DocumentCommands(
        ledger.database, connection_list, secrets, storage, clock, new_id, storage_failures
    )
    return PartnerLedger(
        ledger=ledger,
        entities=EntityCommands(ledger, secrets, clock, new_id),
        onboardings=OnboardingCommands(
            ledger, onboarding_list, partner_list, secrets, public_url, clock, new_id
        ),
        connections=ConnectionCommands(ledger, partner_list, secrets, public_url, clock, new_id),
        claims=ClaimCommands(ledger, claim_list, documents, clock, new_id),
        documents=documents,
        claim_documents=ClaimDocumentsReader(ledger.database),
        storage=storage,
        claim_list=claim_list,
        connection_list=connection_list,
        onboarding_list=onboarding_list,
    )
