"""Which paths of documents events name, by the log and by what was set aside of it.

Rows of read models may have been lost or altered: nothing is deleted by them alone.
"""

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Container
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

from service.core.progress import Show
from service.facts.claims import DocumentsAttached
from service.facts.privacy import PersonalDataErased
from service.ledger.aside import set_aside
from service.ledger.decoding import Unread
from service.ledger.erased import erased
from service.ledger.events import Unreadable
from service.ledger.following.parking import NOT_OURS
from service.ledger.ledger import Ledger
from service.ledger.scan import appended, each_of, placed

_PATH: Final = re.compile(rb'(?<=")entities/[^"\\]+(?=")')
"""A path, as a whole value in the stored form of an event."""

Listed = Callable[[Collection[str]], Awaitable[Container[str]]]
"""Returns those of some claims, by their ids, that the list of erasures has."""


class NamedPaths(NamedTuple):
    """The paths that the log names.

    `linked` has those that events of claims name that have not been erased, by the claim's stream;
    `by_others` those that events name which this service did not write, and which are `unread`.
    """

    linked: dict[UUID, set[bytes]]
    by_others: set[bytes]
    unread: list[Unread]


async def named_in_log(ledger: Ledger, sought: Collection[bytes], show: Show) -> NamedPaths:
    """Return which of the paths that are `sought` the log names, all of which is read."""
    linked, by_others, sought = defaultdict[UUID, set[bytes]](set), set[bytes](), set(sought)
    gone, unread = set[UUID](), list[Unread]()
    topics = (DocumentsAttached, PersonalDataErased)
    with show(f"reading {ledger.name}", await appended(ledger), unit="events") as advance:
        async for rows in each_of(ledger, topics, advance):
            binding = await ledger.placing((row["append_id"], row["mac"]) for row in rows)
            for row in rows:
                _, append_id, stream, version, topic, state, _ = row
                is_erasure = topic == PersonalDataErased.__name__
                named = sought.intersection(_PATH.findall(state))
                is_ours = (is_erasure or named) and binding.ours([row])
                if is_ours and is_erasure:
                    gone.add(stream)
                elif is_ours:
                    linked[stream] |= named
                elif named:
                    by_others |= named
                    unread.append(Unread(0, append_id, stream, version, NOT_OURS))
    kept = {stream: named for stream, named in linked.items() if stream not in gone}
    return NamedPaths(kept, by_others, await placed(ledger, unread))


async def named_aside(ledger: Ledger, sought: Collection[bytes], listed: Listed) -> set[bytes]:
    """Return which of the paths are named by events of this service that were set aside.

    Not those of claims that were erased. `listed` is asked about claims whose events were set
    aside: such a one is erased without an event.
    """
    paths, sought = defaultdict[tuple[UUID, str], set[bytes]](set), set(sought)
    async for _, stored in set_aside(ledger, '"entities/'):
        if named := sought.intersection(_PATH.findall(stored.state)):
            claim_id = ""
            with suppress(Unreadable):  # of a later release: it is kept
                event, _ = ledger.codec.decode(*stored[2:6])
                claim_id = event.claim_id if isinstance(event, DocumentsAttached) else ""
            paths[stored.stream_id, claim_id] |= named
    # A stream may have begun again since, with another claim: each is asked about by itself.
    of_list = await listed({claim_id for _, claim_id in paths})
    fetch, binding = ledger.database.background.fetch, await ledger.binding()
    gone = await erased(fetch, binding, {stream for stream, _ in paths})
    kept = set[bytes]()
    for (stream, claim_id), named in paths.items():
        if stream not in gone and claim_id not in of_list:
            kept |= named
    return kept
