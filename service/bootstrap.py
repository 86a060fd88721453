"""The one place that names concrete parts: settings → parts → application (design, layout)."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from projections.claim_documents.projector import ClaimDocumentsProjector
from projections.claim_documents.reader import ClaimDocumentsReader
from projections.claim_list.projector import ClaimListProjector
from projections.claim_list.reader import ClaimListReader
from projections.connect_links.projector import ConnectLinksProjector
from projections.connections.projector import ConnectionsProjector
from projections.connections.reader import ConnectionsReader
from projections.onboardings.projector import OnboardingsProjector
from projections.onboardings.reader import OnboardingsReader
from projections.partners.projector import PartnersProjector
from projections.partners.reader import PartnersReader
from projections.runner import Background, Follower
from service import catalogue
from service.caller import Mode
from service.claims.commands import ClaimCommands
from service.claims.processing import LogProcessing, Processing, ProcessingSubscriber
from service.clock import Clock, system_clock
from service.connections.commands import ConnectionCommands
from service.documents.commands import DocumentCommands, StorageFailures
from service.entities.commands import EntityCommands
from service.ids import NewId, new_id
from service.ledger.database import DEADLINE_SECONDS, Database
from service.ledger.events import Catalogue
from service.ledger.ledger import Ledger, Projector
from service.ledger.sealing import MasterKeys
from service.mail.outbox import MailSubscriber, Outbox
from service.mail.transport import MailTransport
from service.onboardings.commands import OnboardingCommands
from service.partners.commands import PartnerCommands
from service.sandbox import SandboxFixtures
from service.secrets import SecretsStore
from service.settings import Settings
from service.storage.chosen import Storage, storage_for

if TYPE_CHECKING:
    from service.web.metrics import Metrics
    from service.web.observe import Observer

MODES: tuple[Mode, ...] = ("live", "test")


@dataclass(frozen=True)
class PartnerLedger:
    """Everything of one mode. Nothing of the other can be reached from it (decision 4)."""

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


class Service:
    """The parts, wired. `async with service.opened()` makes the pools."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = system_clock,
        new_id: NewId = new_id,
        deadline_seconds: float = DEADLINE_SECONDS,
        storage: Callable[[Mode], Storage] | None = None,
    ) -> None:
        """Choose every part from the settings."""
        self.settings = settings
        self.clock = clock
        self.new_id = new_id
        self._deadline = deadline_seconds
        self._storage = storage or self._storage_by_settings
        self.storage_failures = StorageFailures()
        self._master_keys = MasterKeys(settings.master_keys)
        self.accounts = self._ledger("accounts", catalogue.ACCOUNTS, [PartnersProjector()])
        self.secrets = SecretsStore(self.accounts.database, self._master_keys)
        self.partner_list = PartnersReader(self.accounts.database)
        self.partners = PartnerCommands(self.accounts, self.secrets, clock, new_id)
        self.modes: Mapping[Mode, PartnerLedger] = {mode: self._mode(mode) for mode in MODES}
        self.sandbox = SandboxFixtures(self.modes["test"].ledger, self.secrets)

    @property
    def ledgers(self) -> list[Ledger]:
        """The three ledgers."""
        return [self.accounts, *(mode.ledger for mode in self.modes.values())]

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator["Service", None]:
        """Open the pools, and close them at the end."""
        for ledger in self.ledgers:
            await ledger.database.open()
        try:
            yield self
        finally:
            for mode in self.modes.values():
                mode.storage.close()
            for ledger in self.ledgers:
                await ledger.database.close()

    def background(
        self, transport: MailTransport, processing: Processing | None = None
    ) -> Background:
        """Answer the sequencer and the subscribers. Test mode has none that reaches outside."""
        live = self.modes["live"].ledger
        outbox = Outbox(
            live,
            self.partner_list,
            self.secrets,
            transport,
            public_url=self.settings.public_url,
            sender=self.settings.mail_from,
            clock=self.clock,
        )
        return Background(
            [
                (self.accounts, [self.sandbox]),
                (
                    live,
                    [MailSubscriber(), ProcessingSubscriber(processing or LogProcessing())],
                ),
                (self.modes["test"].ledger, []),
            ],
            [Follower("live.outbox", outbox.step, _nobody)],
        )

    def app(self, metrics: "Metrics", background: Background | None) -> "Observer":
        """Answer the web application; with `background` it follows the log in-process too."""
        # Here, because the web framework takes most of the time that a team's command may take.
        from service.bootstrap_web import web_app  # noqa: PLC0415 - as said above

        return web_app(self, metrics, background)

    def _mode(self, mode: Mode) -> PartnerLedger:
        projectors = [
            ConnectionsProjector(),
            OnboardingsProjector(),
            ConnectLinksProjector(),
            ClaimListProjector(),
            ClaimDocumentsProjector(),
        ]
        ledger = self._ledger(mode, catalogue.PARTNER_LEDGER, projectors)
        claim_list = ClaimListReader(ledger.database)
        onboarding_list = OnboardingsReader(ledger.database)
        connection_list = ConnectionsReader(ledger.database)
        storage = self._storage(mode)
        documents = DocumentCommands(
            ledger.database,
            connection_list,
            self.secrets,
            storage,
            self.clock,
            self.new_id,
            self.storage_failures,
        )
        clock, draw, url = self.clock, self.new_id, self.settings.public_url
        return PartnerLedger(
            ledger=ledger,
            entities=EntityCommands(ledger, self.secrets, clock, draw),
            onboardings=OnboardingCommands(
                ledger, onboarding_list, self.partner_list, self.secrets, url, clock, draw
            ),
            connections=ConnectionCommands(
                ledger, self.partner_list, self.secrets, url, clock, draw
            ),
            claims=ClaimCommands(ledger, claim_list, documents, clock, draw),
            documents=documents,
            claim_documents=ClaimDocumentsReader(ledger.database),
            storage=storage,
            claim_list=claim_list,
            connection_list=connection_list,
            onboarding_list=onboarding_list,
        )

    def _storage_by_settings(self, mode: Mode) -> Storage:
        settings = self.settings
        return storage_for(
            settings, {"live": settings.live_bucket, "test": settings.test_bucket}[mode]
        )

    def _ledger(self, name: str, events: Catalogue, projectors: Sequence[Projector]) -> Ledger:
        own_url = _ledger_url(self.settings, name)
        database = Database(
            own_url or self.settings.database_url,
            name,
            role=None if own_url else f"claim_ledger_{name}",
            pool_size=self.settings.pool_size,
            deadline=self._deadline,
        )
        return Ledger(database, events, projectors, self._master_keys, self.clock, _nobody)


def _nobody() -> None:
    """Wake nobody: no sequencer runs in this process."""


def _ledger_url(settings: Settings, ledger: str) -> str | None:
    """Answer the URL of a login role of the ledger's own, if one is set."""
    return {
        "accounts": settings.accounts_database_url,
        "live": settings.live_database_url,
        "test": settings.test_database_url,
    }[ledger]
