"""What the service sends to an endpoint is what the Python client verifies."""

from typing import Any, cast

import pytest
from claim_ledger_client import WebhookRefusedError, Webhooks

from service.core.clock import system_clock
from service.webhooks.messages import Messages
from service.webhooks.signing import headers, signing_keys, signing_now
from tests.webhooks.secrets import SECRETS


def test_the_client_verifies_what_is_sent():
    """By any key of a rotation's two versions; not by another endpoint's, nor a changed body."""
    now = system_clock()
    messages = Messages(cast("Any", None), "https://api.example.com", "live")
    sent = messages.test("whe_1", 7, now)
    keys = signing_now(SECRETS, "whe_1", 2, now, now)
    given = headers(keys, sent.id, now, sent.body)
    for key in (*keys, signing_keys(SECRETS, "whe_1", 2)):
        for shown in (key.shown_secret, key.shown_public_key):
            event = Webhooks(shown).verify(sent.body.encode(), given)
            assert (event.id, event.type, event.subject) == (sent.id, "endpoint.test", "whe_1")
    other = signing_keys(SECRETS, "whe_2", 1)
    for webhooks, body in (
        (Webhooks(other.shown_secret, other.shown_public_key), sent.body),
        (Webhooks(keys[0].shown_secret), sent.body.replace("whe_1", "whe_2")),
    ):
        with pytest.raises(WebhookRefusedError):
            webhooks.verify(body.encode(), given)
