"""Signed notes (C2SP signed-note) under Ed25519, and keys in the form that its tools share.

A public key is written `<name>+<8 hex digits>+<base64 of 0x01 and 32 bytes>`, a private one
`PRIVATE+KEY+` before the same with the seed in place of the public key.
"""

import base64
import binascii
import re
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_ED25519: Final = b"\x01"
_SEED_BYTES: Final = 32
_PRIVATE: Final = "PRIVATE+KEY+"
_ID_BYTES: Final = 4
NOTE_MAX: Final = 1_000_000
SIGNATURES_MAX: Final = 100
"""Above the 16 that a verifier has to take."""
_NAME: Final = re.compile(r"[^\s+]+")
_LINE: Final = re.compile(r"\u2014 ([^\s+]+) ([A-Za-z0-9+/]+={0,2})")
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")
_ID: Final = re.compile(r"[0-9a-f]{8}", re.ASCII)
_EXPECTED: Final = "a key as `claim-ledger audit keygen` prints it"


class NoteInvalid(ValueError):
    """A note is not well formed, or no known key signed it."""


class SignerUnknown(NoteInvalid):
    """A well-formed note that no known key signed."""


class NoteKey(NamedTuple):
    """A key that signs notes, or a public one that only verifies them. Never shown whole."""

    name: str
    public: bytes
    seed: bytes | None = None

    @classmethod
    def generate(cls, name: str) -> Self:
        """Generate a key; raises ValueError for a name that a note cannot have."""
        return cls.of_seed(name, secrets.token_bytes(_SEED_BYTES))

    @classmethod
    def of_seed(cls, name: str, seed: bytes) -> Self:
        """Return the key of a seed of 32 bytes; raises ValueError."""
        check_name(name)
        public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
        return cls(name, public, seed)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a private or public key; raises ValueError, which quotes nothing of it."""
        is_private = text.startswith(_PRIVATE)
        name, key_id, raw = key_parts(text.removeprefix(_PRIVATE))
        if raw[:1] != _ED25519 or len(raw) != 1 + _SEED_BYTES:
            raise ValueError(f"expected {_EXPECTED}: Ed25519")
        key = cls.of_seed(name, raw[1:]) if is_private else cls(name, raw[1:])
        if key.key_id != key_id:
            raise ValueError(f"its id does not belong to it; expected {_EXPECTED}")
        return key

    @property
    def can_sign(self) -> bool:
        """Whether this is a private key."""
        return self.seed is not None

    @property
    def key_id(self) -> bytes:
        """The four bytes by which a signature names its key."""
        return key_id_of(self.name, _ED25519 + self.public)

    @property
    def public_text(self) -> str:
        """The public key, to hand to whoever verifies."""
        return self._text(self.public)

    @property
    def private_text(self) -> str:
        """The private key, for the settings; raises ValueError if there is none."""
        if self.seed is None:
            raise ValueError("this is a public key")
        return _PRIVATE + self._text(self.seed)

    def sign(self, text: str) -> str:
        """Return the signed note; `text` ends in a newline. Raises ValueError."""
        if not text.endswith("\n") or not _is_well_formed(text):
            raise ValueError("a note's text ends in a newline and has no other control character")
        line = base64.b64encode(self.key_id + self.signature(text.encode())).decode()
        return f"{text}\n\u2014 {self.name} {line}\n"

    def signature(self, message: bytes) -> bytes:
        """Return the 64 bytes of a signature; raises ValueError for a public key."""
        if self.seed is None:
            raise ValueError("a public key cannot sign")
        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)

    def holds(self, signature: bytes, message: bytes) -> bool:
        """Return whether this key made a signature of a message."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    def __repr__(self) -> str:
        return f"NoteKey({self.name!r}, {self.key_id.hex()})"

    def _text(self, raw: bytes) -> str:
        return f"{self.name}+{self.key_id.hex()}+{base64.b64encode(_ED25519 + raw).decode()}"


