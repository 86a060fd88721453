"""Who may call, as authentication, the team's commands and the developer console ask.

Whether a partner and its keys may act follows from the partner's events alone: rows are for lists.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from service.core.shared import retrieved
from service.core.visitors import for_everybody
from service.facts.partners import (
    ApiKeyIssued,
    ApiKeyRebound,
    ApiKeyRevoked,
    Partner,
    PartnerApplied,
    PartnerApproved,
    PartnerDeclined,
    PartnerRevoked,
    PartnerSettingsChanged,
    SandboxReset,
    fold,
    partner_stream,
)
from service.ledger.batching import Batcher
from service.ledger.database import Row
from service.ledger.folding import SHARES, Folding, KeptState
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

_SQL = queries("projections.partners")

ASKS_MAX: Final = 256
"""Requests whose callers are read in one statement."""
PARTNERS_MAX: Final = 25
"""Partners of one person that are listed."""
KNOWN_MAX: Final = 5_000
"""Partners that are kept in memory; one with a few keys takes 2 kB. Others are read each time."""
PARTS_MAX: Final = 100_000
"""Of them all: a partner is a part, and so is each key that it ever had, which takes 350 bytes."""

_DECIDING: Final = [
    topic.__name__
    for topic in (
        *(PartnerApplied, PartnerApproved, PartnerDeclined, PartnerRevoked),
        *(PartnerSettingsChanged, SandboxReset, ApiKeyIssued, ApiKeyRevoked, ApiKeyRebound),
    )
]
"""Not all topics: what only a later release knows does not keep a partner's keys from working."""


_Last = tuple[int, bytes]
"""A stream's last event: its append_id, which may be drawn again after a restore, and its MAC."""


class _Ask(NamedTuple):
    """A stream whose last event a request asks for. Each has its own key: none excludes another."""

    stream: UUID
    key: object
    size: int = 0


_FOLDING: Final = Folding(
    Partner(),
    lambda before, past: fold((one.event for one in past), before),
    parts=lambda partner: 1 + len(partner.keys),
    topics=_DECIDING,
    personal=False,
)


class _Known(NamedTuple):
    """A partner as it was when its stream had this last event; None: as of an earlier one."""

    last: _Last | None
    kept: KeptState[Partner]


