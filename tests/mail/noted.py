"""The outbox of a world whose log nothing follows by itself."""

from email import message_from_bytes, policy
from email.message import EmailMessage

from service.app.bootstrap import Service
from service.archive.port import Archive
from service.core.clock import Clock, system_clock
from service.ledger.following.catch_up import ParkingSubscriber
from service.ledger.following.runner import Subscription
from service.ledger.sequencer import Sequencer
from service.mail.composing import Composer
from service.mail.directory import DirectoryTransport
from service.mail.outbox import Outbox
from service.mail.queueing import AccountMailSubscriber, MailSubscriber
from service.mail.sent import SentMail
from tests.world import PUBLIC_URL, World


def onboarding(
    reference: str = "u1", email: str = "owner@example.com", **more: str
) -> dict[str, str]:
    """Return a small valid onboarding."""
    body = {"partner_user_id": reference, "company_name": "New business", "user_email": email}
    return body | more


def composer(service: Service) -> Composer:
    """Return what writes the mails of a service."""
    whom = (service.partners.look, service.addresses.of, service.secrets)
    return Composer(*whom, PUBLIC_URL, "no-reply@example.com")


async def note_mail(world: World) -> Outbox:
    """Number the events and put their mail into the outbox; return the outbox."""
    service, live = world.service, world.service.modes["live"].ledger
    await Sequencer(live).step()
    subscription = Subscription(live, ParkingSubscriber(MailSubscriber(), system_clock))
    while await subscription.step():
        pass
    return Outbox(
        live,
        composer(service).of_live,
        DirectoryTransport(world.mail_dir),
        clock=service.clock,
        sent=SentMail([live], None, service.clock),
    )


async def note_account_mail(
    world: World, clock: Clock = system_clock, archive: Archive | None = None
) -> Outbox:
    """As `note_mail`, for the ledger of accounts."""
    service, accounts = world.service, world.service.accounts
    await Sequencer(accounts).step()
    subscriber = ParkingSubscriber(AccountMailSubscriber(clock), clock)
    while await Subscription(accounts, subscriber).step():
        pass
    return Outbox(
        accounts,
        composer(service).of_accounts,
        DirectoryTransport(world.mail_dir),
        clock=service.clock,
        sent=SentMail([accounts], archive, service.clock),
    )


def mails(world: World) -> list[EmailMessage]:
    """Return the mails that were sent."""
    return [
        message_from_bytes(path.read_bytes(), policy=policy.default)
        for path in world.mail_dir.glob("*.eml")
    ]
