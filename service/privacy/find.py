"""Finding where a person's data is, without showing it: places and fields only.

Every event whose key exists is decrypted, a page at a time: there is no other way to search them.
So is what was erased and could be opened again, because its key came back.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from service.core.progress import Advance
from service.facts.onboardings import OnboardingStarted
from service.ledger.aside import set_aside
from service.ledger.database import Row
from service.ledger.decoding import StoredEvent, Unread, described
from service.ledger.encryption import DecryptionFailed
from service.ledger.events import Recorded, Unreadable
from service.ledger.ledger import Ledger
from service.ledger.sql import queries
from service.ledger.transaction import Transaction
from service.privacy.log_pages import SECONDS_MAX, each_page
from service.privacy.subjects import subject_in
from service.privacy.text_search import Sought

PAGE: Final = 500
TABLE_SECONDS_MAX: Final = 3600.0
"""For one table of rows."""
ROWS_AHEAD: Final = 500

NOT_SEARCHED: Final = ("events", "log", "pending", "head", "public_ids", "data_keys")
"""The log's own tables: events are decrypted one by one, the others hold numbers and keys."""

_SQL = queries("service.privacy")


class Place(NamedTuple):
    """A place of the person's data: `where` names an event, a row or a mail, `field` the part.

    `subject` is the id of an event's claim, link, entity, partner or member of the team; None: no
    event, or one about none of these.
    `is_sealed` False: in the clear part of an event, where erasing does not reach. None: no event;
    erasing clears it, unless it repeats what stands in the clear in one.
    """

    ledger: str
    kind: str
    subject: str | None
    where: str
    topic: str
    field: str
    is_sealed: bool | None


class Search:
    """Looks for an address, or another text, in one ledger."""

    def __init__(self, ledger: Ledger, sought: Sought) -> None:
        """`sought` is the address or the text to find."""
        self._ledger = ledger
        self._sought = sought
        self.unread: list[Unread] = []
        """Events that could not be read so far: their content is unknown."""

    async def places(self, advance: Advance) -> AsyncIterator[Place]:
        """Yield each place, reporting progress in the log to `advance`.

        Raises KeyUnknown where a data key cannot be unwrapped: its events cannot be searched.
        """
        async for found in each_page(self._ledger, PAGE, advance, self._in_page):
            for place in found:
                yield place
        async for place in self._aside():
            yield place
        async for place in self._in_rows():
            yield place

    async def _in_page(self, transaction: Transaction, rows: Sequence[Row]) -> list[Place]:
        found: list[Place] = []
        mailed: list[UUID] = []
        stored = (StoredEvent(row["position"] or 0, *tuple(row)[1:]) for row in rows)
        events = await transaction.decode(stored, unread=self.unread, even_erased=True)
        of = {row["append_id"]: row for row in rows}
        for recorded in events:
            row = of[recorded.append_id]
            fields = list(self._fields(recorded))
            found += [self._event(row, recorded, field) for field in fields]
            if fields and isinstance(recorded.event, OnboardingStarted):
                mailed.append(recorded.stream_id)
        if mailed:
            mails = await transaction.fetch(_SQL.find_mail, mailed)
            found += [self._place("outgoing mail", one["message_id"], "recipient") for one in mails]
        return found

    async def _aside(self) -> AsyncIterator[Place]:
        """Yield the places in events that were set aside, unless a key was replaced since."""
        async for number, stored in set_aside(self._ledger):
            async with self._ledger.transaction(background=SECONDS_MAX) as transaction:
                try:
                    events = await transaction.decode([stored], even_erased=True)
                except DecryptionFailed:
                    continue  # nobody can open it any more: its stream has begun anew
                except Unreadable as error:
                    place = (0, stored.append_id, stored.stream_id, stored.version)
                    self.unread.append(Unread(*place, described(error)))
                    continue
            for recorded in events:
                for field in self._fields(recorded):
                    yield self._found(f"set aside {number}", stored.topic, recorded, field)

    def _fields(self, recorded: Recorded) -> list[str]:
        whole = (recorded.event, recorded.meta.actor)
        if not self._sought.may_be_in(msgspec.json.encode(whole)):
            return []
        fields: dict[str, Any] = {
            name: getattr(recorded.event, name) for name in recorded.event.__struct_fields__
        }
        built = msgspec.to_builtins(fields | {"meta": {"actor": recorded.meta.actor}})
        return list(dict.fromkeys(self._sought.paths(built)))

    def _event(self, row: Row, recorded: Recorded, field: str) -> Place:
        number = f"position {row['position']}"
        if row["position"] is None:
            number = f"not numbered, append_id {row['append_id']}"
        return self._found(number, row["topic"], recorded, field)

    def _found(self, number: str, topic: str, recorded: Recorded, field: str) -> Place:
        where = f"{number}, stream {recorded.stream_id} version {recorded.version}"
        is_sealed = field.partition(".")[0].partition("[")[0] in recorded.event.personal
        subject = subject_in(recorded.event)
        return Place(self._ledger.name, "event", subject, where, topic, field, is_sealed)

    async def _in_rows(self) -> AsyncIterator[Place]:
        name = self._ledger.name
        schemas = [name, f"{name}_next", f"{name}_previous"]
        for table in await self._ledger.database.reads.fetch(
            _SQL.find_columns, schemas, NOT_SEARCHED
        ):
            async for place in self._in_table(table):
                yield place

    async def _in_table(self, table: Row) -> AsyncIterator[Place]:
        key, columns = table["key"], table["columns"]
        names = ", ".join(map(_quoted, dict.fromkeys([*key, *columns])))
        of = f"{_quoted(table['table_schema'])}.{_quoted(table['table_name'])}"
        statement = f"select {names} from {of}"  # noqa: S608 - the catalogue's own names, quoted
        async with self._ledger.database.background.transaction(TABLE_SECONDS_MAX) as connection:
            async for row in connection.cursor(statement, prefetch=ROWS_AHEAD):
                for column in columns:
                    if any(self._sought.paths(row[column], column)):
                        yield self._row(table, row, column)

    def _row(self, table: Row, row: Row, column: str) -> Place:
        kind = "row" if table["table_schema"] == self._ledger.name else table["table_schema"]
        # A key that holds what is sought is not shown.
        shown = [
            f"{name} {'(not shown)' if any(self._sought.paths(row[name])) else _key(row[name])}"
            for name in table["key"]
        ]
        return self._place(kind, ", ".join(shown) or "no key", column, table["table_name"])

    def _place(self, kind: str, where: str, field: str, topic: str = "mail_outbox") -> Place:
        return Place(self._ledger.name, kind, None, where, topic, field, None)


def _key(value: object) -> str:
    """Return a key's value as it is written in a statement."""
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
