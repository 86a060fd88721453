"""The streams of a log that several parts have read: what each part saw of one, and its whole.

A part keeps the last events of a limited number of streams. If there are more, it sends them away
as segments: a stream's first event and its last one since the previous time. At the end, the
segments of all parts are joined by stream, a few at a time. So memory is bounded, however long the
log is.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from struct import Struct
from tempfile import SpooledTemporaryFile
from typing import Final, NamedTuple, Self
from uuid import UUID

STREAMS_MAX: Final = 250_000
"""Streams that a part keeps: some 200 bytes each."""
SPOOLED_BYTES_MAX: Final = 16 << 20
"""More segments than these are on disk, in a file without a name."""
APPEND_ID_BITS: Final = 64
_APPEND_ID_MASK: Final = (1 << APPEND_ID_BITS) - 1
_COUNT_BITS: Final = 64
_TURN_SHIFT: Final = APPEND_ID_BITS + _COUNT_BITS
_ONCE: Final = 1 << APPEND_ID_BITS
_EVENT_BYTES: Final = 16
_SEGMENT: Final = Struct(">16s16s16s")
"""A stream, its first event here, and its last one: each of those is version and append_id."""
_BEGUN: Final = bytes(_EVENT_BYTES)
"""In place of the first event, where that is the stream's first of all."""
_FIRST_BYTES: Final = range(256)


class Segments(NamedTuple):
    """Segments of streams whose ids begin with a byte; `turn` counts the times they were sent."""

    turn: int
    first_byte: int
    joined: bytes


class Acted(NamedTuple):
    """How often entities acted whose stream has to have begun before a turn, and where first."""

    turn: int
    times: int
    position: int

    @classmethod
    def of(cls, packed: int) -> Self:
        """Read what a part has kept in one number."""
        times = packed >> APPEND_ID_BITS & (1 << _COUNT_BITS) - 1
        return cls(packed >> _TURN_SHIFT, times, packed & _APPEND_ID_MASK)


class Whole(NamedTuple):
    """A stream: the part and turn that met it first, and its last version and append_id."""

    began: tuple[int, int]
    version: int
    append_id: int


class PartStreams:
    """The streams of a part, by their ids.

    `last` has each stream's last event, version and append_id in one number: a pair would need
    twice the memory. `continued` has the first event of streams that did not begin here.
    """

    def __init__(self, send: Callable[[Segments], object]) -> None:
        """`send` takes what is put away."""
        self._send = send
        self.last: dict[bytes, int] = {}
        self.continued: dict[bytes, int] = {}
        self.elsewhere: dict[bytes, int] = {}
        """Streams that were asked for and are not here: they began before.

        With the turn, how often, and by which position first: an `Acted` in one number.
        """
        self._turn = 0

    def has_begun(self, stream: UUID, position: int, /) -> bool:
        """Return True: where it is not known here, it is looked for at the end."""
        if stream.bytes not in self.last:
            first = self._turn << _TURN_SHIFT | position
            self.elsewhere[stream.bytes] = self.elsewhere.get(stream.bytes, first) + _ONCE
        return True

    @property
    def acted(self) -> list[tuple[bytes, int]]:
        """The streams that have to have begun elsewhere."""
        return [*self.elsewhere.items()]

    def put_away(self) -> None:
        """Send all streams away, and begin again."""
        by_byte: list[list[bytes]] = [[] for _ in _FIRST_BYTES]
        continued = self.continued
        for stream, last in self.last.items():
            first = continued.get(stream)
            begun = _BEGUN if first is None else first.to_bytes(_EVENT_BYTES)
            by_byte[stream[0]].append(stream + begun + last.to_bytes(_EVENT_BYTES))
        self.last.clear()
        continued.clear()
        for first_byte, segments in enumerate(by_byte):
            if segments:
                self._send(Segments(self._turn, first_byte, b"".join(segments)))
        self._turn += 1


class JoinedStreams:
    """The segments of all parts.

    If there is no space for them on disk, nothing is known about any stream: the log is then read
    by the walk, which needs no disk space.
    """

    def __init__(self, parts: int) -> None:
        """Begin without any; `close` it afterwards."""
        self._file = SpooledTemporaryFile[bytes](max_size=SPOOLED_BYTES_MAX)
        self._places: list[list[tuple[Segments, int, int]]] = [[] for _ in range(parts)]
        self._has_place = True

    def close(self) -> None:
        """Close the file. Closing tries once more, in vain, to write what did not fit."""
        with suppress(OSError):
            self._file.close()

    def put(self, part: int, segments: Segments) -> None:
        """Take segments of a part, in their order."""
        if not self._has_place:  # and the file cannot be used any more
            return
        try:
            at = self._file.seek(0, 2)
            self._file.write(segments.joined)
        except OSError:
            self._has_place = False
            return
        place = (segments._replace(joined=b""), at, len(segments.joined))
        self._places[part].append(place)

    def forget(self, part: int) -> None:
        """Take back what a part has sent: it is read again."""
        self._places[part].clear()

    def whole(self, wanted: Collection[bytes]) -> dict[bytes, Whole] | None:
        """Return those of the `wanted` streams that there are; None where one does not go on.

        Each has to begin once, with its first version, and to go on with the next one, which was
        appended later. None, too, where there was no place for what was put.
        """
        try:
            return self._whole(wanted) if self._has_place else None
        except OSError:  # some of it is written only when it is read
            return None

    def _whole(self, wanted: Collection[bytes]) -> dict[bytes, Whole] | None:
        found: dict[bytes, Whole] = {}
        for first_byte in _FIRST_BYTES:
            last: dict[bytes, bytes] = {}
            for when, joined in self._of(first_byte):
                for stream, first, end in _SEGMENT.iter_unpack(joined):
                    if not _goes_on(last.get(stream), first):
                        return None
                    last[stream] = end
                    if stream in wanted:
                        began = found[stream].began if stream in found else when
                        found[stream] = Whole(began, *_event(end))
        return found

    def _of(self, first_byte: int) -> Iterator[tuple[tuple[int, int], bytes]]:
        for part, places in enumerate(self._places):
            for segments, at, size in places:
                if segments.first_byte == first_byte:
                    self._file.seek(at)
                    yield (part, segments.turn), self._file.read(size)


def _goes_on(last: bytes | None, first: bytes) -> bool:
    if last is None:
        return first == _BEGUN
    if first == _BEGUN:
        return False
    (version, append_id), (before, appended_before) = _event(first), _event(last)
    return version == before + 1 and append_id > appended_before


def _event(raw: bytes) -> tuple[int, int]:
    both = int.from_bytes(raw)
    return both >> APPEND_ID_BITS, both & _APPEND_ID_MASK
