"""What runs beside requests: the sequencers, the subscribers, mail and checkpoints."""

import structlog

from projections.partner_events.projector import PartnerEventsProjector
from service.app.bootstrap import Service
from service.claims.hand_overs import HandOverQueue, HandOvers
from service.claims.processing import LogProcessing, Processing
from service.documents.checks import DocumentCheckQueue, DocumentChecks
from service.documents.clamd import Clamd
from service.evidence.checkpoints.schedule import Schedule
from service.evidence.countersigning.time_stamping import TimeStamping
from service.evidence.countersigning.witnessing import Witnessing
from service.evidence.tiles.writer import TilesWriter
from service.evidence.tree.keeper import TreeNodes
from service.facts.caller import Mode
from service.ledger.following.runner import Around, Background, Follower
from service.ledger.queue_runner import QueueRunner
from service.mail.composing import Composer
from service.mail.outbox import Outbox
from service.mail.port import MailTransport
from service.mail.queueing import MailSubscriber
from service.people.mail import SignInMail
from service.webhooks.deliveries import DeliveryParts, Post
from service.webhooks.dispatcher import Dispatcher
from service.webhooks.messages import Messages
from service.webhooks.sender import Sender
from service.webhooks.shared_pool import SharedPool
from service.webhooks.targets import Targets

log = structlog.get_logger()


def background(
    service: Service,
    transport: MailTransport,
    processing: Processing | None = None,
    around: Around | None = None,
) -> Background:
    """Return the sequencers and the subscribers. Test mode has neither mail nor processing.

    `around` wraps the step of each.
    """
    return Background(
        [(ledger, service.parking[ledger.name]) for ledger in service.ledgers],
        [
            *_mail(service, transport),
            _hand_overs(service, processing or LogProcessing()),
            *_document_checks(service),
            *_webhooks(service),
            *_checkpoints(service),
            *_tiles(service),
            *_witnesses(service),
            *_time_stamps(service),
            *_verification(service),
            *_tree_nodes(service),
        ],
        around,
    )


def _mail(service: Service, transport: MailTransport) -> list[Follower]:
    settings = service.settings
    composer = Composer(
        *(service.partners.look, service.addresses.of, service.secrets),
        *(settings.public_url, settings.mail_from),
    )
    outboxes = [
        Outbox(ledger, compose, transport, clock=service.clock, sent=service.sent_mail)
        for ledger, compose in (
            (service.accounts, composer.of_accounts),
            (service.modes["live"].ledger, composer.of_live),
        )
    ]
    sign_in_mail = SignInMail(
        service.accounts.database,
        service.secrets,
        service.accounts.master_keys,
        transport,
        public_url=settings.public_url,
        sender=settings.mail_from,
    )
    return [
        *(
            Follower(
                f"{one.ledger.name}.outbox",
                one.step,
                queue=f"{one.ledger.name}.{MailSubscriber.name}",
                at_end=one.answers.stop,
            )
            for one in outboxes
        ),
        Follower("accounts.sign_in_mail", sign_in_mail.step, at_end=sign_in_mail.answers.stop),
    ]


def _hand_overs(service: Service, processing: Processing) -> Follower:
    live = service.modes["live"].ledger
    queue = service.parked_by("live", HandOverQueue.name)
    hand_overs = QueueRunner(HandOvers(live, queue, processing), service.clock)
    name = f"live.{HandOverQueue.name}"
    return Follower("live.hand_overs", hand_overs.step, queue=name)


def _document_checks(service: Service) -> list[Follower]:
    """Return what checks the documents of each mode.

    A process without buckets leaves them to others: each of its checks would fail, and be counted.
    """
    if service.settings.live_bucket is None:  # test mode has none either
        return []
    url = service.settings.clamd_url
    scanner = None if url is None else Clamd(url)
    return [
        Follower(
            f"{name}.document_checks",
            QueueRunner(
                DocumentChecks(
                    mode.ledger,
                    service.parked_by(name, DocumentCheckQueue.name),
                    mode.storage.store,
                    scanner,
                ),
                service.clock,
            ).step,
            queue=f"{name}.{DocumentCheckQueue.name}",
        )
        for name, mode in service.modes.items()
    ]


def _webhooks(service: Service) -> list[Follower]:
    post = Sender(allow_private=service.settings.private_webhooks).post
    return [_webhooks_of(service, name, post) for name in service.modes]


def _webhooks_of(service: Service, name: Mode, post: Post) -> Follower:
    mode = service.modes[name]
    dispatcher = Dispatcher(
        DeliveryParts(
            SharedPool(mode.ledger.database),
            Messages(mode.partner_events, service.settings.public_url, name),
            Targets(service.endpoint_list, service.accounts, name),
            service.endpoints,
            service.secrets.get,
            post,
            service.clock,
        )
    )
    follower = Follower(
        f"{name}.webhooks",
        dispatcher.step,
        queue=f"{name}.{PartnerEventsProjector.name}",
        at_end=dispatcher.stop,
    )
    dispatcher.on_served = follower.wake
    return follower


def _checkpoints(service: Service) -> list[Follower]:
    settings = service.settings
    if settings.checkpoint_keys is None:
        return []
    if service.archive is None:
        # Whoever can rewrite the database can then rewrite the evidence of it, too.
        log.warning("checkpoints are published nowhere")
    return [
        Follower(
            f"{ledger.name}.checkpoint",
            Schedule(service.checkpoints(ledger.name), settings.checkpoint_interval_seconds).step,
        )
        for ledger in service.ledgers
    ]


def _tiles(service: Service) -> list[Follower]:
    if service.tiles is None or service.settings.checkpoint_keys is None:
        return []
    return [
        Follower(
            f"{ledger.name}.tiles",
            TilesWriter(service.checkpoints(ledger.name), service.tiles).step,
        )
        for ledger in service.ledgers
    ]


def _witnesses(service: Service) -> list[Follower]:
    """Return what asks each witness, by its address, for each ledger: one waits for no other."""
    settings = service.settings
    policy = settings.witness_policy_file
    if policy is None or settings.checkpoint_keys is None:
        return []
    return [
        Follower(
            f"{ledger.name}.witness{number}",
            Witnessing(service.checkpoints(ledger.name), service.archive, url, keys).step,
        )
        for ledger in service.ledgers
        for number, (url, keys) in enumerate(policy.asked.items(), 1)
    ]


def _time_stamps(service: Service) -> list[Follower]:
    url, authority = service.settings.time_stamp_url, service.time_authority
    if url is None or authority is None or service.settings.checkpoint_keys is None:
        return []
    return [
        Follower(
            f"{ledger.name}.time_stamp",
            TimeStamping(service.checkpoints(ledger.name), service.archive, url, authority).step,
        )
        for ledger in service.ledgers
    ]


def _verification(service: Service) -> list[Follower]:
    return [
        Follower(f"{ledger.name}.verification", service.slices(ledger.name).step)
        for ledger in service.ledgers
    ]


def _tree_nodes(service: Service) -> list[Follower]:
    return [
        Follower(f"{ledger.name}.tree_nodes", TreeNodes(ledger).step) for ledger in service.ledgers
    ]
