"""What staff and a partner's own team do to partner accounts: a method each."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Concatenate, Final, NamedTuple, ParamSpec

from service.core.clock import Clock
from service.core.errors import Refusal
from service.core.ids import NewId, once_id, stream_id
from service.facts.caller import MODES
from service.facts.partners import (
    ApiKeyIssued,
    ApiKeyRevoked,
    Partner,
    PartnerApplied,
    partner_stream,
)
from service.ledger.events import ERASED, Cause, Event, Recorded
from service.ledger.folding import Folding
from service.ledger.ledger import Ledger
from service.ledger.service_keys import ServiceKeyStore
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.ledger.writing import Append
from service.partners import decisions
from service.partners.keys import Token, hash_secret, new_secret, reference_id, successor_id
from service.partners.past import COUNTED, PAST, proven
from service.partners.personal import personal_key
from service.partners.wire import leads_to

P = ParamSpec("P")

_SQL = queries("service.partners")

OVERLAPS: Final = {
    "now": timedelta(),
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
"""How long a rolled key stays valid beside the new one."""


LENT_FOR: Final = timedelta(hours=1)
"""How long a key works that the reference's page was lent."""


class IssuedKey(NamedTuple):
    """A key and its bearer token, which is shown only once."""

    key_id: str
    mode: decisions.Mode
    token: str


class Roll(NamedTuple):
    """Who rolled a key, and how long the old one was to work from then: one of OVERLAPS."""

    actor: str
    overlap: timedelta


class Profile(NamedTuple):
    """What people are told of a partner that asks to act for them; None where it is not known.

    By its events: whoever can write to a read model has it ask under no other's name.
    `website` is one that the team has verified; `since` is when it approved the partner.
    `return_url` is where its customers may take their entity's id: under the name of a partner that
    the team has approved, and on the website that it verified, if it did.
    """

    name: str
    email: str | None
    website: str | None
    since: datetime | None
    return_url: str | None = None


_NAMED: Final[Folding[str | None]] = Folding(
    None,
    lambda before, past: next(
        (one.event.name for one in past if isinstance(one.event, PartnerApplied)), before
    ),
    topics=[PartnerApplied.__name__],
)
"""Not all topics: what only a later release knows keeps no customer from their account."""


class _Rolled(NamedTuple):
    """The keys that were issued, and of those that were rolled how, by the old key's id."""

    issued: frozenset[str] = frozenset()
    rolls: Mapping[str, Roll] = MappingProxyType({})


def _rolls(before: _Rolled, past: Sequence[Recorded]) -> _Rolled:
    issued, rolls = set(before.issued), dict(before.rolls)
    for one in past:
        match one.event:
            case ApiKeyIssued(key_id=key_id):
                issued.add(key_id)
            case ApiKeyRevoked(partner_id=partner_id, key_id=key_id, effective_at=ends_at):
                # A roll issues the successor and ends the old key at once; later ends are others'.
                if key_id not in rolls and successor_id(partner_id, key_id) in issued:
                    kept = (ends_at or one.meta.at) - one.meta.at
                    # A moment passes between deciding on the end and recording it.
                    nearest = min(OVERLAPS.values(), key=lambda each: abs(each - kept))
                    rolls[key_id] = Roll(one.meta.actor, nearest)
            case _:
                pass
    return _Rolled(frozenset(issued), rolls)


_ROLLED: Final = Folding(
    _Rolled(),
    _rolls,
    lambda rolled: 1 + len(rolled.issued),
    topics=[ApiKeyIssued.__name__, ApiKeyRevoked.__name__],
    personal=False,
)


