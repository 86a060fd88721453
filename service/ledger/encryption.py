"""Personal data under a key for each subject, wrapped by a ring of master keys (decision 8).

AES-256-GCM with a random 96-bit nonce, stored before the ciphertext (NIST SP 800-38D). A subject's
key encrypts nothing itself: for each use, a key is derived from it (HKDF, RFC 5869; the subject's
key is random, so the expand step is enough). Version 1 used the subject's key itself for both uses.
"""

import hashlib
import hmac
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES: Final = 32
BOX_VERSION: Final = 2
"""Of boxes that are made today: encrypted under a key derived for that."""
FINGERPRINT_VERSION: Final = 2
"""The first version of fingerprints that are keyed by a key derived for that."""
_NONCE_BYTES: Final = 12


class KeyUnknown(Exception):
    """A key was wrapped by a master key that is not in the ring, or does not unwrap.

    `master_key_id` names the master key, where one was looked for.
    """

    def __init__(self, message: str, master_key_id: str | None = None) -> None:
        """Keep the master key's id, which is no secret."""
        super().__init__(message)
        self.master_key_id = master_key_id


class KeyGone(KeyUnknown):
    """A key is not stored where it should be, or none may be used: the ring is not to blame."""


class DecryptionFailed(KeyUnknown):
    """The key exists and does not open the box: another key, an altered box, another place."""


class BoundColumns(Protocol):
    """Values by the names of their columns."""

    def __getitem__(self, name: str, /) -> Any:  # noqa: ANN401 - a column of any type
        """Return the value of a column."""
        ...


def encrypt(key: bytes, plain: bytes, bound_to: bytes) -> bytes:
    """Encrypt; `bound_to` is authenticated with it, so that a box cannot be moved elsewhere."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, bound_to)


def decrypt(key: bytes, box: bytes, bound_to: bytes) -> bytes:
    """Decrypt what `encrypt` made.

    Raises DecryptionFailed for another key, an altered box, or a box of another place.
    """
    try:
        return AESGCM(key).decrypt(box[:_NONCE_BYTES], box[_NONCE_BYTES:], bound_to)
    except (InvalidTag, ValueError) as error:  # ValueError: too short to be a box of ours
        raise DecryptionFailed("the box does not open with this key") from error


def bound_row(table: str, row: BoundColumns, columns: Sequence[str]) -> bytes:
    """Return the data that a row's box is bound to: its table, and the values of these columns.

    So the box does not open if one of them was altered, or if it was copied to another row.
    """
    return msgspec.json.encode([table, *((name, row[name]) for name in columns)])


class DataKey:
    """The key of one subject: a person, or the defendant's side of a claim.

    The keys for each use are derived when they are first needed.
    """

    def __init__(self, key_id: UUID, key: bytes, wrapped: bytes, master_key_id: str) -> None:
        """`key_id` is the id of the subject's own stream."""
        self.key_id = key_id
        self.key = key
        self.wrapped = wrapped
        self.master_key_id = master_key_id

    def encrypt(self, plain: bytes, bound_to: bytes) -> bytes:
        """Return a box of BOX_VERSION, as the function `encrypt` does."""
        return encrypt(self._box_key, plain, bound_to)

    def decrypt(self, box: bytes, bound_to: bytes, version: int) -> bytes:
        """Open a box of any version; raises DecryptionFailed."""
        if version > BOX_VERSION:
            raise DecryptionFailed(f"a box of version {version}: later than ours")
        return decrypt(self.key if version == 1 else self._box_key, box, bound_to)

    def fingerprint(self, body: bytes, version: int) -> str:
        """Return a keyed hash of a body, which reveals nothing once the key is destroyed."""
        if version < FINGERPRINT_VERSION:
            return hmac.digest(self.key, b"fingerprint" + body, "sha256").hex()
        return hmac.digest(self._fingerprint_key, body, "sha256").hex()

    @cached_property
    def _box_key(self) -> bytes:
        return _derived(self.key, b"box")

    @cached_property
    def _fingerprint_key(self) -> bytes:
        return _derived(self.key, b"fingerprint")


class MasterKeys:
    """The ring: the newest key wraps, every key unwraps what it wrapped."""

    def __init__(self, ring: Sequence[bytes]) -> None:
        """Take the keys, newest first, 32 bytes each."""
        self._keys = {hashlib.sha256(key).hexdigest()[:16]: key for key in ring}
        self.ids = tuple(self._keys)
        self.newest = self.ids[0]

    def wrap(self, key: bytes, key_id: bytes) -> bytes:
        """Encrypt a key under the newest master key, bound to the key's own id."""
        return encrypt(self._keys[self.newest], key, key_id)

    def unwrap(self, wrapped: bytes, master_key_id: str, key_id: bytes) -> bytes:
        """Decrypt what `wrap` made.

        Raises KeyUnknown if the ring lacks that master key, or it did not wrap this.
        """
        master = self._keys.get(master_key_id)
        if master is None:
            raise KeyUnknown(f"no master key {master_key_id} in the ring", master_key_id)
        try:
            return decrypt(master, wrapped, key_id)
        except DecryptionFailed as error:
            message = f"master key {master_key_id} does not open this key"
            raise KeyUnknown(message, master_key_id) from error

    def new_data_key(self, key_id: UUID) -> DataKey:
        """Draw a subject's key and wrap it."""
        key = os.urandom(KEY_BYTES)
        return DataKey(key_id, key, self.wrap(key, key_id.bytes), self.newest)

    def open_data_key(self, key_id: UUID, wrapped: bytes, master_key_id: str) -> DataKey:
        """Unwrap a subject's stored key; raises KeyUnknown."""
        key = self.unwrap(wrapped, master_key_id, key_id.bytes)
        return DataKey(key_id, key, wrapped, master_key_id)


def _derived(key: bytes, use: bytes) -> bytes:
    """Return the first block of HKDF-Expand, which is all of 32 bytes (RFC 5869, 2.3).

    Not by the library, which takes five times as long, twice for each claim; a test compares them.
    """
    return hmac.digest(key, b"claim-ledger data key: " + use + b"\x01", "sha256")
