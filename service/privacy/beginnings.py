"""Whether a listed erasure is that of the business that is there, or of one before it.

An id that follows from a reference (`--once`) is the same when a business is registered anew, after
a restore from before its first registration.
"""

from hashlib import sha256
from uuid import UUID

from service.ledger.aside import Fetch
from service.ledger.codec import happened_at
from service.ledger.ledger import Ledger
from service.ledger.sql import queries
from service.privacy.aside import begun_aside
from service.privacy.erasure_list import ListedErasure

_SQL = queries("service.privacy")


async def first_state(ledger: Ledger, stream: UUID, fetch: Fetch | None = None) -> bytes | None:
    """Return how a stream begins, as it is stored, also if that was set aside."""
    rows = await (fetch or ledger.database.background.fetch)(_SQL.facts, stream)
    if rows:
        return rows[0]["made"]
    aside = await begun_aside(ledger, stream, fetch)
    return None if aside is None else aside.state


def digest_of(state: bytes | None) -> str | None:
    """Return what the list has of a stream's first event: another one cannot have the same."""
    return None if state is None else sha256(state).hexdigest()


async def is_of(ledger: Ledger, entry: ListedErasure) -> bool:
    """Return whether a listed erasure is of the stream that is there.

    An entry of an earlier release does not say how it began: then whatever is not younger is it.
    """
    state = await first_state(ledger, entry.data_keys[0])
    if entry.began is not None:
        return digest_of(state) == entry.began
    at = happened_at(state)
    return state is not None and (at is None or at <= entry.at)
