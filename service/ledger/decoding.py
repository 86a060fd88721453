"""Decoding stored events, with the data keys of those whose personal fields are needed."""

from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from service.ledger.codec import Codec, State, stored_form
from service.ledger.database import Row
from service.ledger.encryption import DataKey, DecryptionFailed
from service.ledger.events import Recorded, Unreadable

PAGE_BYTES_MAX = 2 << 20
"""Stored bytes after which a page of events ends, wherever the log is read by pages: the event that
reaches them is its last. PostgreSQL knows the size of a state without reading it."""


class StoredEvent(NamedTuple):
    """An event as it is stored, not decoded yet. `position` is 0 if it is not known.

    `mac` is read if the event causes more than a row that can be made again.
    """

    position: int
    append_id: int
    stream_id: UUID
    version: int
    topic: str
    state: bytes
    mac: bytes | None = None


StoredRow = StoredEvent | Row
"""A row of the same columns may be used instead; decoding does not read the last one, `mac`."""


def is_full(rows: Sequence[Row]) -> bool:
    """Return whether a page ended by PAGE_BYTES_MAX, so that its range may have more events."""
    return sum(len(row["state"] or b"") for row in rows) >= PAGE_BYTES_MAX


Keys = Callable[[set[UUID]], Awaitable[dict[UUID, DataKey]]]


class Unread(NamedTuple):
    """An event that could not be read, and why; `fault` quotes none of its data."""

    position: int
    append_id: int
    stream_id: UUID
    version: int
    fault: str


async def decode(
    codec: Codec,
    keys_of: Keys,
    rows: Iterable[StoredRow],
    *,
    personal: bool | Container[str],
    unread: list[Unread] | None,
) -> list[Recorded]:
    """Decode rows; `personal`: whether boxes are opened, or the topics whose boxes are opened.

    Events that cannot be read are added to `unread` if that is given, instead of being raised.

    Raises Unreadable, with the event's place, KeyUnknown if a key does not unwrap, and
    DecryptionFailed if it does not open the box.
    """
    recorded: list[Recorded | None] = []
    sealed: list[tuple[int, StoredRow, State]] = []  # with their places among the recorded
    is_personal = isinstance(personal, bool)
    decode_clear = codec.decode_clear
    for row in rows:
        position, append_id, stream, version, topic, state = row[:6]
        is_opened = personal if is_personal else topic in personal
        clear = None if is_opened else decode_clear(topic, state)
        if clear is not None:
            recorded.append(Recorded(append_id, stream, version, *clear, position))
            continue
        try:
            form = stored_form(state, with_sealed=is_opened)
        except Unreadable as error:
            _report(codec, row, error, unread)
        else:
            sealed.append((len(recorded), row, form))
            recorded.append(None)
    keys = await keys_of({form.sealed.key for _, _, form in sealed if form.sealed is not None})
    for place, row, form in sealed:
        position, append_id, stream, version, topic = row[:5]
        key = keys.get(form.sealed.key) if form.sealed is not None else None
        try:
            event, meta = codec.decode_stored(stream, version, topic, form, key)
        except (Unreadable, DecryptionFailed) as error:
            _report(codec, row, error, unread)
        else:
            recorded[place] = Recorded(append_id, stream, version, event, meta, position)
    return [one for one in recorded if one is not None]


def _report(
    codec: Codec, row: StoredRow, error: Unreadable | DecryptionFailed, unread: list[Unread] | None
) -> None:
    position, append_id, stream, version, *_ = row
    if unread is not None:
        unread.append(Unread(position, append_id, stream, version, described(error)))
    elif isinstance(error, Unreadable):
        raise error.at(codec.ledger, stream, version, position) from error
    else:
        raise error


def described(error: Unreadable | DecryptionFailed) -> str:
    """Return a fault without the place of its event, and without any of its data."""
    fault = error.fault if isinstance(error, Unreadable) else error
    return f"{type(error).__name__}: {fault}"
