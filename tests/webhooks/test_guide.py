"""The guide of webhooks: its code verifies what is sent, and its figures are the service's."""

import re
from pathlib import Path

import msgspec

from service.core.clock import system_clock
from service.events.wire import CloudEvent
from service.mail.notices import webhook_paused
from service.mail.partner_notices import ADDRESSEES_MAX
from service.pages.words import TEXTS
from service.webhooks.decisions import ENDPOINTS_MAX
from service.webhooks.deliveries import ASIDE_MAX
from service.webhooks.dispatcher import LOG_KEPT
from service.webhooks.sender import RETRY_AFTER_SECONDS_MAX, SECONDS_MAX
from service.webhooks.signing import OVERLAP, headers, signing_keys
from service.webhooks.waits import ENDPOINT_WAIT_SECONDS_MAX, GIVES_UP_AFTER
from tests.webhooks.secrets import SECRETS

GUIDE = Path("docs/partners/webhooks.md").read_text()


def block(language):
    """Return the one block of the guide in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
    return found


def test_its_receiver_verifies_its_event():
    """The example is a CloudEvent as we send them, and the code takes it with its signature."""
    event = msgspec.json.decode(block("json"), type=CloudEvent)
    body, keys = msgspec.json.encode(event).decode(), signing_keys(SECRETS, "whe_1", 1)
    names = {}
    exec(block("python"), names)  # noqa: S102 - our own document
    sent = headers([keys], event.id, system_clock(), body)
    assert names["receive"](sent, body.encode(), keys.shown_secret) == "claim.stage_changed"
    assert msgspec.json.decode(body) == msgspec.json.decode(block("json"))


def test_its_figures_are_the_services():
    """Limits and times as the code has them."""
    assert (ENDPOINTS_MAX, "up to five in each mode" in GUIDE) == (5, True)
    assert (SECONDS_MAX, "within 15 seconds" in GUIDE) == (15, True)
    assert (GIVES_UP_AFTER.days, "three days without success" in GUIDE) == (3, True)
    assert (ASIDE_MAX, "more than a thousand events" in GUIDE) == (1000, True)
    assert (ADDRESSEES_MAX, "at most twenty people" in GUIDE) == (20, True)
    assert (ENDPOINT_WAIT_SECONDS_MAX, "up to 15 minutes" in GUIDE) == (900, True)
    assert (RETRY_AFTER_SECONDS_MAX, "up to a day" in GUIDE) == (86_400, True)
    assert (OVERLAP.total_seconds(), "For 24 hours" in GUIDE) == (86_400, True)
    assert (LOG_KEPT.days, "last 30 days" in GUIDE) == (30, True)


def test_each_text_about_a_pause_has_both_reasons():
    """Whoever fixes an endpoint looks for the one that it was; and a pause has one name."""
    letter = webhook_paused(partner_name="Books", is_gone=False, console="https://example.com/")
    about = [TEXTS["backoffice.paused.failing"], TEXTS["webhooks.why.failing"], *letter.paragraphs]
    both = [one for one in map(str, about) if "three days" in one and "thousand events" in one]
    assert len(both) == 3
    states = {name: one for name, one in TEXTS.items() if name.startswith("webhooks.disabled.")}
    assert {one.partition(":")[0] for one in states.values()} == {"paused"}
    assert "disable" not in GUIDE
