"""The one place that names concrete parts: settings → parts → application (design, layout)."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog

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
from projections.partners.projector import PartnersProjector
from projections.partners.reader import PartnersReader
from projections.staff.projector import StaffProjector
from service.app.archive import archive_for
from service.app.settings import Settings
from service.app.storage import storage_for
from service.claims.commands import ClaimCommands
from service.claims.processing import LogProcessing, Processing, ProcessingSubscriber
from service.connections.commands import ConnectionCommands
from service.core.clock import Clock, system_clock
from service.core.ids import NewId, new_id
from service.documents.commands import DocumentCommands, StorageFailures
from service.entities.commands import EntityCommands
from service.evidence.checkpoints.checkpoints import Checkpoints
from service.evidence.checkpoints.schedule import Schedule
from service.facts import catalogue
from service.facts.caller import Mode
from service.ledger.database import DEADLINE_SECONDS, Database
from service.ledger.encryption import MasterKeys
from service.ledger.events import Catalogue
from service.ledger.following.catch_up import CatchUpProjection
from service.ledger.following.runner import Background, Follower
from service.ledger.ledger import Ledger, Projector
from service.ledger.read_model import ReadModel
from service.ledger.service_keys import ServiceKeyStore
from service.mail.outbox import MailSubscriber, Outbox
from service.mail.sent import SentMail
from service.mail.transport import MailTransport
from service.onboardings.commands import OnboardingCommands
from service.partners.commands import PartnerCommands
from service.people.mail import SignInMail
from service.people.sessions import Sessions
from service.people.sign_in import SignIn
from service.people.staff import StaffCommands
from service.privacy.documents import StoredDocuments
from service.privacy.erasure_list import ErasureList
from service.privacy.erasures import Erasures
from service.privacy.reapply import Parts
from service.sandbox.fixtures import SandboxFixtures
from service.storage.port import Storage

log = structlog.get_logger()

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
        self.publication = archive_for(settings)
        self._master_keys = MasterKeys(settings.master_keys)
        self.accounts = self._ledger(
            "accounts", catalogue.ACCOUNTS, [PartnersProjector(), StaffProjector()]
        )
        self.secrets = ServiceKeyStore(self.accounts.database, self._master_keys)
        self.partner_list = PartnersReader(self.accounts.database)
        self.partners = PartnerCommands(self.accounts, self.secrets, clock, new_id)
        database = self.accounts.database
        self.sessions = Sessions(database, self._master_keys, clock, new_id)
        self.sign_in = SignIn(
            database, self.secrets, self._master_keys, self.sessions, clock, new_id
        )
        self.staff = StaffCommands(self.accounts, self.secrets, clock, new_id)
        self.modes: Mapping[Mode, PartnerLedger] = {mode: self._mode(mode) for mode in MODES}
        self.sandbox = SandboxFixtures(self.modes["test"].ledger, self.secrets)
        self.catch_up: Mapping[str, Sequence[CatchUpProjection]] = {
            ledger.name: [CatchUpProjection(ActivityProjector(), clock)] for ledger in self.ledgers
        }

    @property
    def ledgers(self) -> list[Ledger]:
        """The three ledgers."""
        return [self.accounts, *(mode.ledger for mode in self.modes.values())]

    @property
    def read_models(self) -> list[ReadModel]:
        """Every read model that can be rebuilt from its ledger's log."""
        return [
            *(
                ReadModel(ledger, projector, "inline")
                for ledger in self.ledgers
                for projector in ledger.projectors
            ),
            *(
                ReadModel(ledger, one.projector, "catch-up")
                for ledger in self.ledgers
                for one in self.catch_up[ledger.name]
            ),
        ]

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
            if self.publication is not None:
                self.publication.close()
            for ledger in self.ledgers:
                await ledger.database.close()

    def background(
        self, transport: MailTransport, processing: Processing | None = None
    ) -> Background:
        """Return the sequencer and the subscribers. Test mode has none that reaches outside."""
        live = self.modes["live"].ledger
        outbox = Outbox(
            live,
            self.partner_list,
            self.secrets,
            transport,
            public_url=self.settings.public_url,
            sender=self.settings.mail_from,
            clock=self.clock,
            sent=self.sent_mail,
        )
        sign_in_mail = SignInMail(
            self.accounts.database,
            self.secrets,
            self._master_keys,
            transport,
            public_url=self.settings.public_url,
            sender=self.settings.mail_from,
        )
        return Background(
            [
                (self.accounts, [self.sandbox, *self.catch_up["accounts"]]),
                (
                    live,
                    [
                        MailSubscriber(),
                        ProcessingSubscriber(processing or LogProcessing()),
                        *self.catch_up["live"],
                    ],
                ),
                (self.modes["test"].ledger, self.catch_up["test"]),
            ],
            [
                Follower("live.outbox", outbox.step, _nobody),
                Follower("accounts.sign_in_mail", sign_in_mail.step, _nobody),
                *self._schedules(),
            ],
        )

    def checkpoints(self, ledger: str) -> Checkpoints:
        """Return the checkpoints of a ledger: accounts, live or test."""
        (one,) = (one for one in self.ledgers if one.name == ledger)
        keys = self.settings.checkpoint_keys or ()
        return Checkpoints(one, keys, self.publication, new_id=self.new_id)

    @property
    def sent_mail(self) -> SentMail:
        """The notes of sent mails, outside the database."""
        return SentMail(self.modes["live"].ledger, self.publication, self.clock)

    def privacy(self, listed: ErasureList) -> Mapping[str, Parts]:
        """Answer, for each mode, what erasing takes; `listed` is the list outside the database."""
        return {
            mode: Parts(
                Erasures(one.ledger, listed, self.clock),
                StoredDocuments(one.ledger, one.storage.store),
            )
            for mode, one in self.modes.items()
        }

    def _schedules(self) -> list[Follower]:
        settings = self.settings
        if settings.checkpoint_keys is None:
            return []
        if self.publication is None:
            # Whoever can rewrite the database can then rewrite what tells of it, too.
            log.warning("checkpoints are published nowhere")
        return [
            Follower(
                f"{ledger.name}.checkpoint",
                Schedule(self.checkpoints(ledger.name), settings.checkpoint_seconds).step,
                _nobody,
            )
            for ledger in self.ledgers
        ]

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
    """Return the URL of a login role of the ledger's own, if one is set."""
    return {
        "accounts": settings.accounts_database_url,
        "live": settings.live_database_url,
        "test": settings.test_database_url,
    }[ledger]
