"""Finding whose data is to be erased, and what is an entity's, in one ledger."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

from service.core.progress import Advance, Show
from service.facts.claims import ClaimCreated
from service.facts.connections import ConnectLinkRedeemed, link_stream
from service.facts.entities import entity_stream
from service.facts.people import StaffAdded, StaffRemoved
from service.ledger.aside import Fetch, set_aside
from service.ledger.binding import Binding, UnboundEvent
from service.ledger.database import Row
from service.ledger.decoding import Unread
from service.ledger.erased import erased
from service.ledger.events import Unreadable
from service.ledger.ledger import Ledger
from service.ledger.scan import placed
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.privacy.aside import begun_aside
from service.privacy.erasure_list import Kind
from service.privacy.genuine import Genuine

_SQL = queries("service.privacy")
_CLAIM = queries("projections.claim_list").by_id
CLAIMS_AT_ONCE: Final = 50
"""Of which the first events are read together: at most 1 MiB each."""


class Subject(NamedTuple):
    """Whose data is erased: the person behind an entity, or the defendant's side of a claim.

    Or whoever the label of a connect link names, redeemed or not; or who was on the team.
    """

    kind: Kind
    subject_id: str
    stream_id: UUID


class EntityClaim(NamedTuple):
    """A claim of an entity. It has no stage if the read model lacks it."""

    claim_id: str
    stream_id: UUID
    stage: str | None
    erased: bool


class Named(NamedTuple):
    """What events say is an entity's: claims by their ids, with their streams, and links.

    Events that also have its id, and that this service did not write, are `unread`.
    """

    claims: Mapping[str, UUID]
    links: Sequence[str]
    unread: Sequence[Unread]


class ErasureSubjects:
    """Finds subjects of one ledger, and what is theirs; it writes nothing."""

    def __init__(self, ledger: Ledger) -> None:
        """Take the ledger."""
        self._ledger = ledger

    async def claim(self, claim_id: str) -> Subject | None:
        """Return a claim as a subject; None where no row, and nothing set aside, leads to it."""
        row = await self._ledger.database.reads.fetchrow(_CLAIM, claim_id)
        streams = [] if row is None else [row["stream_id"]]
        streams += [one.stream_id async for _, one in set_aside(self._ledger, claim_id)]
        for stream in dict.fromkeys(streams):
            subject = Subject("claim", claim_id, stream)
            if await self.is_there(subject):
                return subject
        return None

    async def claim_by_log(self, claim_id: str, show: Show) -> Subject | None:
        """Return a claim as a subject by the whole log; None where this ledger has none."""
        genuine = await self.genuine()
        for stream, event, _ in await genuine.search(self._ledger, (ClaimCreated,), claim_id, show):
            if isinstance(event, ClaimCreated) and event.claim_id == claim_id:
                return Subject("claim", claim_id, stream)
        return None

    async def entity(self, entity_id: str) -> Subject | None:
        """Return an entity as a subject; None where this ledger has none of this id."""
        subject = Subject("entity", entity_id, entity_stream(self._ledger.name, entity_id))
        return subject if await self.is_there(subject) else None

    async def link(self, link_id: str) -> Subject | None:
        """Return a connect link as a subject; None where this ledger has none of this id."""
        subject = Subject("link", link_id, link_stream(self._ledger.name, link_id))
        return subject if await self.is_there(subject) else None

    async def staff_by_log(self, staff_id: str, show: Show) -> Subject | None:
        """Return a member of the team as a subject, in the ledger of accounts; None for no such."""
        genuine = await self.genuine()
        for stream, event, _ in await genuine.search(self._ledger, (StaffAdded,), staff_id, show):
            if isinstance(event, StaffAdded) and event.staff_id == staff_id:
                return Subject("staff", staff_id, stream)
        async for _, stored in set_aside(self._ledger, staff_id):
            event, _ = self._ledger.codec.decode(*stored[2:6])
            if isinstance(event, StaffAdded) and event.staff_id == staff_id:
                return Subject("staff", staff_id, stored.stream_id)
        return None

    async def is_on_the_team(self, member: Subject) -> bool:
        """Return whether the address of whoever is or was on the team is on it, by any id."""
        async with self._ledger.transaction() as transaction:
            return bool(await self.present(transaction, member, await self.genuine()))

    async def present(
        self, transaction: Transaction, member: Subject, genuine: Genuine
    ) -> set[str]:
        """Return the id by which somebody is on the team, if they are."""
        ids = {StaffAdded: set[str](), StaffRemoved: set[str]()}
        for topic, found in ids.items() if member.kind == "staff" else ():
            for _, event, _ in await genuine.told(transaction, [member.stream_id], topic):
                if isinstance(event, (StaffAdded, StaffRemoved)):
                    found.add(event.staff_id)
        return ids[StaffAdded] - ids[StaffRemoved]

    async def named(self, entity: Subject, show: Show) -> Named:
        """Return the claims and links that events of this service say are an entity's.

        The log is read for them: a row of a read model that was lost or altered hides none.

        Raises Unreadable where a later release may have written of some.
        """
        ledger, told = self._ledger, entity.subject_id
        claims, links, genuine = dict[str, UUID](), list[str](), await self.genuine()
        topics = (ClaimCreated, ConnectLinkRedeemed)
        for stream, event, _ in await genuine.search(ledger, topics, told, show):
            match event:
                case ClaimCreated() if event.entity_id == told:
                    claims[event.claim_id] = stream
                case ConnectLinkRedeemed() if event.entity_id == told:
                    links.append(event.link_id)
                case _:
                    pass
        claims |= await self._claims_aside(told)
        return Named(claims, links, await placed(ledger, genuine.unread))

    async def claims_of(self, entity: Subject, named: Named) -> list[EntityClaim]:
        """Return an entity's claims, oldest first.

        Those that the log names, and what the read model has beside them, perhaps another's.
        """
        ids, streams = list(named.claims), list(named.claims.values())
        fetch = self._ledger.database.background.fetch
        rows = await fetch(_SQL.claims_of_entity, entity.subject_id, ids, streams)
        found = {row["stream_id"] for row in rows}
        gone = await erased(fetch, await self._ledger.binding(), found)
        return [EntityClaim(*row, erased=row["stream_id"] in gone) for row in rows]

    async def made(self, claim: Subject, fetch: Fetch | None = None) -> ClaimCreated | None:
        """Return how a claim began, checked to be of this service; None: its stream is another's.

        `fetch` is that of a transaction.

        Raises UnboundEvent where another than this service wrote that.
        """
        began, binding = await self._beginnings([claim])
        return await self._made(claim, began, binding, fetch)

    async def _beginnings(self, claims: Sequence[Subject]) -> tuple[dict[UUID, Row], Binding]:
        """Return how the streams of claims began, and how to recognise that."""
        streams = [one.stream_id for one in claims]
        rows = await self._ledger.database.reads.fetch(_SQL.beginnings, streams)
        binding = await self._ledger.placing((row["append_id"], row["mac"]) for row in rows)
        return {row["stream_id"]: row for row in rows}, binding

    async def _made(
        self, claim: Subject, began: Mapping[UUID, Row], binding: Binding, fetch: Fetch | None
    ) -> ClaimCreated | None:
        row = began.get(claim.stream_id)
        if row is None:
            return await self._made_aside(claim, fetch)
        if row["topic"] != ClaimCreated.__name__:
            return None
        stream, append_id, topic, state, mac = row
        binding.check(append_id, stream, 1, topic, state, mac)
        event, _ = self._ledger.codec.decode(stream, 1, topic, state)
        assert isinstance(event, ClaimCreated)  # noqa: S101 - its topic says so
        return event if event.claim_id == claim.subject_id else None

    async def _made_aside(self, claim: Subject, fetch: Fetch | None) -> ClaimCreated | None:
        """Return how a claim began, where that was set aside, and its stream has no event since."""
        stored = await begun_aside(self._ledger, claim.stream_id, fetch)
        if stored is None:
            return None
        made, _ = self._ledger.codec.decode(*stored[2:6])
        if not isinstance(made, ClaimCreated) or made.claim_id != claim.subject_id:
            return None
        return made

    async def _claims_aside(self, entity_id: str) -> dict[str, UUID]:
        """Return an entity's claims, with their streams, whose creation was set aside."""
        found: dict[str, UUID] = {}
        async for _, stored in set_aside(self._ledger, entity_id):
            made, _ = self._ledger.codec.decode(*stored[2:6])
            if isinstance(made, ClaimCreated) and made.entity_id == entity_id:
                claim = Subject("claim", made.claim_id, stored.stream_id)
                if await self.made(claim) is not None:
                    found[claim.subject_id] = claim.stream_id
        return found

    async def theirs(
        self, claims: Sequence[Subject], entity: Subject, advance: Advance
    ) -> list[Subject]:
        """Return those of which an event of this service says that they are this entity's.

        `advance` gets the number of claims that were looked at.
        """
        found = list[Subject]()
        for start in range(0, len(claims), CLAIMS_AT_ONCE):
            batch = claims[start : start + CLAIMS_AT_ONCE]
            began, binding = await self._beginnings(batch)
            for claim in batch:
                with suppress(UnboundEvent, Unreadable):
                    made = await self._made(claim, began, binding, None)
                    if made is not None and made.entity_id == entity.subject_id:
                        found.append(claim)
            advance(len(batch))
        return found

    async def is_there(self, subject: Subject, fetch: Fetch | None = None) -> bool:
        """Return whether a stream is this subject's.

        An entity's and a link's follow from their ids, and the log names a member's of the team.
        That of a claim follows from the partner's reference, or a row names it: then the key of
        another claim must not be destroyed.
        """
        if subject.kind == "claim":
            return await self.made(subject, fetch) is not None
        reads = self._ledger.database.reads
        if await reads.fetchrow(_SQL.facts, subject.stream_id) is not None:
            return True
        return await begun_aside(self._ledger, subject.stream_id, fetch) is not None

    async def genuine(self) -> Genuine:
        """Return what reads events of this service alone, by how they are bound now."""
        return Genuine(self._ledger.codec, await self._ledger.binding())
