"""Checking a part of a log fast: either everything in it holds, or nothing is known.

The walk (service/evidence/verify/walk.py) finds what is wrong, and where. This makes the same
checks of each row, in one tight loop over a binary COPY. Checks that need the rows of other parts
are left to the process that joins the parts (service/evidence/verify/confirm.py).
"""

import gc
from collections.abc import Callable, Sequence
from hashlib import sha256
from operator import lt
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from service.evidence.verify.actor_faults import ActorFaults
from service.evidence.verify.actors import ALL_PROVEN, BEFORE_MAX, WHO, Actors
from service.evidence.verify.known_actors import NEVER, UNREADABLE, KnownActors
from service.evidence.verify.part_macs import Odd, PartMacs
from service.evidence.verify.public_ids import BEGINS, ID_BYTES_MAX, are_kept
from service.evidence.verify.rows import FIRST, LogRow
from service.evidence.verify.segments import STREAMS_MAX, PartStreams, Segments
from service.ledger.binding import BOUND_TOPIC
from service.ledger.database import Connection, RowId
from service.ledger.event_macs import MAC_OF, EventKeys
from service.ledger.merkle import HASH_BYTES, Subtrees
from service.ledger.sql import queries

STEP: Final = 16_384
"""Positions that are read at a time: the log's rows first, and then their events."""
_SPREAD_MAX: Final = 4
"""Events of a step that are spread over more ids than so many steps are looked up one by one."""
STREAM_BYTES: Final = 16
_PASSED_MIN: Final = 4096
"""Rows after which the tree grows and another process is informed; smaller steps cost more each."""
_TOPICS_MAX: Final = 10_000
_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
_HEADER_BYTES: Final = 19
_TRAILER: Final = b"\xff\xff"
_ROW_BYTES_MAX: Final = 16 << 20
"""The service writes none that comes near it: the walk reads larger ones."""
_FIXED: Final = Struct(">hiqiqi16si")
_LENGTH: Final = Struct(">i")
_WIDTHS: Final = (6, 8, 8, STREAM_BYTES)
"""How many columns a row has, and how wide those are that have a width."""
_SQL = queries("service.evidence.verify")

Send = Callable[["Passed | Segments"], object]


class Passed(NamedTuple):
    """This many more rows hold; `subtrees` cover the leaves up to `size` since the last message."""

    rows: int
    size: int
    subtrees: Sequence[tuple[int, bytes]]


class Task(NamedTuple):
    """The part of a log after a position up to `end`; None: up to the log's end.

    `cuts` are the sizes within it at which the tree is wanted. Without `keys`, who wrote the events
    is not checked; without `actors`, who could act is not. `proven` is that of `Actors`.
    """

    schema: str
    after: int
    end: int | None
    cuts: Sequence[int]
    keys: EventKeys | None
    actors: KnownActors | None
    proven: int = ALL_PROVEN


class PartOutcome(NamedTuple):
    """What the other parts have to agree with, if all rows of a part hold by themselves.

    `lowest_key` is the oldest event key of a MAC before the first boundary. `oldest_key` is the one
    that the last boundary names, or UNBOUND. `acted` are streams of entities that have to have
    begun elsewhere, each with an `Acted`. `actors` are its events of somebody who could not act,
    which are no faults of its rows. `ids_are_kept`: all public ids that its events have drawn are
    kept.
    """

    size: int
    lowest_key: int
    oldest_key: int
    acted: Sequence[tuple[bytes, int]]
    actors: ActorFaults
    ids_are_kept: bool


class _Step(NamedTuple):
    """What the log has of some positions: the ids of their events, and their hashes in one.

    Where the ids grow with the positions, `is_ascending`, the events come as they were appended:
    one scan finds them, and passes over those between them that are numbered elsewhere.
    """

    after: int
    append_ids: Sequence[int]
    hashes: bytes
    is_ascending: bool

    @property
    def end(self) -> int:
        """The last position."""
        return self.after + len(self.append_ids)