@dataclass(frozen=True, slots=True)
class PartnerCommands:
    """Writes to the ledger of accounts."""

    accounts: Ledger
    secrets: ServiceKeyStore
    clock: Clock
    new_id: NewId

    async def add(self, name: str, email: str, cause: Cause, *, once: str | None = None) -> str:
        """Record that a partner applied; return its id.

        With a reference, `once`, a repetition returns the id that the first call made. Refuses with
        `reference_used` where that was another partner.
        """
        partner_id = once_id("ptn", once) or self.new_id("ptn", self.clock())
        event = PartnerApplied(partner_id=partner_id, name=name, email=email)

        async def attempt(transaction: Transaction) -> str:
            stream = partner_stream(partner_id)
            known = Partner() if once is None else (await transaction.fold(stream, PAST)).partner
            if not known.status:
                await transaction.append(self._first(partner_id, [event], cause))
            elif (known.name, known.email) != (name, email):
                raise Refusal("reference_used")
            return partner_id

        return await self.accounts.decide(attempt)

    async def apply(
        self,
        *,
        company: str,
        contact_name: str,
        use: str,
        email: str,
        cause: Cause,
        website: str | None = None,
        company_number: str | None = None,
    ) -> str:
        """Record a person's application; return the partner's id. They become its first member.

        Refuses with `application_pending` while an earlier one of the same person waits.
        """
        partner_id = self.new_id("ptn", self.clock())
        member_id = self.new_id("mem", self.clock())
        email_hash = (await self.secrets.get()).lookup_email(email)
        events = [
            PartnerApplied(
                partner_id=partner_id,
                name=company,
                email=email,
                contact_name=contact_name,
                use=use,
                website=website,
                company_number=company_number,
            ),
            decisions.member_added(partner_id, member_id, email, email_hash),
        ]

        async def attempt(transaction: Transaction) -> str:
            # Two forms sent at once have different streams: this lock serialises them.
            await transaction.lock(stream_id("application", email_hash))
            if await transaction.fetch(_SQL.pending_of_address, bytes.fromhex(email_hash)):
                raise Refusal("application_pending")
            await transaction.append(self._first(partner_id, events, cause))
            return partner_id

        return await self.accounts.decide(attempt)

    async def look(self, partner_id: str) -> Partner:
        """Return a partner as its stream has it, personal fields opened."""
        return (await self.accounts.fold(partner_stream(partner_id), PAST)).partner

    async def name(self, partner_id: str) -> str:
        """Return a partner's name by its events."""
        return await self.accounts.fold(partner_stream(partner_id), _NAMED) or ERASED

    async def profile(self, partner_id: str) -> Profile:
        """Return what people are told of a partner that asks to act for them."""
        past = await self.accounts.fold(partner_stream(partner_id), PAST)
        partner = past.partner
        since = (one.by.at for one in past.decisions if one.status == "approved")
        url, website = partner.return_url, partner.verified_website
        # It may have been set before the website was verified.
        is_theirs = partner.status == "approved" and url is not None and leads_to(url, website)
        known = (partner.name or ERASED, partner.email, website, next(since, None))
        return Profile(*known, url if is_theirs else None)

    async def approve(
        self,
        partner_id: str,
        cause: Cause,
        website: str | None = None,
        expected_version: int | None = None,
    ) -> None:
        """Approve a partner; `website` is one that the team has verified to be theirs.

        Refuses with `form_outdated` where its status has changed since `expected_version`.
        """
        given = (website or None, expected_version)
        await self._decide(partner_id, cause, decisions.approve, *given)

    async def verify_website(
        self,
        partner_id: str,
        cause: Cause,
        website: str | None = None,
        expected_version: int | None = None,
    ) -> None:
        """Record the website of an approved partner that the team has verified; empty for none.

        Refuses with `partner_state` for any other partner, and as `approve` does.
        """
        given = (website or None, expected_version)
        await self._decide(partner_id, cause, decisions.verify_website, *given)

    async def decline(
        self,
        partner_id: str,
        cause: Cause,
        reason: str | None = None,
        expected_version: int | None = None,
    ) -> None:
        """Decline a partner; the reason is shown to its people. Refuses as `approve` does."""
        given = (reason or None, expected_version)
        await self._decide(partner_id, cause, decisions.decline, *given)

    async def revoke(self, partner_id: str, cause: Cause) -> None:
        """End a partner's access."""
        await self._decide(partner_id, cause, decisions.revoke)

    async def change_settings(
        self,
        partner_id: str,
        cause: Cause,
        *,
        return_link: bool | None = None,
        suppress_email: bool | None = None,
        return_url: str | None = None,
        expected_version: int | None = None,
    ) -> None:
        """Change a partner's settings; None keeps one as it is, and an empty URL is none.

        Refuses with `form_outdated` where they have changed since `expected_version`.
        """
        await self._decide(
            partner_id,
            cause,
            decisions.change_settings,
            return_link=return_link,
            suppress_email=suppress_email,
            return_url=return_url,
            expected_version=expected_version,
        )

    def new_key_id(self) -> str:
        """Draw the id of a key to be issued."""
        return self.new_id("key", self.clock())

    async def issue_key(
        self,
        partner_id: str,
        mode: decisions.Mode,
        cause: Cause,
        key_id: str | None = None,
        *,
        once: str | None = None,
        name: str | None = None,
    ) -> IssuedKey:
        """Issue a key, under the name that its people give it; refuses unless approved.

        With `key_id`, drawn by `new_key_id`, or a reference, `once`, a retry does not issue another
        key: it is refused with `key_state`, which names the one that was issued.
        """
        key_id = key_id or once_id("key", once, partner_id) or self.new_key_id()
        token = Token(mode, partner_id, key_id, new_secret())
        secret_hash = hash_secret((await self.secrets.get()).pepper, token)
        await self._decide(
            partner_id,
            cause,
            decisions.issue_key,
            key_id=key_id,
            mode=mode,
            secret_hash=secret_hash,
            now=self.clock(),
            name=name,
        )
        return IssuedKey(key_id, mode, str(token))

    async def lend_key(self, partner_id: str, cause: Cause) -> IssuedKey:
        """Issue a test key for an hour, in place of the last one that the same person had so."""
        known = (await self.look(partner_id)).keys
        ids = partial(reference_id, partner_id, cause.actor)
        # They are counted without gaps, so half of the numbers can be left out each time.
        number = bisect_left(range(len(known) + 1), True, key=lambda one: ids(one) not in known)
        key_id, replaces = ids(number), ids(number - 1) if number else None
        token = Token("test", partner_id, key_id, new_secret())
        now = self.clock()
        await self._decide(
            partner_id,
            cause,
            decisions.lend_key,
            key_id=key_id,
            replaces=replaces,
            secret_hash=hash_secret((await self.secrets.get()).pepper, token),
            now=now,
            ends_at=now + LENT_FOR,
        )
        return IssuedKey(key_id, "test", str(token))

    async def revoke_key(self, partner_id: str, key_id: str, cause: Cause) -> None:
        """Revoke one of a partner's keys at once."""
        await self._decide(partner_id, cause, decisions.revoke_key, key_id, now=self.clock())

    async def rebind_key(self, token: Token, cause: Cause) -> None:
        """Bind the stored hash of a key that is used to its whole token."""
        secret_hash = hash_secret((await self.secrets.get()).pepper, token)
        await self._decide(
            token.partner_id,
            cause,
            decisions.rebind_key,
            token.key_id,
            secret_hash=secret_hash,
            now=self.clock(),
        )

    async def roll_key(
        self, partner_id: str, key_id: str, overlap: timedelta, cause: Cause
    ) -> IssuedKey:
        """Issue a key in a key's place; the old one works until `overlap` from now, to the second.

        Refuses with `key_not_found`, and with `key_state` where the old one has an end already; a
        retry is told so which key took its place, whose id follows from the old one's.
        """
        new_key_id, now = successor_id(partner_id, key_id), self.clock()
        secret, pepper = new_secret(), (await self.secrets.get()).pepper
        tokens: Mapping[decisions.Mode, Token] = {
            mode: Token(mode, partner_id, new_key_id, secret) for mode in MODES
        }
        partner = await self._decide(
            partner_id,
            cause,
            decisions.roll_key,
            key_id,
            new_key_id=new_key_id,
            secret_hashes={mode: hash_secret(pepper, token) for mode, token in tokens.items()},
            now=now,
            ends_at=now + overlap,
        )
        mode: decisions.Mode = "live" if partner.keys[key_id].mode == "live" else "test"
        return IssuedKey(new_key_id, mode, str(tokens[mode]))

    async def rolled(self, partner_id: str, key_id: str) -> Roll | None:
        """Return by whom a key was rolled, and how; None if it was not."""
        return (await self.accounts.fold(partner_stream(partner_id), _ROLLED)).rolls.get(key_id)

    async def reset_sandbox(self, partner_id: str, epoch: int, cause: Cause) -> None:
        """Begin an epoch of a partner's sandbox; one that has begun already is left alone."""
        await self._decide(partner_id, cause, decisions.reset_sandbox, epoch)

    async def add_member(self, partner_id: str, email: str, cause: Cause) -> bool:
        """Add a person to a partner's team; nothing is sent: they sign in with that address.

        Returns whether they are new to it: adding an address twice changes nothing.
        Refuses with `auth_partner_not_approved` where a member does so before the approval.
        """
        member_id = self.new_id("mem", self.clock())
        email_hash = (await self.secrets.get()).lookup_email(email)
        before = await self._decide(
            partner_id,
            cause,
            decisions.add_member,
            member_id=member_id,
            email=email,
            email_hash=email_hash,
            by_colleague=cause.actor.startswith("member:"),
        )
        return all(one.email_hash != email_hash for one in before.members.values())

    async def remove_member(self, partner_id: str, member_id: str, cause: Cause) -> None:
        """Remove a person from a partner's team, from their next request on."""
        await self._decide(partner_id, cause, decisions.remove_member, member_id)

    def _first(self, partner_id: str, events: Sequence[Event], cause: Cause) -> Append:
        stream = partner_stream(partner_id)
        key = self.accounts.master_keys.new_data_key(stream)
        return Append(stream, 0, events, cause, key, new_key=True, public_ids=[partner_id])

    async def _decide(
        self,
        partner_id: str,
        cause: Cause,
        decide: Callable[Concatenate[Partner, P], list[Event]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Partner:
        """Append what `decide` decides; return the state that it decided on.

        Refuses with `rate_limited` what the partner's people may not change any more on that day.
        """
        stream = partner_stream(partner_id)

        async def attempt(transaction: Transaction) -> Partner:
            past = await transaction.fold(stream, PAST)
            partner = past.partner
            events = decide(partner, *args, **kwargs)
            changes = past.changes.of([*proven(partner, events)])
            renews = decide is decisions.roll_key
            changes.allow(events, COUNTED, cause.actor, self.clock(), renews=renews)
            if events:
                key = await personal_key(transaction, partner_id, events)
                public_ids = [event.key_id for event in events if isinstance(event, ApiKeyIssued)]
                append = Append(stream, partner.version, events, cause, key, public_ids=public_ids)
                await transaction.append(append)
            return partner

        return await self.accounts.decide(attempt)
