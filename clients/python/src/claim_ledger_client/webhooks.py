"""Verifying webhooks by Standard Webhooks: `v1` with a shared secret, `v1a` with a public key."""

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from claim_ledger_client.errors import WebhookRefusedError
from claim_ledger_client.models import CloudEvent

TOLERANCE_SECONDS: Final = 300
_SYMMETRIC: Final = "whsec_"
_PUBLIC: Final = "whpk_"
_SIGNATURES_MAX: Final = 16
Verify = Callable[[bytes, bytes], bool]
"""Takes what was signed and a signature."""


class Webhooks:
    """Verifies deliveries. It holds secrets, and shows none."""

    def __init__(self, *keys: str, tolerance_seconds: float = TOLERANCE_SECONDS) -> None:
        """`keys` are the endpoint's secret (`whsec_`) or public key (`whpk_`).

        Give the old and the new one while you change them: any of them will do. A public key needs
        `cryptography` (the extra `ed25519`).
        """
        if not keys:
            raise ValueError("give the endpoint's secret or public key")
        self._verifiers = [_verifier(key) for key in keys]
        self._tolerance_seconds = tolerance_seconds

    def verify(
        self, body: bytes, headers: Mapping[str, str], *, now: float | None = None
    ) -> CloudEvent:
        """Return the event; raise WebhookRefusedError if the delivery is not to be trusted.

        `body` is the request's as it came, before anything has parsed it. Answer 2xx once the event
        is yours, and expect the same `id` again.
        """
        given = {name.lower(): value for name, value in headers.items()}
        try:
            message_id, sent_at, signatures = (
                given[f"webhook-{name}"] for name in ("id", "timestamp", "signature")
            )
        except KeyError as error:
            raise WebhookRefusedError(f"no header {error}") from None
        if not (sent_at.isascii() and sent_at.isdigit() and len(sent_at) < 16):  # noqa: PLR2004 - no moment has more digits
            raise WebhookRefusedError("webhook-timestamp is no number of seconds")
        if abs((time.time() if now is None else now) - int(sent_at)) > self._tolerance_seconds:
            raise WebhookRefusedError("webhook-timestamp is too far from this machine's clock")
        signed = b".".join([message_id.encode(errors="surrogatepass"), sent_at.encode(), body])
        if not any(
            version == wanted and verify(signed, signature)
            for version, signature in _signatures(signatures)
            for wanted, verify in self._verifiers
        ):
            raise WebhookRefusedError("no signature of webhook-signature is that of a known key")
        try:
            return msgspec.json.decode(body, type=CloudEvent)
        except msgspec.MsgspecError as error:
            raise WebhookRefusedError(f"the body is no event: {error}") from error


def _signatures(text: str) -> Iterator[tuple[str, bytes]]:
    for one in text.split(" ")[:_SIGNATURES_MAX]:
        version, _, signature = one.partition(",")
        try:
            yield version, base64.b64decode(signature, validate=True)
        except ValueError:  # binascii.Error, and its own for letters beyond ASCII
            continue


def _verifier(key: str) -> tuple[str, Verify]:
    prefix = next((one for one in (_SYMMETRIC, _PUBLIC) if key.startswith(one)), None)
    try:
        raw = base64.b64decode(key.removeprefix(prefix or ""), validate=True)
    except ValueError:
        raw = b""
    if prefix is None or not raw:
        raise ValueError("a key of webhooks begins with whsec_ or whpk_, and goes on in base64")
    return ("v1", _by_secret(raw)) if prefix == _SYMMETRIC else ("v1a", _by_public_key(raw))


def _by_secret(secret: bytes) -> Verify:
    def verify(signed: bytes, signature: bytes) -> bool:
        return hmac.compare_digest(hmac.digest(secret, signed, hashlib.sha256), signature)

    return verify


def _by_public_key(raw: bytes) -> Verify:
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - an extra
            Ed25519PublicKey,
        )
    except ImportError as error:
        raise ImportError("a public key (whpk_) needs the package cryptography") from error
    key = Ed25519PublicKey.from_public_bytes(raw)

    def verify(signed: bytes, signature: bytes) -> bool:
        try:
            key.verify(signature, signed)
        except InvalidSignature:
            return False
        return True

    return verify
