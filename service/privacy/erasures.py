"""Erasing a subject from one ledger: its data key, and what read models and mail hold (decision 8).

In this order, so that running an interrupted command again completes it:
1. the erasure is listed outside the database, so that no restore revives the subject unnoticed;
2. one transaction destroys the key, appends PersonalDataErased, clears read models and mail;
3. the claim's objects are removed from storage.

A subject whose events were set aside, and that has none, is erased without an event: nothing of it
is in the log, and whoever does the same again begins its stream.
"""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from asyncpg import LockNotAvailableError, UndefinedTableError

from service.core.clock import Clock
from service.core.errors import Refusal
from service.entities.commands import business_locks
from service.facts.connections import ConnectLinkRedeemed, connection_stream, link_stream
from service.facts.entities import EntityRegistered
from service.facts.people import StaffRemoved
from service.facts.privacy import PersonalDataErased
from service.ledger.binding import UnboundEvent
from service.ledger.database import LedgerUnavailable, transaction_on
from service.ledger.decoding import Unread
from service.ledger.effects import effect_lock
from service.ledger.encryption import DecryptionFailed, KeyUnknown
from service.ledger.erased import erased
from service.ledger.events import ERASED, Cause, Meta, Recorded, Unreadable
from service.ledger.ledger import Ledger
from service.ledger.limits import BACKGROUND_LOCK_SECONDS
from service.ledger.scan import placed
from service.ledger.sql import Sql, queries
from service.ledger.transaction import AppendConflict, Transaction
from service.ledger.writing import Append
from service.mail.recipients import KINDS, counted_by
from service.privacy.beginnings import digest_of, first_state, is_of
from service.privacy.erasure_list import ErasureList, ListedErasure
from service.privacy.erasure_subjects import ErasureSubjects, Subject
from service.privacy.genuine import Genuine
from service.privacy.listed_streams import listed_streams

SECONDS_MAX: Final = 30.0
"""Longer than a mail that is being sent, or a hand-over, may take: the erasure waits for it."""
HELD_MILLISECONDS: Final = 300
"""How long an erasure waits for a lock while it holds those of connections."""
UNLISTED_SECONDS_MAX: Final = 600.0
"""The whole log is scanned."""

_SQL = queries("service.privacy")
_LOCK = queries("service.ledger").lock
_ERASE_ENTITY = queries("projections.connections").erase_entity
_ERASE_STAFF = queries("projections.staff").erase


class KeysRemain(Exception):
    """`count` keys are there although they were to be destroyed; `str()` tells an operator."""

    def __init__(self, text: str, count: int) -> None:
        super().__init__(text)
        self.count = count


class Erased(NamedTuple):
    """The outcome; for a subject that was erased before, when and why.

    `keys` counts the keys that this call destroyed, `mail` the mails that it cancelled. `unread`
    are events in the subject's streams that had no effect.
    """

    at: datetime
    reason: str
    is_new: bool
    keys: int
    mail: int
    unread: Sequence[Unread] = ()


