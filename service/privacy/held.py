"""The personal data that is held on a claim or an entity: what its own key opens, no other's.

The log is read for it, as for an erasure: a row of a read model hides nothing and adds nothing.
"""

from collections.abc import AsyncIterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from service.core.progress import Show
from service.facts.catalogue import PARTNER_LEDGER
from service.facts.connections import ConnectLinkIssued, link_stream
from service.ledger.aside import set_aside
from service.ledger.database import Row
from service.ledger.decoding import StoredEvent, StoredRow, Unread, decode
from service.ledger.encryption import DataKey
from service.ledger.erased import erased, told
from service.ledger.events import Recorded
from service.ledger.following.parking import NOT_OURS
from service.ledger.ledger import Ledger
from service.ledger.scan import appended, each_of
from service.ledger.transaction import Transaction
from service.privacy.erasure_subjects import Subject
from service.privacy.log_pages import SECONDS_MAX

_TOPICS = [topic for topic in PARTNER_LEDGER.values() if topic.personal]


class HeldEvent(NamedTuple):
    """The personal fields of an event, as they were given, and where they are from.

    `partner_id` is the partner that gave them, if one did. Keyed hashes, which follow from
    addresses and numbers, are left out.
    """

    event: str
    at: datetime
    actor: str
    partner_id: str | None
    where: str
    fields: dict[str, Any]


class NothingToRead(Exception):
    """Nobody can read a subject's personal data; `str()` says why."""


class HeldData:
    """Reads the personal data of one subject."""

    def __init__(self, ledger: Ledger, subject: Subject) -> None:
        """Take an entity or a claim of the ledger."""
        self._ledger = ledger
        self._subject = subject
        self.unread: list[Unread] = []
        """Events under the subject's key that could not be read, or that others wrote."""

    async def check(self) -> None:
        """Raise NothingToRead for a subject that was erased, or whose key is missing."""
        key, ledger = self._subject.stream_id, self._ledger
        async with ledger.transaction(background=SECONDS_MAX) as transaction:
            if await erased(transaction.fetch, transaction.binding, [key]):
                raise NothingToRead("its personal data was erased")
            if await transaction.data_key(key) is None:
                why = "the key of its personal data is gone, and no erasure says so"
                raise NothingToRead(f"{why}: `keys-at-rest verify` shows more")

    async def events(self, links: Sequence[str], show: Show) -> AsyncIterator[HeldEvent]:
        """Yield what the log has, oldest first, then what was set aside, and labels of `links`.

        `links` are those that an entity redeemed. `show` is called for the log.
        """
        ledger, own = self._ledger, {self._subject.stream_id}
        key = str(self._subject.stream_id)
        with show(f"reading {ledger.name}", await appended(ledger), unit="events") as advance:
            async for rows in each_of(ledger, _TOPICS, advance, told=key):
                for held in await self._opened(rows, own):
                    yield held
        async for number, stored in set_aside(ledger, key):
            for held in await self._opened([stored], own, f"set aside {number}, "):
                yield held
        streams = {link_stream(ledger.name, one) for one in links}
        fetch, topic = ledger.database.background.fetch, ConnectLinkIssued.__name__
        for held in await self._opened(await told(fetch, list(streams), topic), streams):
            yield held

    async def _opened(
        self,
        rows: Sequence[Row] | Sequence[StoredEvent],
        keys: AbstractSet[UUID],
        before: str = "",
    ) -> list[HeldEvent]:
        """Return what these keys open, no others: a partner's reference may have a key's id."""
        if not rows:
            return []
        async with self._ledger.transaction(background=SECONDS_MAX) as transaction:
            ours = list(rows) if before else await self._ours(transaction, rows)
            opened = await transaction.data_keys(keys)

            async def opening(_asked: AbstractSet[UUID]) -> dict[UUID, DataKey]:
                return opened

            recorded = await decode(
                self._ledger.codec, opening, ours, personal=True, unread=self.unread
            )
        return [held for one in recorded if (held := _held(one, before)).fields]

    async def _ours(self, transaction: Transaction, rows: Sequence[StoredRow]) -> list[StoredRow]:
        """Return the events that this service wrote; what was set aside was checked already."""
        binding = await transaction.placing((row[1], row[6]) for row in rows)
        found: list[StoredRow] = []
        for row in rows:
            _, append_id, stream, version, topic, state, mac = row
            if binding.is_ours(append_id, stream, version, topic, state, mac):
                found.append(row)
            else:
                self.unread.append(Unread(0, append_id, stream, version, NOT_OURS))
        return found


def _held(recorded: Recorded, before: str = "") -> HeldEvent:
    event, meta = recorded.event, recorded.meta
    given = {name: getattr(event, name) for name in event.personal if not name.endswith("_hash")}
    fields = {name: value for name, value in given.items() if value is not None}
    return HeldEvent(
        type(event).__name__,
        meta.at,
        meta.actor,
        getattr(event, "partner_id", None),
        f"{before}stream {recorded.stream_id} version {recorded.version}",
        msgspec.to_builtins(fields),
    )
