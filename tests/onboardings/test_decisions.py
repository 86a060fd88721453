from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from service.core.errors import Refusal
from service.facts import replays
from service.facts.caller import Caller
from service.facts.onboardings import (
    Onboarding,
    OnboardingCompleted,
    OnboardingReplayMismatched,
    OnboardingStarted,
    fold,
)
from service.ledger.encryption import DataKey
from service.ledger.events import Meta, Recorded
from service.onboardings import decisions
from service.onboardings.wire import Confirmed, OnboardingRequest

META = Meta(datetime(2026, 3, 1, tzinfo=UTC), "system:test", "req_1", "live")
STARTED = OnboardingStarted(
    onboarding_id="onb_1",
    entity_id="ent_1",
    partner_id="ptn_1",
    partner_user_id="u",
    fingerprint="",
)
COMPLETED = OnboardingCompleted(onboarding_id="onb_1", entity_id="ent_1", partner_id="ptn_1")


def stream(*events):
    """Return events as a stream of the log."""
    return [Recorded(nr, UUID(int=1), nr, event, META) for nr, event in enumerate(events, 1)]


def test_an_onboarding_is_folded():
    """No stream is no onboarding; a stream knows whether it was finished."""
    assert fold([]) is None
    assert fold(stream(STARTED)) == Onboarding(1, STARTED, False)
    assert fold(stream(STARTED, COMPLETED)) == Onboarding(2, STARTED, True)


def test_a_stream_begins_with_its_start():
    """Another first event is a fault, not an onboarding."""
    with pytest.raises(TypeError):
        fold(stream(OnboardingReplayMismatched(onboarding_id="o", fingerprint="")))


@pytest.mark.parametrize(
    ("events", "expired", "code"),
    [
        ((STARTED, COMPLETED), False, "magic_link_already_used"),
        ((STARTED, COMPLETED), True, "magic_link_already_used"),
        ((STARTED,), True, "magic_link_expired"),
    ],
)
def test_a_link_is_used_once_and_in_time(events, expired, code):
    """A used link says so, also after its time."""
    onboarding = fold(stream(*events))
    with pytest.raises(Refusal) as refused:
        decisions.check_link(onboarding, expired=expired)
    assert refused.value.code == code


def test_a_fresh_link_passes():
    """Before its time is over and before it was used, nothing stands in the way."""
    onboarding = fold(stream(STARTED))
    assert onboarding is not None
    assert decisions.check_link(onboarding, expired=False) is None


CALLER = Caller("ptn_1", "key_1", "live", 7, False, False, "req_1")
KEY = DataKey(UUID(int=1), b"k" * 32, b"", "")
REQUEST = OnboardingRequest(
    partner_user_id="u", company_name="New Ltd", user_email="owner@example.com"
)


def started_by(caller, link):
    """Return the event of a start by a partner, whose link has this hash."""
    return decisions.start(
        caller,
        REQUEST,
        KEY,
        onboarding_id="onb_1",
        entity_id="ent_1",
        magic_link_hash=link,
        expires_at=None,
    )


@pytest.mark.parametrize(
    ("link", "suppressed", "mail_wanted"),
    [(b"hash", False, True), (b"hash", True, False), (None, False, False)],
    ids=["live", "mail suppressed", "test mode"],
)
def test_a_start_records_the_request_and_whether_mail_is_sent(link, suppressed, mail_wanted):
    """Mail needs a magic link, and a partner that has not switched it off."""
    started = started_by(CALLER._replace(suppress_email=suppressed), link)
    assert (started.magic_link_hash, started.mail_wanted) == (link, mail_wanted)
    assert started.details == msgspec.to_builtins(REQUEST)
    assert started.fingerprint_version == 2
    assert replays.compare("live", started, REQUEST, KEY).matches is True


def test_a_completion_has_the_confirmed_details():
    """What the person confirmed replaces what the partner sent; without a page there is nothing."""
    started = msgspec.structs.replace(STARTED, details=msgspec.to_builtins(REQUEST))
    confirmed = Confirmed(company_name="Newer Ltd")
    assert decisions.complete(started, None, "sign_in").details is None
    assert decisions.complete(started, None, "sign_in").proved_by == "sign_in"
    assert decisions.complete(started, confirmed, "mailed_link").details == {
        "partner_user_id": "u",
        "user_email": "owner@example.com",
        "company_name": "Newer Ltd",
    }


@pytest.mark.parametrize(
    ("link_returned", "visitor", "proved_by"),
    [
        (False, None, "mailed_link"),
        (False, "other", "mailed_link"),
        (False, "owner", "sign_in"),
        (True, None, None),
        (True, "other", None),
        (True, "owner", "sign_in"),
        (None, None, None),
        (None, "other", None),
        (None, "owner", "sign_in"),
    ],
)
def test_a_link_that_the_partner_had_proves_nothing(link_returned, visitor, proved_by):
    """Then only the person's address does, by signing in; an older start may have had any."""
    started = msgspec.structs.replace(STARTED, link_returned=link_returned)
    if proved_by is not None:
        assert decisions.proof(started, "owner", visitor) == proved_by
        return
    with pytest.raises(Refusal, match="onboarding_needs_sign_in"):
        decisions.proof(started, "owner", visitor)


@pytest.mark.parametrize(
    ("link", "return_link", "returned"),
    [(b"hash", True, True), (b"hash", False, False), (None, True, False)],
    ids=["returned", "mailed alone", "test mode"],
)
def test_a_start_records_whether_its_link_was_returned(link, return_link, returned):
    """As the partner's settings are at that moment; test mode's link is none."""
    started = started_by(CALLER._replace(return_link=return_link), link)
    assert started.link_returned is returned


@pytest.mark.parametrize(
    ("email", "hint"),
    [
        ("baker@example.com", "b…@example.com"),
        ("b@example.com", "…@example.com"),
        ('"a@b"@example.com', '"…@example.com'),
    ],
)
def test_an_address_is_recognised_by_its_person_alone(email, hint):
    """Its first letter and its domain, for whoever has a link that proves nothing."""
    assert decisions.address_hint(email) == hint
