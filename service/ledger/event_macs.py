"""What binds an event to the service that wrote it: a MAC (decision 45).

The MAC covers those parts of the leaf's record that the writer knows: stream, version, topic and
state. Its key is that of one ledger. PostgreSQL's `event_digest` computes the same digest, in the
database.
"""

import hmac
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple
from uuid import UUID

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

MAC_BYTES: Final = 33
"""The id of the key, and HMAC-SHA-256 under it."""
MAC_OF: Final = b"claim-ledger event mac v1\n"
"""Before what the writer knows of an event, in what its MAC is of."""
UNBOUND: Final = 0
"""Below every key's id: an event counts without a MAC."""
FIRST_KEY: Final = 1
"""The id of an installation's first key."""


class EventKeys(NamedTuple):
    """The keys of one ledger by their ids. `signing` is the id of the one that signs.

    `since_start`: no event of the installation is older than the keys, so each has a MAC.
    `are_all`: this process opened all that are stored, when it last looked.
    """

    keys: Mapping[int, bytes]
    since_start: bool
    signing: int
    are_all: bool = True

    @property
    def oldest(self) -> int:
        """The oldest key that counts before the log says otherwise."""
        return FIRST_KEY if self.since_start else UNBOUND

    def mac(self, stream: UUID, version: int, topic: str, state: bytes) -> bytes:
        """Return the MAC of an event that is about to be written."""
        return self._of(self.signing, event_digest(stream, version, topic, state))

    def holds(self, digest: bytes, mac: bytes) -> bool:
        """Return whether one of the keys made this MAC of an event's digest."""
        key = self.keys.get(mac[0]) if len(mac) == MAC_BYTES else None
        return key is not None and hmac.compare_digest(keyed_hash(key)(digest), mac[1:])

    def is_ours(self, digest: bytes, mac: bytes | None, *, oldest: int) -> bool:
        """Return whether this service wrote an event.

        `oldest` is the first key that has not been retired. If it is 0, the event need not have a
        MAC.
        """
        if mac is None:
            return oldest == UNBOUND
        return self.holds(digest, mac) and mac[0] >= oldest

    def _of(self, key_id: int, digest: bytes) -> bytes:
        return bytes((key_id,)) + keyed_hash(self.keys[key_id])(digest)


@lru_cache(maxsize=64)
def keyed_hash(key: bytes) -> Callable[[bytes], bytes]:
    """Return a function that computes HMAC-SHA-256 (RFC 2104) under a key.

    The key's part is hashed once, which leaves a third of the cost of a MAC of a digest.
    """
    keyed = HMAC(key, SHA256()).copy

    def made(message: bytes) -> bytes:
        mac = keyed()
        mac.update(message)
        return mac.finalize()

    return made


def event_digest(stream: UUID, version: int, topic: str, state: bytes) -> bytes:
    """Return the digest that the MAC covers, as `event_digest` of the ledger's schema does."""
    of_writer = f"{stream!s}\n{version}\n{topic}\n{sha256(state).hexdigest()}\n"
    return sha256(MAC_OF + of_writer.encode()).digest()


def digest_of_record(record: bytes) -> bytes:
    """Return the same, given the record of the event's leaf, which ends as the MAC's does."""
    *_, of_writer = record.split(b"\n", 3)
    return sha256(MAC_OF + of_writer).digest()


def key_of_ledger(root: bytes, ledger: str) -> bytes:
    """Return the key of one ledger: no event can move to another."""
    return hmac.digest(root, b"claim-ledger events of " + ledger.encode(), sha256)
