"""The stored form of an event: JSON with its personal fields in a sealed box.

    {"class_version": 1,
     "meta": {"at": ..., "actor": ..., "request_id": ..., "mode": ...},
     "data": {the fields in the clear},
     "sealed": {"key": "<id of the subject's stream>", "box": "<base64>", "version": 2}}

The box holds the personal fields as JSON, encrypted under a key derived from the subject's data key
and bound to ledger, stream, version and key id. It is left out where an event has no personal
field. Boxes of version 1, which name no version, are encrypted under the data key itself.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any, Final, Protocol, cast
from uuid import UUID

import msgspec

from service.ledger.encryption import BOX_VERSION, DataKey
from service.ledger.events import Catalogue, Event, Meta, Unreadable, upcast


class Sealed(msgspec.Struct, frozen=True):
    """The personal fields, encrypted under the data key that `key` names.

    `version` is the method of encryption; a box without one has version 1.
    """

    key: UUID
    box: bytes
    version: int = 1


class _Written(msgspec.Struct, frozen=True, omit_defaults=True):
    class_version: int
    meta: Meta
    data: Event
    sealed: Sealed | None = None


class _Clear(msgspec.Struct, frozen=True):
    class_version: int
    meta: Meta
    data: msgspec.Raw


class State(_Clear, frozen=True):
    """A stored event, its data not decoded yet."""

    sealed: Sealed | None = None


class _Present(Protocol):
    """A stored event of one topic, whose data have the present version."""

    class_version: int
    meta: Meta
    data: Event


DAMAGE: Final = (
    *(msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError, RecursionError),
)
"""What a damaged state may raise, in the decoder or in an upcast."""

_encoder = msgspec.json.Encoder()
_state_decoder = msgspec.json.Decoder(State)
_clear_decoder = msgspec.json.Decoder(_Clear)


class Codec:
    """Encodes and decodes the events of one ledger."""

    def __init__(self, ledger: str, catalogue: Catalogue) -> None:
        """`ledger` is part of what a box is bound to: no box can move between ledgers."""
        self.ledger = ledger
        self._catalogue = catalogue
        self.topics = list(catalogue)
        self._clear: dict[str, tuple[Callable[[bytes], _Present], int]] = {}

    def __reduce__(self) -> tuple[type["Codec"], tuple[str, Catalogue]]:
        """Return how another process makes it again: decoders cannot be sent."""
        return Codec, (self.ledger, self._catalogue)

    def encode(
        self, stream_id: UUID, version: int, event: Event, meta: Meta, key: DataKey | None
    ) -> bytes:
        """Return the stored form; `key` seals the personal fields."""
        personal = {name: getattr(event, name) for name in event.personal}
        if not any(value is not None for value in personal.values()):
            return _encoder.encode(_Written(event.class_version, meta, event))
        if key is None:
            raise ValueError(f"{type(event).__name__} has personal fields and no key")
        clear = msgspec.structs.replace(event, **dict.fromkeys(personal))
        bound_to = self._bound_to(stream_id, version, key.key_id)
        box = key.encrypt(_encoder.encode(personal), bound_to)
        sealed = Sealed(key.key_id, box, BOX_VERSION)
        return _encoder.encode(_Written(event.class_version, meta, clear, sealed))

    def decode(
        self, stream_id: UUID, version: int, topic: str, state: bytes, key: DataKey | None = None
    ) -> tuple[Event, Meta]:
        """Return the event and its meta; without the key, personal fields are None.

        Raises Unreadable, with the event's place, or DecryptionFailed.
        """
        try:
            return self.decode_stored(stream_id, version, topic, stored_form(state), key)
        except Unreadable as error:
            raise error.at(self.ledger, stream_id, version) from error

    def decode_clear(self, topic: str, state: bytes) -> tuple[Event, Meta] | None:
        """Return an event of its present version without its personal fields, and its meta.

        None where it is not that: `decode_stored` knows older versions, and what is wrong.
        """
        known = self._clear.get(topic)
        if known is None:
            cls = self._catalogue.get(topic)
            if cls is None:
                return None
            known = self._clear[topic] = _decoding_clear(cls), cls.class_version
        read, class_version = known
        try:
            stored = read(state)
        except DAMAGE:
            return None
        return (stored.data, stored.meta) if stored.class_version == class_version else None

    def decode_stored(
        self, stream_id: UUID, version: int, topic: str, stored: State, key: DataKey | None
    ) -> tuple[Event, Meta]:
        """Return the event and its meta, given the parsed state, from which its key was looked up.

        Raises Unreadable, without a place, if the catalogue lacks the topic or the version, or the
        data do not fit it; and DecryptionFailed if the key does not open the box.
        """
        try:
            return self._decoded(stream_id, version, topic, stored, key), stored.meta
        except DAMAGE as error:
            fault = f"its data are not those of {topic} ({type(error).__name__})"
            raise Unreadable(fault) from error

    def _decoded(
        self, stream_id: UUID, version: int, topic: str, stored: State, key: DataKey | None
    ) -> Event:
        cls = self._catalogue.get(topic)
        if cls is None:
            raise Unreadable(f"no topic {topic} in the catalogue")
        if (stored.sealed is None or key is None) and stored.class_version == cls.class_version:
            return msgspec.json.decode(stored.data, type=cls)
        data: dict[str, Any] = msgspec.json.decode(stored.data)
        if stored.sealed is not None and key is not None:
            bound_to = self._bound_to(stream_id, version, stored.sealed.key)
            opened = key.decrypt(stored.sealed.box, bound_to, stored.sealed.version)
            data |= msgspec.json.decode(opened)
        data = upcast(cls, data, stored.class_version)
        return msgspec.convert(data, cls, str_keys=True)

    def personal(self, topic: str) -> Sequence[str]:
        """Return the names of a topic's personal fields; none if the topic is unknown."""
        cls = self._catalogue.get(topic)
        return () if cls is None else cls.personal

    def _bound_to(self, stream_id: UUID, version: int, key_id: UUID) -> bytes:
        return b"%s\0%s%s%s" % (
            self.ledger.encode(),
            stream_id.bytes,
            version.to_bytes(8, "big"),
            key_id.bytes,
        )


def stored_form(state: bytes, *, with_sealed: bool = True) -> State:
    """Return a stored event, its data not decoded yet; raises Unreadable.

    Without its sealed box where that is not wanted, which is not decoded then.
    """
    try:
        if with_sealed:
            return _state_decoder.decode(state)
        clear = _clear_decoder.decode(state)
    except DAMAGE as error:
        message = f"it has not the form of an event ({type(error).__name__})"
        raise Unreadable(message) from error
    return State(clear.class_version, clear.meta, clear.data)


@cache
def _decoding_clear(cls: type[Event]) -> Callable[[bytes], _Present]:
    """Return what decodes a stored event at once, which takes half as long as in two steps."""
    fields = [("class_version", int), ("meta", Meta), ("data", cls)]
    decoder = msgspec.json.Decoder(msgspec.defstruct(cls.__name__, fields, frozen=True))
    return cast("Callable[[bytes], _Present]", decoder.decode)


def happened_at(state: bytes | None) -> datetime | None:
    """Return an event's own time; None for a damaged event, so that other figures are shown."""
    with suppress(Unreadable):
        return None if state is None else stored_form(state).meta.at
    return None
