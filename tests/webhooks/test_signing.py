"""Signatures are those of Standard Webhooks, and the secret before the last one signs for a day."""

import base64
from datetime import timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks import Webhook

from service.core.clock import system_clock
from service.webhooks.signing import OVERLAP, headers, signing_keys, signing_now
from tests.webhooks.secrets import SECRETS

BODY = '{"name":"Zoë"}'


def test_a_receiver_verifies_either_signature():
    """With the secret, by the library; or with the public key alone."""
    now, keys = system_clock(), signing_keys(SECRETS, "whe_1", 1)
    sent = headers([keys], "evt_1", now, BODY)
    assert Webhook(keys.shown_secret).verify(BODY, sent) == {"name": "Zoë"}
    raw = base64.b64decode(keys.shown_public_key.removeprefix("whpk_"))
    shared, asymmetric = sent["webhook-signature"].split(" ")
    assert shared.startswith("v1,")
    Ed25519PublicKey.from_public_bytes(raw).verify(
        base64.b64decode(asymmetric.removeprefix("v1a,")),
        f"evt_1.{sent['webhook-timestamp']}.{BODY}".encode(),
    )


def test_every_endpoint_and_version_has_keys_of_its_own():
    """The same again whenever asked; and no key serves both algorithms."""
    shown = {
        (endpoint, version): signing_keys(SECRETS, endpoint, version).shown_secret
        for endpoint in ("whe_1", "whe_2")
        for version in (1, 2)
    }
    assert len(set(shown.values())) == 4
    keys = signing_keys(SECRETS, "whe_1", 1)
    assert keys.shown_secret == shown["whe_1", 1]
    assert keys.private.private_bytes_raw() != keys.secret


def test_the_secret_before_signs_for_a_day():
    """To the second; one that was never rotated is alone."""
    now = system_clock()
    current, before = (signing_keys(SECRETS, "whe_1", one).shown_secret for one in (2, 1))

    def signs(rotated_at, version=2):
        keys = signing_now(SECRETS, "whe_1", version, rotated_at, now)
        return [one.shown_secret for one in keys]

    assert signs(now) == [current, before]
    assert signs(now - OVERLAP + timedelta(seconds=1)) == [current, before]
    assert signs(now - OVERLAP) == [current]
    assert signs(None, 1) == [before]
    assert before not in signs(now, 3), "rotated again"
    both = headers(signing_now(SECRETS, "whe_1", 2, now, now), "evt_1", now, BODY)
    for secret in (current, before):
        Webhook(secret).verify(BODY, both)
