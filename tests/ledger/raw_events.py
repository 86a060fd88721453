"""Writing events as they stand, past codec and projectors: damaged, of later releases, forged."""

from collections.abc import Sequence
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

import psycopg

from service.ledger.ledger import Ledger
from service.ledger.merkle import CompactRange
from service.ledger.sql import queries
from service.ledger.transaction import Transaction

_WRITE = queries("service.ledger").write
_HEAD: Final = "select size, tree from {}.head for update"
_UNQUEUED: Final = "delete from {}.pending where append_id = %s"
_NUMBERED: Final = """
insert into {0}.log
select %s, append_id, {0}.leaf_hash(
    %s, append_id, originator_id, originator_version, topic, state
)
from {0}.events where append_id = %s
returning leaf_hash
"""
_NEXT_HEAD: Final = "update {}.head set size = %s, tree = %s"


class RawEvent(NamedTuple):
    """An event's columns."""

    stream_id: UUID
    version: int
    topic: str
    state: bytes


async def write_raw(ledger: Ledger, *events: RawEvent) -> list[int]:
    """Write events of this service in a transaction; return their append_ids."""
    async with ledger.transaction() as transaction:
        return await append_raw(ledger, transaction, *events)


async def append_raw(ledger: Ledger, transaction: Transaction, *events: RawEvent) -> list[int]:
    """Write events of this service in the caller's transaction; return their append_ids."""
    keys = await ledger.event_keys()
    return await append_with_macs(transaction, events, [keys.mac(*one) for one in events])


async def write_foreign(ledger: Ledger, *events: RawEvent) -> list[int]:
    """Write events without a MAC, as anyone can who has the ledger's role."""
    async with ledger.transaction() as transaction:
        return await append_with_macs(transaction, events, [None] * len(events))


def put_into_log(owner: psycopg.Connection, position: int, event: RawEvent) -> int:
    """Put an event of nobody's into the log of live itself; return its append_id."""
    row = owner.execute(
        "with put as (insert into live.events (originator_id, originator_version, topic, state)"
        " values (%s, %s, %s, %s) returning append_id) insert into live.log"
        " select %s, append_id, sha256('') from put returning append_id",
        [*event, position],
    ).fetchone()
    assert row is not None
    return row[0]


def number_past_the_sequencer(
    owner: psycopg.Connection, append_id: int, ledger: LiteralString = "accounts"
) -> int:
    """Number an event of a ledger that waits as that login can, with its hash; return where."""
    owner.execute(f"set role claim_ledger_{ledger}")
    row = owner.execute(_HEAD.format(ledger)).fetchone()
    assert row is not None
    tree, position = CompactRange.from_bytes(*row), row[0] + 1
    owner.execute(_UNQUEUED.format(ledger), [append_id])
    leaf = owner.execute(_NUMBERED.format(ledger), [position, position, append_id]).fetchone()
    assert leaf is not None
    tree.append(leaf[0])
    owner.execute(_NEXT_HEAD.format(ledger), [position, tree.to_bytes()])
    owner.execute("reset role")
    return position


async def append_with_macs(
    transaction: Transaction, events: Sequence[RawEvent], macs: Sequence[bytes | None]
) -> list[int]:
    """Write events with these MACs, as anyone can who has the ledger's role."""
    row = await transaction.fetchrow(
        _WRITE,
        1,
        *([],) * 7,  # no guards and no uploads
        *([event[place] for event in events] for place in range(len(RawEvent._fields))),
        list(macs),
        [1] * len(events),
        *([],) * 6,  # no public ids and no keys
    )
    assert row is not None
    return row["append_ids"] or []
