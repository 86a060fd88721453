"""The parts that requests, commands and followers share, chosen by the settings (design, layout).

Beside it, `background.py`, `web.py` and `pages.py` wire what only they need.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

from projections.endpoints.projector import EndpointsProjector
from projections.endpoints.reader import EndpointsReader
from projections.partners.projector import PartnersProjector
from projections.partners.reader import PartnersReader
from projections.staff.projector import StaffProjector
from service.app.ledgers import PartnerLedger, catch_up_projectors, inline_projectors, ledger_for
from service.app.master_keys import master_keys
from service.app.settings import Settings
from service.app.storage import archive_for, storage_of_mode, tiles_for
from service.claims.hand_overs import HandOverQueue
from service.core.clock import Clock, system_clock
from service.core.ids import NewId, new_id
from service.documents.checks import DocumentCheckQueue
from service.documents.commands import StorageFailures
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.countersigners import Countersigners
from service.evidence.time_stamp import TimeAuthority
from service.evidence.verify.people import People
from service.evidence.verify.slices import Slices
from service.facts import catalogue
from service.facts.caller import MODES, Mode
from service.ledger.batching import Batcher
from service.ledger.following.catch_up import CatchUpProjection, Handler, ParkingSubscriber
from service.ledger.ledger import Ledger
from service.ledger.limits import DEADLINE_SECONDS
from service.ledger.read_model import ReadModel
from service.ledger.service_keys import Secrets, ServiceKeyStore
from service.ledger.traced import TracedBatcher
from service.mail.queueing import AccountMailSubscriber, MailSubscriber
from service.mail.sent import SentMail
from service.partners.commands import PartnerCommands
from service.partners.reviews import PartnerReviews
from service.people.addresses import Addresses
from service.people.marks import Marks
from service.people.passkeys import PasskeyCommands
from service.people.sessions import Sessions
from service.people.sign_in import SignIn
from service.people.staff import StaffCommands
from service.privacy.documents import StoredDocuments
from service.privacy.erasure_list import ErasureList
from service.privacy.erasure_subjects import ErasureSubjects
from service.privacy.erasures import Erasures
from service.privacy.reapply import Parts
from service.sandbox.fixtures import SandboxFixtures
from service.storage.port import Storage
from service.webhooks.commands import EndpointCommands
from service.webhooks.queues import EndpointQueues, Queues


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
        self.deadline_seconds = deadline_seconds
        self.storage_failures = StorageFailures()
        self.archive = archive_for(settings)
        self.tiles = tiles_for(settings)
        ring = master_keys(settings)
        make_ledger = partial(
            ledger_for,
            *(settings, ring, clock, deadline_seconds),
            self._secrets,
        )
        self.accounts = make_ledger(
            "accounts",
            catalogue.ACCOUNTS,
            [PartnersProjector(), StaffProjector(), EndpointsProjector()],
        )
        database = self.accounts.database
        self.people_of_log = People(self.accounts)
        self.secrets = ServiceKeyStore(database, ring)
        make_batcher = Batcher if settings.otlp_url is None else TracedBatcher
        self.partner_list = PartnersReader(self.accounts, make_batcher)
        self.partners = PartnerCommands(self.accounts, self.secrets, clock, new_id)
        self.reviews = PartnerReviews(self.accounts)
        idle = timedelta(minutes=settings.session_idle_minutes)
        self.sessions = Sessions(database, ring, clock, new_id, idle=idle)
        self.marks = Marks(database, self.secrets)
        self.sign_in = SignIn(database, self.secrets, ring, self.sessions, clock, new_id)
        self.staff = StaffCommands(self.accounts, self.secrets, clock, new_id)
        self.passkeys = PasskeyCommands(self.accounts, self.sessions, clock, new_id)
        make_storage = storage or partial(storage_of_mode, settings)
        self.modes: Mapping[Mode, PartnerLedger] = {
            mode: PartnerLedger(
                make_ledger(mode, catalogue.PARTNER_LEDGER, inline_projectors()),
                make_storage(mode),
                self.storage_failures,
                self.partner_list,
                self.secrets,
                settings.public_url,
                clock,
                new_id,
                make_batcher,
            )
            for mode in MODES
        }
        live = self.modes["live"]
        self.addresses = Addresses(
            *(self.accounts, self.secrets, self.partner_list, self.partners.look),
            *(live.ledger, live.connection_list),
        )
        self.endpoint_list = EndpointsReader(database)
        self.webhook_queues = Queues(
            {mode: one.ledger.database for mode, one in self.modes.items()}, clock
        )
        self.endpoints = EndpointCommands(
            self.accounts, self.webhook_queues, clock, new_id, settings.private_webhooks
        )
        self.sandbox = SandboxFixtures(self.modes["test"].ledger, self.secrets)
        self.catch_up: Mapping[str, Sequence[CatchUpProjection]] = {
            ledger.name: [
                CatchUpProjection(projector, clock)
                for projector in catch_up_projectors(ledger.name)
            ]
            for ledger in self.ledgers
        }

    async def _secrets(self, *, anew: bool = False) -> Secrets:
        """Return the secrets, which are kept in one of the ledgers that need them."""
        return await self.secrets.get(anew=anew)

    @property
    def ledgers(self) -> list[Ledger]:
        """The three ledgers."""
        return [self.accounts, *(mode.ledger for mode in self.modes.values())]

    def ledger(self, name: str) -> Ledger:
        """Return a ledger by its name: accounts, live or test."""
        return next(ledger for ledger in self.ledgers if ledger.name == name)

    @property
    def parking(self) -> Mapping[str, Sequence[ParkingSubscriber]]:
        """The subscribers of each ledger that park what they cannot handle."""
        handlers: Mapping[str, Sequence[Handler]] = {
            "accounts": [
                self.sandbox,
                EndpointQueues(self.webhook_queues.databases, self.clock),
                AccountMailSubscriber(self.clock),
            ],
            "live": [MailSubscriber(self.clock), HandOverQueue(), DocumentCheckQueue()],
            "test": [DocumentCheckQueue()],
        }
        return {
            name: [*(ParkingSubscriber(one, self.clock) for one in handlers[name]), *projections]
            for name, projections in self.catch_up.items()
        }

    def parked_by(self, ledger: str, name: str) -> ParkingSubscriber:
        """Return the subscriber of a ledger that has a name."""
        return next(one for one in self.parking[ledger] if one.name == name)

    @property
    def read_models(self) -> list[ReadModel]:
        """Every read model that can be rebuilt from its ledger's log."""
        ledgers = self.ledgers
        inline = [ReadModel(one, model, "inline") for one in ledgers for model in one.projectors]
        return inline + [
            ReadModel(one, projection.projector, "catch-up")
            for one in ledgers
            for projection in self.catch_up[one.name]
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
            for place in filter(None, [self.archive, self.tiles]):
                place.close()
            for ledger in self.ledgers:
                await ledger.database.close()

    def checkpoints(self, ledger: str) -> Checkpoints:
        """Return the checkpoints of a ledger: accounts, live or test."""
        keys = self.settings.checkpoint_keys or ()
        return Checkpoints(
            self.ledger(ledger), keys, self.archive, new_id=self.new_id, signers=self.countersigners
        )

    def slices(self, ledger: str) -> Slices:
        """Return what verifies a ledger's whole log, a slice at a time."""
        settings = self.settings
        keys = settings.checkpoint_keys or ()
        seconds = settings.verification_interval_seconds
        return Slices(self.ledger(ledger), keys, seconds, self.people_of_log)

    @property
    def time_authority(self) -> TimeAuthority | None:
        """The authority that stamps checkpoints, if there is one."""
        name, anchor = self.settings.time_stamp_name, self.settings.time_stamp_anchor_file
        return None if name is None or anchor is None else TimeAuthority(name, anchor)

    @property
    def countersigners(self) -> Countersigners:
        """Those who sign checkpoints after us, by the settings."""
        policy, anchor = self.settings.witness_policy_file, self.settings.time_stamp_anchor_file
        return Countersigners(
            () if policy is None else policy.keys,
            list(filter(None, [self.time_authority])),
            filter(None, [anchor]),
        )

    @property
    def sent_mail(self) -> SentMail:
        """The notes of sent mails, outside the database."""
        return SentMail([self.accounts, self.modes["live"].ledger], self.archive, self.clock)

    def privacy(self, listed: ErasureList) -> Mapping[str, Parts]:
        """Return what erasing takes in each ledger; `listed` is the list outside the database."""
        stores = {mode.ledger: mode.storage.store for mode in self.modes.values()}
        # Nothing in the ledger of accounts has documents.
        stores[self.accounts] = self.modes["live"].storage.store
        return {
            ledger.name: Parts(
                ErasureSubjects(ledger),
                Erasures(ledger, listed, self.clock),
                StoredDocuments(ledger, store),
            )
            for ledger, store in stores.items()
        }
