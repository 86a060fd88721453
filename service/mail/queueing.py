"""Subscribers that put mail into their ledger's outbox: the events that it is about, nothing more.

Notices are about what has just happened. What is older than a day when it is handled, such as all
that came before this release, is not told any more.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from service.core.clock import Clock, system_clock
from service.core.ids import base32
from service.facts.claims import ClaimStageChanged
from service.facts.connections import EntityDisconnected
from service.facts.endpoints import EndpointDisabled
from service.facts.onboardings import OnboardingStarted
from service.facts.partners import (
    ApiKeyIssued,
    ApiKeyRevoked,
    MemberAdded,
    MemberRemoved,
    PartnerApproved,
    PartnerDeclined,
    PartnerRevoked,
    PartnerSettingsChanged,
)
from service.facts.passkeys import PasskeyAdded, PasskeyRemoved, PasskeysReset
from service.ledger.database import Row
from service.ledger.events import Event, Recorded
from service.ledger.folding import Folding
from service.ledger.following.runner import EVENTS_MAX
from service.ledger.projector import arrays
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.mail.past import LIVE_ENDPOINTS, LIVE_KEYS

S = TypeVar("S")

NOTICE_AGE_MAX: Final = timedelta(days=1)
DISCONNECTED: Final = "disconnected"
STAGE: Final = "stage"
ACCOUNT: Final = "account"
"""The kinds of notices, with which their ids begin."""
SHARE: Final = "."
"""Between a notice's id and the id of the one of several people whose mail it is."""
BEYOND: Final = chr(ord(SHARE) + 1)
"""What follows an id sorts before it together with this, if it begins with SHARE."""
STAGES_MAX: Final = 3
"""Of a business's claims of one partner that move at once: more of its mails than this would be
withheld from its mailbox anyway."""

_SQL = queries("service.mail")


@dataclass(frozen=True)
class MailSubscriber:
    """Subscriber of the live ledger: onboardings, disconnections, stages for whom wants them."""

    clock: Clock = system_clock

    name = "mail"
    events_max = EVENTS_MAX
    topics = (OnboardingStarted, EntityDisconnected, ClaimStageChanged)
    reads_personal = False
    takes_unknown = False

    async def handle(self, transaction: Transaction, events: Sequence[Recorded]) -> None:
        """Queue what to send, in the transaction that advances the checkpoint."""
        since = self.clock() - NOTICE_AGE_MAX
        notes: list[tuple[Any, ...]] = []
        moves: list[tuple[Any, ...]] = []
        for one in events:
            match one.event:
                case OnboardingStarted(mail_wanted=True) as event:
                    notes.append((event.onboarding_id, one.stream_id, None, one.meta.at))
                case EntityDisconnected() if one.meta.at > since:
                    notes.append(_note(DISCONNECTED, one))
                case ClaimStageChanged() as event if one.meta.at > since:
                    moves.append((*_note(STAGE, one), event.claim_id))
                case _:
                    pass
        if notes:
            await transaction.fetch(_SQL.outbox_note, *arrays(notes))
        if moves:
            await transaction.fetch(_SQL.outbox_note_stages, *arrays(moves), STAGES_MAX)


@dataclass(frozen=True)
class AccountMailSubscriber:
    """Subscriber of the ledger of accounts: decisions, teams, live keys, settings, passkeys."""

    clock: Clock = system_clock

    name = "mail"
    events_max = EVENTS_MAX
    topics = (
        *(PartnerApproved, PartnerDeclined, MemberAdded, MemberRemoved),
        *(ApiKeyIssued, ApiKeyRevoked, PartnerSettingsChanged, EndpointDisabled),
        *(PasskeyAdded, PasskeyRemoved, PasskeysReset),
    )
    reads_personal = False
    takes_unknown = False

    async def handle(self, transaction: Transaction, events: Sequence[Recorded]) -> None:
        """Queue what to send, in the transaction that advances the checkpoint."""
        since = self.clock() - NOTICE_AGE_MAX
        recent = [one for one in events if one.meta.at > since]
        live: dict[UUID, Collection[str]] = {
            **await _folded(transaction, recent, ApiKeyRevoked, LIVE_KEYS),
            **await _folded(transaction, recent, EndpointDisabled, LIVE_ENDPOINTS),
        }
        notes = [
            _note(ACCOUNT, one)
            for one in recent
            if await _is_told(transaction, one, live.get(one.stream_id, ()))
        ]
        if notes:
            await transaction.fetch(_SQL.outbox_note, *arrays(notes))


def addressee_of(kind: str, row: Row) -> str | None:
    """Return which of several people a notice's row is for; empty: all, or the only one.

    None where the row's id does not follow from its event: this service did not queue it.
    """
    notice = notice_id(kind, row["stream_id"], row["version"])
    if row["message_id"] == notice:
        return ""
    beginning, sign, who = row["message_id"].partition(SHARE)
    return who if (beginning, sign) == (notice, SHARE) and who else None


def _note(kind: str, one: Recorded) -> tuple[Any, ...]:
    """Return a row of the outbox."""
    return notice_id(kind, one.stream_id, one.version), one.stream_id, one.version, one.meta.at


def notice_id(kind: str, stream_id: UUID, version: int) -> str:
    """Return a notice's id in the outbox: its event's place, the same whenever it is made."""
    return f"{kind}-{stream_id}-{version}"


def sent_id(row: Row) -> str:
    """Return the id that a mail of the outbox leaves the database with.

    A restored log has other events in the places of those that it lost: a notice's id has the
    digest of its event, or it would count as sent.
    """
    name, digest = row["message_id"], row["digest"]
    return name if digest is None else f"{name}-{base32(int.from_bytes(digest[:16]))}"


async def _folded(
    transaction: Transaction,
    events: Sequence[Recorded],
    topic: type[Event],
    folding: Folding[S],
) -> dict[UUID, S]:
    """Return the states of the streams of such events, each of which is folded once."""
    streams = {one.stream_id for one in events if isinstance(one.event, topic)}
    return {stream: await transaction.fold(stream, folding) for stream in streams}


async def _is_told(transaction: Transaction, one: Recorded, live: Collection[str]) -> bool:
    """Return whether anybody may have to be told, as of the event: what nobody is, delays others'.

    Not what a member did to an endpoint, test mode's keys and endpoints, settings other than the
    return URL, nor anything of a partner that is not approved. `live` are the ids of live mode.
    """
    match one.event:
        case EndpointDisabled(reason=reason, endpoint_id=endpoint_id):
            return reason != "member" and endpoint_id in live
        case ApiKeyIssued(mode=mode):
            return mode == "live"
        case ApiKeyRevoked(key_id=key_id):
            return key_id in live
        case PartnerSettingsChanged(return_url=url):
            topics = (PartnerSettingsChanged,)
            before = await transaction.read_last(one.stream_id, topics, before=one.version)
            known = before.return_url if isinstance(before, PartnerSettingsChanged) else None
            return url != known and await _was_approved(transaction, one)
        case MemberAdded():
            return await _was_approved(transaction, one)
        case _:
            return True


async def _was_approved(transaction: Transaction, one: Recorded) -> bool:
    """Return whether a partner was approved when an event of its stream happened."""
    topics = (PartnerApproved, PartnerDeclined, PartnerRevoked)
    decided = await transaction.read_last(one.stream_id, topics, before=one.version)
    return isinstance(decided, PartnerApproved)