def key_parts(text: str) -> tuple[str, bytes, bytes]:
    """Return the name, the id and the bytes of a written key, its type first; raises ValueError.

    Whether the id belongs to it is for the caller to see, who knows the type.
    """
    name, _, rest = text.partition("+")
    key_id, _, encoded = rest.partition("+")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"expected {_EXPECTED}") from None
    if base64.b64encode(raw).decode() != encoded or not _ID.fullmatch(key_id):
        raise ValueError(f"expected {_EXPECTED}")
    check_name(name)
    return name, bytes.fromhex(key_id), raw


def key_id_of(name: str, raw: bytes) -> bytes:
    """Return the four bytes by which a signature names its key, whose type `raw` begins with."""
    return sha256(name.encode() + b"\n" + raw).digest()[:_ID_BYTES]


class NoteSignature(NamedTuple):
    """A signature line of a note: whose it is, by name and id, and the bytes after the id."""

    name: str
    key_id: bytes
    signature: bytes

    @classmethod
    def parse(cls, line: str) -> Self:
        """Read a line without its newline, in its one spelling; raises NoteInvalid."""
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise NoteInvalid("not a signature line")
        try:
            raw = base64.b64decode(parts[2], validate=True)
        except binascii.Error:
            raise NoteInvalid("a signature is not base64") from None
        if len(raw) <= _ID_BYTES or base64.b64encode(raw).decode() != parts[2]:
            raise NoteInvalid("not a signature line")
        return cls(parts[1], raw[:_ID_BYTES], raw[_ID_BYTES:])

    @property
    def key(self) -> tuple[str, bytes]:
        """The name and the id, which say together whose it is."""
        return self.name, self.key_id

    @property
    def line(self) -> str:
        """The line, its newline included."""
        return f"\u2014 {self.name} {base64.b64encode(self.key_id + self.signature).decode()}\n"


def split_note(note: str) -> tuple[str, list[NoteSignature]]:
    """Return a note's text, its last newline included, and its signatures, unchecked.

    Raises NoteInvalid for what is no note.
    """
    if len(note) > NOTE_MAX or not _is_well_formed(note):
        raise NoteInvalid("not a signed note")
    text, _, signatures = note.rpartition("\n\n")
    if not signatures.endswith("\n") or len(text) + len(signatures) == len(note):
        raise NoteInvalid("not a signed note")
    lines = signatures.removesuffix("\n").split("\n")
    if len(lines) > SIGNATURES_MAX:
        raise NoteInvalid(f"more than {SIGNATURES_MAX} signatures")
    return f"{text}\n", [NoteSignature.parse(line) for line in lines]


def open_note(note: str, keys: Sequence[NoteKey]) -> str:
    """Return the text of a note that one of the keys signed, as it is, its last newline included.

    Signatures of other keys are ignored, also where they share a name or an id with one of these.

    Raises:
        NoteInvalid: not a note, or a known key's signature is wrong.
        SignerUnknown: no known key signed it.

    """
    # Every line is parsed before any is trusted.
    text, signatures = split_note(note)
    known = {(key.name, key.key_id): key for key in keys}
    signed = [(known[one.key], one.signature) for one in signatures if one.key in known]
    for key, signature in signed:
        if not key.holds(signature, text.encode()):
            raise NoteInvalid(f"the signature of {key.name} does not hold")
    if not signed:
        raise SignerUnknown("signed by no key that is known here")
    return text


def _is_well_formed(text: str) -> bool:
    """Return whether a note may hold this: UTF-8 without control characters but the newline."""
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates
        return False
    return not _CONTROL.search(text)


def check_name(name: str) -> None:
    """Raise ValueError for a name that no key can have."""
    if not _NAME.fullmatch(name) or not name.isprintable():
        raise ValueError("a key's name has neither spaces nor +; expected example.com/ledger")
    if any(not part or part.startswith(".") for part in name.split("/")):
        raise ValueError(
            "no part of a key's name is empty or begins with a dot, since checkpoints are "
            "published under it; expected example.com/ledger"
        )
