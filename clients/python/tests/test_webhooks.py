"""Webhooks are verified by Standard Webhooks, and nothing else passes."""

import base64
import hashlib
import hmac
import json

import pytest
from claim_ledger_client import WebhookRefusedError, Webhooks
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import example, given
from hypothesis import strategies as st
from scripted import EVENT

NOW = 1_772_360_130
BODY = json.dumps(EVENT).encode()
SECRET, OTHER = (f"whsec_{base64.b64encode(bytes([n]) * 32).decode()}" for n in (1, 2))
PRIVATE = Ed25519PrivateKey.from_private_bytes(b"3" * 32)
PUBLIC = f"whpk_{base64.b64encode(PRIVATE.public_key().public_bytes_raw()).decode()}"


def signed(secret: str = SECRET, body: bytes = BODY, at: int = NOW) -> dict[str, str]:
    """Return the headers of a delivery, signed with a secret and with the private key."""
    content = b".".join([b"evt_1", str(at).encode(), body])
    raw = base64.b64decode(secret.removeprefix("whsec_"))
    by_secret = base64.b64encode(hmac.digest(raw, content, hashlib.sha256)).decode()
    by_key = base64.b64encode(PRIVATE.sign(content)).decode()
    return {
        "Webhook-Id": "evt_1",
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{by_secret} v1a,{by_key}",
    }


SWAPPED = " ".join(
    {"v1": "v1a", "v1a": "v1"}[version] + "," + signature
    for version, signature in (one.split(",") for one in signed()["webhook-signature"].split(" "))
)
"""Each signature under the version of the other."""


@pytest.mark.parametrize("keys", [(SECRET,), (PUBLIC,), (OTHER, SECRET), (OTHER, PUBLIC)])
def test_a_delivery_is_verified(keys):
    """By the secret or the public key, and by either of two while they change."""
    event = Webhooks(*keys).verify(BODY, signed(), now=NOW + 299)
    assert (event.id, event.type, event.data.claim_id) == ("evt_1", "claim.created", "clm_1")


def test_the_published_example_is_verified():
    """The test vector of the specification's own libraries; its body is no event of ours."""
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    webhooks = Webhooks("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    with pytest.raises(WebhookRefusedError, match="no event"):
        webhooks.verify(b'{"test": 2432232314}', headers, now=1614265330)


@pytest.mark.parametrize(
    ("headers", "body", "now"),
    [
        (signed(OTHER) | {"webhook-signature": signed(OTHER)["webhook-signature"][:48]}, BODY, NOW),
        (signed(), BODY + b" ", NOW),
        (signed(), BODY, NOW + 301),
        (signed(), BODY, NOW - 301),
        (signed() | {"Webhook-Id": "evt_2"}, BODY, NOW),
        (signed() | {"webhook-timestamp": str(NOW + 1)}, BODY, NOW),
        (signed() | {"webhook-timestamp": "soon"}, BODY, NOW),
        (signed() | {"webhook-signature": ""}, BODY, NOW),
        (signed() | {"webhook-signature": "v1,!!! v1a,????"}, BODY, NOW),
        ({name: one for name, one in signed().items() if name != "Webhook-Id"}, BODY, NOW),
        (signed() | {"webhook-signature": SWAPPED}, BODY, NOW),
    ],
)
def test_anything_else_is_refused(headers, body, now):
    """Another key, a changed part, a moment too far away, a header that lacks."""
    for keys in ((SECRET,), (PUBLIC,)):
        with pytest.raises(WebhookRefusedError):
            Webhooks(*keys).verify(body, headers, now=now)


ANY = st.text(st.characters(codec=None), max_size=20)
"""Half of a surrogate pair, too, as which servers pass on bytes that are no text."""


@given(
    ANY,
    st.one_of(ANY, st.just(str(NOW))),
    st.lists(st.tuples(st.sampled_from(["v1,", "v1a,", ""]), ANY).map("".join)).map(" ".join),
)
@example("evt_1", str(NOW), "v1,\u00e9")
@example("evt_\udce9", str(NOW), "v1,AAAA v1a,AAAA")
@example("evt_1", "\u0661" * 10, "v1,AAAA")
def test_whatever_the_headers_say_is_only_refused(message_id, sent_at, signatures):
    """A receiver answers what strangers send by one exception."""
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    headers = dict(zip(names, (message_id, sent_at, signatures), strict=True))
    with pytest.raises(WebhookRefusedError):
        Webhooks(SECRET, PUBLIC).verify(BODY, headers, now=NOW)


@pytest.mark.parametrize(
    "keys", [(), ("whsec_\u00e9",), ("whsec_",), ("secret",), ("whsec_?",), ("whsk_AAAA",)]
)
def test_what_is_no_key_is_refused(keys):
    """When the verifier is made, and without showing it."""
    with pytest.raises(ValueError, match=r"whsec_|public"):
        Webhooks(*keys)
    assert SECRET[6:] not in repr(Webhooks(SECRET))