class PartnersReader:
    """Reads events of partners, and the tables of their read model, of the ledger of accounts."""

    def __init__(self, accounts: Ledger, make_batcher: type[Batcher[Any, Any]] = Batcher) -> None:
        """`accounts` is the ledger of accounts."""
        self._accounts = accounts
        self._reads = accounts.database.reads
        self._known: dict[str, _Known] = {}
        self._parts = 0
        self._readings: dict[tuple[object, ...], asyncio.Task[Partner]] = {}
        self._asks: Batcher[_Ask, Row] = make_batcher(
            self._last_events,
            batch_max=ASKS_MAX,
            concurrency=1,
            deadline=self._reads.deadline_seconds,
        )

    async def current(self, partner_id: str) -> Partner | None:
        """Return a partner by its events, personal fields and members left out; None: no such one.

        Its last event is looked up each time, and what follows the known ones is read where that is
        another than it was: what was revoked is refused from the next request on. Requests that
        come while a look-up is under way share the next one, which begins after each of them came.

        Raises UnboundEvent where another than this service wrote one of the events.
        """
        row = await self._asks.submit(_Ask(partner_stream(partner_id), object()))
        if row["append_id"] is None:
            return None
        last: _Last = row["append_id"], row["mark"]
        boundaries = (await self._accounts.binding()).boundaries
        known = self._known.get(partner_id)
        if known is not None and (known.last, known.kept.boundaries) == (last, boundaries):
            return known.kept.state
        # Of many requests of one partner after a change, one reads, and all fail if it does: one
        # after the other, each would wait as long for PostgreSQL.
        ask = (partner_id, *last, *boundaries)
        reading = self._readings.get(ask)
        if reading is None:
            learning = self._learn(partner_id, last)
            reading = asyncio.create_task(learning, context=for_everybody())
            self._readings[ask] = reading
            reading.add_done_callback(lambda _: self._readings.pop(ask))
            reading.add_done_callback(retrieved)
        return await asyncio.shield(reading)

    async def _learn(self, partner_id: str, last: _Last) -> Partner:
        """Read what follows the events that are known; a part is kept where the rest fails."""
        known = self._known.get(partner_id)
        kept = await self._accounts.read_on(
            partner_stream(partner_id),
            _FOLDING,
            known and known.kept,
            lambda part: self._keep(partner_id, _Known(None, part)),
        )
        # What came after `last` may be taken back: the state is then not that of `last`.
        is_of_last = kept.mark[0] <= last[0]
        self._keep(partner_id, _Known(last if is_of_last else None, kept))
        return kept.state

    def _keep(self, partner_id: str, known: _Known) -> None:
        """Keep a partner; of one with too many keys, as in `KeptStates`, what was known stays."""
        parts = _FOLDING.parts(known.kept.state)
        if parts > PARTS_MAX // SHARES:
            return
        self._forget(partner_id)
        self._known[partner_id] = known
        self._parts += parts
        while len(self._known) > KNOWN_MAX or self._parts > PARTS_MAX:
            self._forget(next(iter(self._known)))

    def _forget(self, partner_id: str) -> None:
        known = self._known.pop(partner_id, None)
        if known is not None:
            self._parts -= _FOLDING.parts(known.kept.state)

    async def _last_events(self, asks: Sequence[_Ask]) -> list[Row]:
        return await self._reads.fetch(_SQL.last_events, [ask.stream for ask in asks])

    async def partners(self, partner_id: str | None = None) -> list[Row]:
        """Return all partners, or the one asked for."""
        return await self._reads.fetch(_SQL.list_partners, partner_id)

    async def is_approved(self, partner_id: str) -> bool:
        """Return whether a partner may act now; links of one that was revoked lead nowhere."""
        partner = await self.current(partner_id)
        return partner is not None and partner.status == "approved"

    async def keys(self, partner_id: str) -> list[dict[str, Any]]:
        """Return a partner's keys, oldest first, without anything secret.

        Which there are, and whether they end, follows from events. Rows have only the moments: when
        a key was issued (`issued_at`), revoked at once (`revoked_at`) and last used (`used_at`).
        """
        partner = await self.current(partner_id)
        if partner is None:
            return []
        rows = await self._reads.fetch(_SQL.moments_of_keys, list(partner.keys))
        return [
            {
                "key_id": row["key_id"],
                "partner_id": partner_id,
                "mode": key.mode,
                "issued_at": row["issued_at"],
                "revoked": key.revoked,
                "revoked_at": row["revoked_at"] if key.revoked else key.ends_at,
                "used_at": row["used_at"],
                "sandbox_epoch": partner.sandbox_epoch,
            }
            for row, key in zip(rows, partner.keys.values(), strict=True)
        ]

    async def member(self, partner_id: str, address_hash: str) -> Row | None:
        """Return a partner and the member of its team who has this address, if one has."""
        return await self._reads.fetchrow(_SQL.member, partner_id, bytes.fromhex(address_hash))

    async def members(self, partner_id: str) -> list[Row]:
        """Return who belongs to a partner's team: ids and when each was added."""
        return await self._reads.fetch(_SQL.list_members, partner_id)

    async def partners_of(self, address_hash: str) -> list[Row]:
        """Return the partners whose team a person belongs to, one more than PARTNERS_MAX at most.

        `is_own` says of each whether the team approved it, or the person applied for it themselves:
        anybody could add them to any other, before it took an approval.
        """
        hashed = bytes.fromhex(address_hash)
        return await self._reads.fetch(_SQL.partners_of_address, hashed, PARTNERS_MAX + 1)

    async def sandbox(self, partner_id: str) -> Row | None:
        """Return which epoch a partner's sandbox is in, and since when."""
        return await self._reads.fetchrow(_SQL.sandbox, partner_id)