class Erasures:
    """Erases subjects of one ledger."""

    def __init__(self, ledger: Ledger, listed: ErasureList, clock: Clock) -> None:
        """Take the ledger, and the list of erasures that is kept outside the database."""
        self._ledger = ledger
        self._subjects = ErasureSubjects(ledger)
        self._listed = listed
        self._clock = clock

    async def erase(
        self, subject: Subject, reason: str, cause: Cause, links: Sequence[str] = ()
    ) -> Erased:
        """List the erasure, then apply it; erasing a subject twice changes nothing.

        `links` are those that the log has of an entity.

        Raises ArchiveUnavailable when it could not be listed, KeysRemain where the database keeps a
        key, and Refusal `staff_present` for whoever is on the team, perhaps again since somebody
        was asked: then nothing was erased.
        """
        if subject.kind == "staff" and await self._subjects.is_on_the_team(subject):
            raise Refusal("staff_present")
        async with self._ledger.transaction() as transaction:
            genuine = await self._subjects.genuine()
            keys = [subject.stream_id, *await self._links(transaction, subject, links, genuine)]
            left = await transaction.fetch(_SQL.keys_left, keys)
            earlier = await self._earlier(transaction, subject, genuine)
            began = await first_state(self._ledger, subject.stream_id, transaction.fetch)
        if left or earlier is None:
            entry = ListedErasure(
                ledger=self._ledger.name,
                kind=subject.kind,
                subject=subject.subject_id,
                data_keys=keys,
                reason=reason,
                at=self._clock(),
                began=digest_of(began),
            )
            await self._listed.put(entry)
        return await self._apply(subject, reason, cause, known_links=links)

    async def reapply(self, entry: ListedErasure, cause: Cause) -> Erased | None:
        """Apply a listed erasure where the database lacks it; None: no such subject.

        Raises KeysRemain where the database keeps a key: then nothing was applied.
        """
        if not await self.has(entry):
            return None
        subject = Subject(entry.kind, entry.subject, entry.data_keys[0])
        return await self._apply(subject, entry.reason, cause, entry.data_keys)

    async def has(self, entry: ListedErasure) -> bool:
        """Return whether the subject of a listed erasure is there.

        The stream of another subject is left alone: after a restore the partner may have created
        the claim again, under the same reference with another id, or the team may have registered
        another business, under the same reference with the same id.
        """
        subject = Subject(entry.kind, entry.subject, entry.data_keys[0])
        if not await self._subjects.is_there(subject):
            return False
        return entry.kind == "claim" or await is_of(self._ledger, entry)

    async def keys_left(self, entry: ListedErasure) -> int:
        """Return how many keys of an applied erasure there are: none, unless they come back."""
        return len(await self._ledger.database.reads.fetch(_SQL.keys_left, entry.data_keys))

    async def shows(self, entry: ListedErasure) -> bool:
        """Return whether nothing is left to erase of an entry, or its subject is not there."""
        if not await self.has(entry):
            return True
        if await self.keys_left(entry):
            return False
        async with self._ledger.transaction() as transaction:
            told = [entry.data_keys[0]]
            return bool(await erased(transaction.fetch, transaction.binding, told))

    async def unlisted(self, seconds_max: float | None = None) -> int:
        """Return how many subjects are erased in the log but not in the list.

        Raises ArchiveUnavailable, and LedgerUnavailable where a look at the log takes longer than
        `seconds_max`, by default ten minutes.
        """
        missing = await self._unlisted(seconds_max)
        if missing:  # some may have been listed after the list was read, and erased since
            missing &= await self._unlisted(seconds_max)
        return len(missing)

    async def _unlisted(self, seconds_max: float | None) -> set[UUID]:
        """Return the streams of subjects that the log shows as erased, and an older list lacks."""
        names = await self._listed.names(self._ledger.name)
        async with self._ledger.transaction(
            background=seconds_max or UNLISTED_SECONDS_MAX
        ) as transaction:
            named = await listed_streams(self._ledger, names, transaction.fetch)
            rows = await transaction.fetch(_SQL.unlisted, [stream for _, stream in named])
            told = [row["originator_id"] for row in rows]
            return await erased(transaction.fetch, transaction.binding, told)

    async def _apply(
        self,
        subject: Subject,
        reason: str,
        cause: Cause,
        listed: Sequence[UUID] = (),
        known_links: Sequence[str] = (),
    ) -> Erased:
        """Lock, read, append, destroy.

        What others may hold for long comes before the connections' locks, for which claims wait:
        first what is on its way, a mail or a hand-over, then tables that a rebuild is at. What has
        to be waited for while those are held is waited for briefly; then all of it begins anew.
        """

        async def attempt(transaction: Transaction) -> Erased:
            execute = transaction.connection.execute
            # Whoever gave its place in the line up would be passed by the next mail.
            await execute(f"set local lock_timeout = '{SECONDS_MAX}s'")
            await transaction.fetch(_LOCK, [effect_lock(subject.stream_id)])
            await execute(f"set local lock_timeout = '{BACKGROUND_LOCK_SECONDS}s'")
            await transaction.lock(subject.stream_id)
            mail = 0
            if subject.kind in ("claim", "entity"):
                mail = await self._clear(transaction, subject)
            elif subject.kind == "staff":
                await transaction.fetch(_SQL.hold_staff)
                gone = [subject.stream_id], [self._clock()]
                await self._clear_beside(transaction, "staff", _ERASE_STAFF, *gone)
            await execute(f"set local lock_timeout = {HELD_MILLISECONDS}")
            genuine = await self._subjects.genuine()
            links = await self._lock_entity(transaction, subject, known_links, genuine)
            if not await self._subjects.is_there(subject, transaction.fetch):
                raise AppendConflict(f"the stream of {subject.subject_id} has begun anew")
            facts = await transaction.fetchrow(_SQL.facts, subject.stream_id)
            keys = {subject.stream_id, *links, *listed}
            left = await transaction.fetch(_SQL.keys_left, keys)
            versions = {row["key_id"]: row["version"] for row in left}
            earlier = await self._earlier(transaction, subject, genuine)
            subjects = {key: link_id for key, link_id in links.items() if key in versions}
            if earlier is None and facts is not None:
                subjects[subject.stream_id] = subject.subject_id
                versions[subject.stream_id] = facts["version"]
            await genuine.note_others(transaction, subjects)
            event = partial(PersonalDataErased, reason=reason)
            # A restore may have somebody back on the team.
            ended = [
                StaffRemoved(one)
                for one in await self._subjects.present(transaction, subject, genuine)
            ]
            appends = [
                Append(one, versions[one], [*ended, event(subject=name, data_key=one)], cause)
                for one, name in subjects.items()
            ]
            recorded = await transaction.append(*appends) if appends else []
            recorded_at = {one.stream_id: one.meta.at for one in recorded}
            at, why = earlier or (recorded_at.get(subject.stream_id, self._clock()), reason)
            if facts is None:  # all that it had was set aside: a stream does not begin by its end
                told = event(subject=subject.subject_id, data_key=subject.stream_id)
                meta = Meta(at, cause.actor, cause.request_id, self._ledger.name)
                await transaction.project([Recorded(0, subject.stream_id, 1, told, meta)])
            gone = await self._destroy(transaction, keys, {row["key_id"] for row in left})
            is_new = earlier is None and (facts is not None or gone > 0)
            return Erased(at, why, is_new, gone, mail, genuine.unread)

        clock = asyncio.get_running_loop().time
        ends_at = clock() + SECONDS_MAX
        while True:
            try:
                # However long it has waited, it has as much time again for what comes after.
                erased = await self._ledger.decide(attempt, background=2 * SECONDS_MAX)
                return erased._replace(unread=await placed(self._ledger, erased.unread))
            except LedgerUnavailable as error:
                if not isinstance(error.__cause__, LockNotAvailableError) or clock() > ends_at:
                    raise
            await asyncio.sleep(HELD_MILLISECONDS / 1000)  # those that wait for us go first

    async def _clear(self, transaction: Transaction, subject: Subject) -> int:
        """Clear what read models and mail have of a claim or an entity; return how many mails."""
        mail = await transaction.fetch(_SQL.settle_mail, subject.subject_id)
        mailbox = await self._mailbox(transaction, subject)
        await transaction.fetch(_SQL.forget_recipient, subject.subject_id, mailbox)
        await transaction.fetch(_SQL.hold_tables)
        gone = [subject.subject_id], [ERASED]
        await self._clear_beside(transaction, "entities", _ERASE_ENTITY, *gone)
        return len(mail)

    async def _mailbox(self, transaction: Transaction, subject: Subject) -> list[bytes]:
        """Return by what mails to an entity's person are counted, if its address can be read."""
        try:
            began = await transaction.read_at(subject.stream_id, 1, (EntityRegistered,))
        except (UnboundEvent, Unreadable, KeyUnknown, DecryptionFailed):
            return []
        if not isinstance(began, EntityRegistered) or began.email is None:
            return []
        recipient = (await self._ledger.secrets(anew=False)).lookup_recipient(began.email)
        return [counted_by(recipient, kind) for kind in KINDS]

    async def _destroy(
        self, transaction: Transaction, keys: Collection[UUID], known: Collection[UUID]
    ) -> int:
        """Destroy keys, of which those `known` are there; return how many were destroyed.

        Raises KeysRemain, which rolls all back: nobody is told of an erasure that was none.
        """
        gone = {row["key_id"] for row in await transaction.fetch(_SQL.destroy_keys, keys)}
        # A trigger that waits for the commit could put them back.
        await transaction.connection.execute("set constraints all immediate")
        left = {row["key_id"] for row in await transaction.fetch(_SQL.keys_left, keys)}
        if remaining := left.union(known) - (gone - left):
            count = f"{len(remaining)} of {len(gone | remaining)} keys"
            why = f"a trigger, a rule or a policy of {self._ledger.name}.data_keys keeps them"
            raise KeysRemain(f"the database did not destroy {count}: {why}", len(remaining))
        return len(gone)

    async def _clear_beside(
        self, transaction: Transaction, name: str, sql: Sql, *arguments: Sequence[object]
    ) -> None:
        """Clear the tables of this name that a rebuild builds or keeps: they have names and hashes.

        The live tables are held meanwhile, so that no rebuild swaps them.
        """
        for schema in (f"{self._ledger.name}_next", f"{self._ledger.name}_previous"):
            table = await transaction.fetchrow(_SQL.exists, f"{schema}.{name}")
            if table is not None and table["found"]:
                connection = transaction.connection
                # A rebuild may drop the table at this moment.
                with suppress(UndefinedTableError):
                    async with transaction_on(connection):  # a savepoint
                        await connection.execute(sql.on(schema), *arguments)

    async def _lock_entity(
        self,
        transaction: Transaction,
        subject: Subject,
        known_links: Sequence[str],
        genuine: Genuine,
    ) -> dict[UUID, str]:
        """Wait for an entity's claims under way, and keep out a second registration of it.

        Return the streams, and keys, of the links that it redeemed, with their ids.
        """
        if subject.kind != "entity":
            return {}
        row = await transaction.fetchrow(_SQL.entity, subject.subject_id)
        if row is not None:  # an entity's row may be lost
            known_by = EntityRegistered(
                entity_id=subject.subject_id,
                established=True,
                email_hash=row["email_hash"] and row["email_hash"].hex(),
                company_number_hash=row["company_number_hash"] and row["company_number_hash"].hex(),
            )
            await transaction.lock(*business_locks(known_by))
            mode = self._ledger.name
            await transaction.lock(
                *(connection_stream(mode, one, subject.subject_id) for one in row["partner_ids"])
            )
        return await self._links(transaction, subject, known_links, genuine)

    async def _links(
        self,
        transaction: Transaction,
        subject: Subject,
        known: Sequence[str],
        genuine: Genuine,
    ) -> dict[UUID, str]:
        """Return the keys of an entity's links with their ids: those `known`, and later ones."""
        if subject.kind != "entity":
            return {}
        row = await transaction.fetchrow(_SQL.entity, subject.subject_id)
        by_row = row["link_ids"] if row is not None else ()
        links = {link_stream(self._ledger.name, one): one for one in known}
        others = {link_stream(self._ledger.name, one): one for one in by_row}
        others = {stream: one for stream, one in others.items() if stream not in links}
        # A read model named them: the label of another business's link is not this one's.
        for stream, event, _ in await genuine.told(transaction, others, ConnectLinkRedeemed):
            if isinstance(event, ConnectLinkRedeemed) and event.entity_id == subject.subject_id:
                links[stream] = others[stream]
        return links

    async def _earlier(
        self, transaction: Transaction, subject: Subject, genuine: Genuine
    ) -> tuple[datetime, str] | None:
        """Return when and why a subject was erased before, if it was."""
        for _, event, meta in await genuine.told(
            transaction, [subject.stream_id], PersonalDataErased
        ):
            if isinstance(event, PersonalDataErased):
                return meta.at, event.reason
        return None