class PartCheck:
    """The rows of a part so far, and afterwards its outcome."""

    def __init__(self, task: Task, send: Send) -> None:
        """`send` gets what passed, for the tree and the progress, and the streams."""
        self._task = task
        self._send = send
        self._due = task.after + 1
        self._cuts = [*reversed(task.cuts)]
        self._subtrees = Subtrees(task.after)
        self._leaves: list[bytes] = []
        self._streams = PartStreams(send)
        self._topics: dict[bytes, str] = {}
        self._macs = PartMacs(task.schema, task.keys)
        self._drawn = bytearray()
        self._ids_are_kept = True
        self._actors: Actors | None = None
        if task.actors is not None:
            self._actors = Actors(task.schema, task.actors, self._streams, task.proven)
        self._step = _Step(task.after, (), b"", is_ascending=True)
        self._seen = 0
        self._rest: bytes = b""
        self._is_begun = False
        self.holds = True

    async def check(self, connection: Connection) -> PartOutcome | None:
        """Read the part in the caller's snapshot; return None where something may be wrong."""
        task = self._task
        if self._actors is not None and task.after:
            await self._look_back(connection, self._actors)
        gc_was_enabled = gc.isenabled()
        gc.disable()  # rows make no cycles, and the collector would walk all streams each time
        try:
            await self._read(connection, task.after)
        finally:
            if gc_was_enabled:
                gc.enable()
        return self._outcome() if self.holds else None

    async def _read(self, connection: Connection, after: int) -> None:
        """Read a step after the other; nobody is believed how long the log is."""
        schema, end = self._task.schema, self._task.end
        while self.holds and after != end:
            upto = after + STEP if end is None else min(after + STEP, end)
            self._step = await self._numbered(connection, after, upto)
            if self.holds and self._step.append_ids:
                await self._copy(connection)
                await self._look_up(connection)
            after = self._step.end
            if after < upto:  # the log's end, unless something is beyond a gap
                has_more = await connection.fetchval(_SQL.has_more.on(schema), after)
                self.holds = self.holds and end is None and not has_more
                return

    async def _numbered(self, connection: Connection, after: int, upto: int) -> _Step:
        """Return what the log has of some positions, if those are the ones that it should have."""
        first = FIRST if after == 0 else after + 1
        query = _SQL.numbered.on(self._task.schema)
        ((positions, append_ids, hashes),) = await connection.fetch(query, first, upto, STEP + 1)
        self.holds = self.holds and positions == [*range(after + 1, after + 1 + len(positions))]
        spread = append_ids[-1] - append_ids[0] if append_ids else 0
        is_ascending = spread < _SPREAD_MAX * STEP and all(map(lt, append_ids, append_ids[1:]))
        return _Step(after, append_ids, hashes, is_ascending)

    async def _look_up(self, connection: Connection) -> None:
        """Look up the ids that the events of a step have drawn."""
        drawn, self._drawn = bytes(self._drawn), bytearray()
        if self.holds and self._ids_are_kept:
            self._ids_are_kept = await are_kept(connection, self._task.schema, drawn)

    def stop(self) -> None:
        """Skip the rest: another part does not hold. The caller's connection stays usable."""
        self.holds = False

    async def _look_back(self, connection: Connection, actors: Actors) -> None:
        """Give the check of actors the times of the events before the part."""
        rows = await connection.fetch(
            _SQL.states.on(self._task.schema), self._task.after - BEFORE_MAX, self._task.after
        )
        self.holds = actors.look_back([row["state"] for row in rows])

    async def _copy(self, connection: Connection) -> None:
        step = self._step
        query, first, last = _SQL.copied_apart, step.after + 1, step.end
        if step.is_ascending:
            query, first, last = _SQL.copied, step.append_ids[0], step.append_ids[-1]
        # COPY takes no parameters; both are numbers.
        sql = query.on(self._task.schema).replace("$1", str(first)).replace("$2", str(last))
        self._seen, self._rest, self._is_begun = 0, b"", False
        await connection.copy_from_query(sql, output=self._take, format="binary")
        self.holds = self.holds and self._is_over()

    def _is_over(self) -> bool:
        return self._rest == _TRAILER and self._due == self._step.end + 1

    async def _take(self, data: bytes) -> None:
        """Take what PostgreSQL sent. Never raises: the connection would be lost."""
        if not self.holds:
            return
        if not self._is_begun:
            data = b"".join((self._rest, data))
            if len(data) < _HEADER_BYTES:
                self._rest = data
                return
            self.holds = data.startswith(_SIGNATURE)
            data, self._rest, self._is_begun = data[_HEADER_BYTES:], b"", True
        try:
            self._rest = self._rows(b"".join((self._rest, data)), self._leaves)
            if len(self._streams.last) >= STREAMS_MAX:
                self._streams.put_away()
        except Exception:  # noqa: BLE001 - whatever is odd is left to the walk
            self.holds = False
        if self.holds and len(self._leaves) >= _PASSED_MIN:
            self._pass()

    def _pass(self) -> None:
        """Grow the tree, and send it at each size where it is wanted."""
        leaves, self._leaves, done = self._leaves, [], 0
        size = self._due - 1 - len(leaves)
        while self._cuts and self._cuts[-1] <= size + len(leaves):
            cut = self._cuts.pop()
            upto = cut - size
            self._subtrees.extend(leaves[done:upto])
            self._send(Passed(upto - done, cut, self._subtrees.nodes))
            self._subtrees, done = Subtrees(cut), upto
        self._subtrees.extend(leaves[done:])
        self._send(Passed(len(leaves) - done, size + len(leaves), ()))

    # One long loop: a call for each of its steps would cost as much as the steps.
    def _rows(self, data: bytes, leaves: list[bytes]) -> bytes:  # noqa: C901, PLR0912, PLR0915
        """Check the whole rows of what was sent; return what is left of it."""
        at, size, due, seen, known_leaves = 0, len(data), self._due, self._seen, len(leaves)
        begun, append_ids, hashes, is_ascending = self._step
        begun += 1
        fixed, fixed_bytes, length = _FIXED.unpack_from, _FIXED.size, _LENGTH.unpack_from
        topics, last, macs = self._topics, self._streams.last, self._macs
        continued, actors = self._streams.continued, self._actors
        open_since = {} if actors is None else actors.open_since
        before = None if actors is None else actors.before
        decode, has_keys = WHO.decode, self._task.keys is not None
        usual, made = macs.usual
        drawn, begins_of = self._drawn, BEGINS.get
        while at + fixed_bytes <= size:
            columns, n1, append_id, n2, version, n3, stream, mac_bytes = fixed(data, at)
            if (columns, n1, n2, n3) != _WIDTHS:
                break  # the end, or something odd: `_left` tells
            end = at + fixed_bytes
            mac = None
            if mac_bytes >= 0:
                mac = data[end : end + mac_bytes]
                end += mac_bytes
            if end + 4 > size:
                break
            (topic_bytes,) = length(data, end)
            end += 4
            begin = end + topic_bytes + 4
            if topic_bytes < 0 or begin > size:
                break
            topic = data[end : begin - 4]
            (state_bytes,) = length(data, begin - 4)
            end = begin + state_bytes
            if state_bytes < 0 or end > size:
                break
            if append_id != append_ids[due - begun]:
                if not (is_ascending and seen < append_id < append_ids[due - begun]):
                    raise Odd
                seen, at = append_id, end  # it is numbered elsewhere
                continue
            seen, state = append_id, data[begin:end]
            name = topics.get(topic) or self._topic(topic)
            digest = sha256(state).hexdigest()
            of_writer = f"{RowId(stream)!s}\n{version}\n{name}\n{digest}\n".encode()
            leaf = sha256(
                b"\x00claim-ledger event v1\n%d\n%d\n%b" % (due, append_id, of_writer)
            ).digest()
            if has_keys and (
                name == BOUND_TOPIC or mac != usual + made(sha256(MAC_OF + of_writer).digest())
            ):
                macs.check(mac, of_writer, name, stream)
                usual, made = macs.usual
            known = last.get(stream)
            if known is None:
                if version < 1:
                    raise Odd
                if version > 1:
                    continued[stream] = version << 64 | append_id
            elif version != (known >> 64) + 1 or append_id <= known & 0xFFFF_FFFF_FFFF_FFFF:
                raise Odd
            last[stream] = version << 64 | append_id
            begins = begins_of(name)
            if begins is not None and (drawn_at := state.find(begins)) >= 0:
                drawn_at += len(begins)
                ends = state.find(b'"', drawn_at, drawn_at + ID_BYTES_MAX)
                drawn += state[drawn_at : ends + 1] if ends >= 0 else b'"'
            if before is not None:
                try:
                    meta = decode(state).meta
                except UNREADABLE:
                    meta = None
                since = None if meta is None else open_since.get(meta.actor)
                if meta is not None and since is not None and since <= meta.at <= NEVER:
                    before.append(meta.at)
                else:
                    self._actor(due, append_id, leaf, stream, version, name, state, mac)
            leaves.append(leaf)
            due, at = due + 1, end
        logged = hashes[(self._due - begun) * HASH_BYTES : (due - begun) * HASH_BYTES]
        if b"".join(leaves[known_leaves:]) != logged:
            raise Odd
        self._due, self._seen = due, seen
        return self._left(data[at:])

    def _left(self, rest: bytes) -> bytes:
        """Return the beginning of a row that is not whole yet; raise Odd where it is none."""
        if len(rest) > _ROW_BYTES_MAX:
            raise Odd
        if len(rest) >= 2 and rest[:2] != b"\0\x06":  # noqa: PLR2004 - the number of columns
            if rest != _TRAILER:
                raise Odd
            return rest
        if len(rest) >= _FIXED.size:
            columns, n1, _, n2, _, n3, *_ = _FIXED.unpack_from(rest)
            if (columns, n1, n2, n3) != _WIDTHS:
                raise Odd
        return rest

    def _topic(self, raw: bytes) -> str:
        name = raw.decode()
        if not name.isprintable() or not name:
            raise Odd
        if len(self._topics) < _TOPICS_MAX:
            self._topics[raw] = name
        return name

    def _actor(
        self,
        position: int,
        append_id: int,
        leaf: bytes,
        stream: bytes,
        version: int,
        topic: str,
        state: bytes,
        mac: bytes | None,
    ) -> None:
        """Check an event whose actor has not existed throughout the log."""
        assert self._actors is not None  # noqa: S101 - only then it is called
        of = UUID(bytes=stream)
        row = LogRow(position, append_id, leaf, append_id, of, version, topic, state, mac)
        self._actors.take(row)

    def _outcome(self) -> PartOutcome | None:
        actors = ActorFaults() if self._actors is None else self._actors.faults()
        self._pass()
        if self._cuts:  # something is expected beyond the end
            return None
        size = self._due - 1
        self._send(Passed(0, size, self._subtrees.nodes))
        self._subtrees = Subtrees(size)
        self._streams.put_away()
        macs, acted = self._macs, self._streams.acted
        return PartOutcome(size, macs.lowest, macs.oldest, acted, actors, self._ids_are_kept)
