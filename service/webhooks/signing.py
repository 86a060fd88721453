"""An endpoint's secrets, and the signatures of what is sent there (Standard Webhooks).

Both are derived from the service's own key, the endpoint's id and the secret's version, as links'
tokens are: nothing secret is stored, and they can be shown again.
"""

import base64
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from standardwebhooks import Webhook

from service.ledger.service_keys import Secrets

OVERLAP: Final = timedelta(hours=24)
"""For so long the secret before a rotated one signs, too; unless it is rotated again."""


class SigningKeys(NamedTuple):
    """What signs: `secret` is shared with the receiver (v1), `private` is ours alone (v1a)."""

    secret: bytes
    private: Ed25519PrivateKey

    @property
    def shown_secret(self) -> str:
        """The secret as receivers are given it: `whsec_…`."""
        return f"whsec_{base64.b64encode(self.secret).decode()}"

    @property
    def shown_public_key(self) -> str:
        """The public key as receivers are given it: `whpk_…`."""
        raw = self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return f"whpk_{base64.b64encode(raw).decode()}"

    def sign(self, message_id: str, at: datetime, body: str) -> list[str]:
        """Return both signatures of a message."""
        to_sign = f"{message_id}.{int(at.timestamp())}.{body}".encode()
        asymmetric = base64.b64encode(self.private.sign(to_sign)).decode()
        return [Webhook(self.secret).sign(message_id, at, body), f"v1a,{asymmetric}"]


def signing_keys(secrets: Secrets, endpoint_id: str, version: int) -> SigningKeys:
    """Return the keys of one version of an endpoint's secret."""
    subject = f"{endpoint_id}\0{version}"
    return SigningKeys(
        secrets.derived("webhook secret", subject),
        Ed25519PrivateKey.from_private_bytes(secrets.derived("webhook signing key", subject)),
    )


def signing_now(
    secrets: Secrets, endpoint_id: str, version: int, rotated_at: datetime | None, now: datetime
) -> list[SigningKeys]:
    """Return the keys that sign now: those of the version before, too, for a day after it ended."""
    versions = [version, version - 1] if overlap_end(rotated_at, now) else [version]
    return [signing_keys(secrets, endpoint_id, one) for one in versions]


def overlap_end(rotated_at: datetime | None, now: datetime) -> datetime | None:
    """Return until when the secret before the present one signs; None where it does no longer."""
    end = rotated_at and rotated_at + OVERLAP
    return end if end and now < end else None


def headers(keys: list[SigningKeys], message_id: str, at: datetime, body: str) -> dict[str, str]:
    """Return the headers by which a receiver knows a message, and that it is ours."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(
            one for key in keys for one in key.sign(message_id, at, body)
        ),
    }
