"""Tokens of time-stamping authorities (RFC 3161) on checkpoints, as signature lines of their notes.

An authority signs that it was shown the SHA-256 of a note's text at a time of its own clock. So
everything that the checkpoint covers existed before that time. A line has C2SP signed-note's type
0xff and our identifier for it. In place of the public key, it has the SHA-256 of the certificate to
which the authority's own leads.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from math import ceil
from typing import Final, NamedTuple, Self

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from service.evidence.note import NoteInvalid, key_id_of, split_note

ANCHOR_BYTES_MAX: Final = 64_000
_TYPE: Final = b"\xffclaim-ledger/rfc3161/v1"
_SHA_256: Final = x509.ObjectIdentifier("2.16.840.1.101.3.4.2.1")
_GRANTED: Final = bytes.fromhex("3003020100")
"""A PKIStatusInfo: what a reply has before its token."""


class TimeAnchor(NamedTuple):
    """The certificate that an authority's own has to lead to, in DER."""

    der: bytes

    @classmethod
    def parse(cls, pem: bytes) -> Self:
        """Read a file of one certificate; raises ValueError."""
        found = x509.load_pem_x509_certificates(pem)
        if len(found) != 1:
            raise ValueError("expected one certificate, the one that the authority's leads to")
        return cls(found[0].public_bytes(Encoding.DER))

    def key_id(self, name: str) -> bytes:
        """Return the four bytes by which a line names this anchor, under an authority's name."""
        return key_id_of(name, self.key)

    @property
    def key(self) -> bytes:
        """What those bytes are the hash of, after the name."""
        return _TYPE + sha256(self.der).digest()

    def stamped_at(self, text: str, token: bytes) -> datetime:
        """Return when a note's text was shown to the authority; raises NoteInvalid."""
        from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

        try:
            reply = decode_timestamp_response(_reply(token))
            if reply.tst_info.message_imprint.hash_algorithm != _SHA_256:
                raise NoteInvalid("a time stamp is not of a SHA-256")
            root = x509.load_der_x509_certificate(self.der)
            verifier = VerifierBuilder().add_root_certificate(root).build()
            verifier.verify(reply, sha256(text.encode()).digest())
        except (ValueError, VerificationError) as error:
            raise NoteInvalid("a time stamp does not hold") from error
        return _rounded_up(reply.tst_info.gen_time, token)


class TimeAuthority(NamedTuple):
    """An authority under the name that its lines have."""

    name: str
    anchor: TimeAnchor

    @property
    def which(self) -> tuple[str, bytes]:
        """Name and id, which a signature line has."""
        return self.name, self.anchor.key_id(self.name)


def stamped_before(note: str, anchors: Sequence[TimeAnchor]) -> datetime:
    """Return the earliest time that a note was stamped at, by authorities under these anchors.

    Raises NoteInvalid if it was not, or if such a stamp does not hold.
    """
    text, signatures = split_note(note)
    found = [
        anchor.stamped_at(text, one.signature)
        for one in signatures
        for anchor in anchors
        if one.key_id == anchor.key_id(one.name)
    ]
    if not found:
        raise NoteInvalid("no authority under this certificate has stamped it")
    return min(found)


def _rounded_up(at: datetime, token: bytes) -> datetime:
    """Return the time in a token, up to the next millisecond.

    The library leaves a fraction out, by which something would have existed before a time at which
    it had not been shown. A token that spells the time twice counts as of the later one.
    """
    spelled = rb"\x18[\x0f-\x7f]" + at.strftime("%Y%m%d%H%M%S").encode() + rb"(\.[0-9]+)?Z"
    fractions = [Decimal(found.decode() or 0) for found in re.findall(spelled, token)]
    return at + timedelta(milliseconds=ceil(max(fractions) * 1000))


def _reply(token: bytes) -> bytes:
    """Return a token as the reply in which it came."""
    inner = _GRANTED + token
    length = len(inner).to_bytes(4, "big").lstrip(b"\0") or b"\0"
    return b"\x30" + bytes([0x80 | len(length)]) + length + inner
