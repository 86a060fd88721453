"""Checking the MACs of a part's rows, without knowing which keys were valid before the part."""

from collections.abc import Callable
from hashlib import sha256
from secrets import token_bytes
from typing import Final

from service.ledger.binding import BOUND_TOPIC, boundary_stream
from service.ledger.event_macs import MAC_BYTES, MAC_OF, UNBOUND, EventKeys, keyed_hash
from service.ledger.merkle import HASH_BYTES

NO_KEY: Final = 1 << 16
"""Above every key's id: no event needed one."""


class Odd(Exception):
    """A row is not what it should be."""


class PartMacs:
    """Checks the rows' MACs, without knowing which keys were valid before the part."""

    def __init__(self, ledger: str, keys: EventKeys | None) -> None:
        self.lowest = NO_KEY
        self.oldest = UNBOUND
        self._stream = boundary_stream(ledger).bytes
        known = {} if keys is None else keys.keys
        # An id that no key has: no event is ours until `check` has accepted one.
        self._usual = (b"\0", keyed_hash(token_bytes(HASH_BYTES)))
        self._made = {key_id: keyed_hash(key) for key_id, key in known.items()}

    @property
    def usual(self) -> tuple[bytes, Callable[[bytes], bytes]]:
        """The key id of the last event's MAC, and the function that makes the rest of such a MAC.

        Another event with a MAC that this makes is ours, unless it is a boundary, and need not be
        given to `check`.
        """
        return self._usual

    def check(self, mac: bytes | None, of_writer: bytes, topic: str, stream: bytes) -> None:
        """Raise Odd where the service cannot have written an event."""
        key_id = UNBOUND
        if mac is not None:
            if len(mac) != MAC_BYTES:
                raise Odd
            key_id = mac[0]
            made = self._made[key_id]
            if made(sha256(MAC_OF + of_writer).digest()) != mac[1:]:
                raise Odd
            self._usual = (mac[:1], made)
        if not self.oldest and key_id < self.lowest:
            self.lowest = key_id
        if key_id < self.oldest:
            raise Odd
        if topic == BOUND_TOPIC and stream == self._stream:
            if mac is None:  # else who takes its MAC away undoes it
                raise Odd
            self.oldest = key_id
