"""A software authenticator: makes and uses passkeys as a browser's does, without a browser."""

import base64
import hashlib
import json
import os
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


class Authenticator:
    """One authenticator of one person; `flags` is what it says of them in each response."""

    def __init__(self, origin: str, host: str, flags: int = PRESENT | VERIFIED) -> None:
        self.origin, self.host, self.flags = origin, host, flags
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.credential_id = os.urandom(32)

    def create(self, options: dict[str, Any]) -> str:
        """Return the answer to a request for a new passkey, as JSON."""
        numbers = self.key.public_key().public_numbers()
        public_key = {1: 2, 3: -7, -1: 1, -2: _bytes(numbers.x), -3: _bytes(numbers.y)}
        attested = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id
        data = self._data(ATTESTED) + attested + cbor2.dumps(public_key)
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", options)
        return self._answer(clientDataJSON=client, attestationObject=attestation)

    def get(self, options: dict[str, Any]) -> str:
        """Return the answer to a request for the passkey, as JSON."""
        data, client = self._data(), self._client("webauthn.get", options)
        signed = data + hashlib.sha256(client).digest()
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        return self._answer(clientDataJSON=client, authenticatorData=data, signature=signature)

    def _data(self, more: int = 0) -> bytes:
        host = hashlib.sha256(self.host.encode()).digest()
        return host + bytes([self.flags | more]) + bytes(4)

    def _client(self, kind: str, options: dict[str, Any]) -> bytes:
        said = {"type": kind, "challenge": options["challenge"], "origin": self.origin}
        return json.dumps(said | {"crossOrigin": False}).encode()

    def _answer(self, **response: bytes) -> str:
        name = _text(self.credential_id)
        parts = {key: _text(value) for key, value in response.items()}
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": parts})


def _bytes(number: int) -> bytes:
    return number.to_bytes(32, "big")


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
