from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from service.core.errors import Refusal
from service.facts import partners
from service.facts.partners import (
    ApiKeyIssued,
    ApiKeyRebound,
    ApiKeyRevoked,
    Key,
    MemberAdded,
    MemberRemoved,
    Partner,
    PartnerApplied,
    PartnerApproved,
    PartnerDeclined,
    PartnerRevoked,
    PartnerSettingsChanged,
    PartnerWebsiteVerified,
    fold,
)
from service.facts.people import person_id
from service.ledger.events import Event
from service.partners import decisions

NOW = datetime(2026, 3, 1, 10, 0, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
P = "ptn_1"
APPLIED = PartnerApplied(partner_id=P, name="A partner", email="a@example.com")
APPROVED = PartnerApproved(partner_id=P)
DECLINED = PartnerDeclined(partner_id=P)
REVOKED = PartnerRevoked(partner_id=P)
ISSUED = ApiKeyIssued(
    partner_id=P, key_id="key_1", mode="live", secret_hash=b"hash", hash_version=2
)
LINK_RETURNED = PartnerSettingsChanged(partner_id=P, return_link=True, suppress_email=False)
KEY_REVOKED = ApiKeyRevoked(partner_id=P, key_id="key_1")

HISTORIES = {
    "unknown": [],
    "pending": [APPLIED],
    "declined": [APPLIED, DECLINED],
    "approved": [APPLIED, APPROVED],
    "revoked": [APPLIED, APPROVED, REVOKED],
}


def issue(partner):
    """Issue a key of the same id and hash every time."""
    return decisions.issue_key(partner, key_id="key_1", mode="live", secret_hash=b"hash", now=NOW)


def set_return_link(partner):
    """Have magic links returned."""
    return decisions.change_settings(partner, return_link=True, suppress_email=None)


def verify(partner):
    """Record a verified website."""
    return decisions.verify_website(partner, "example.com")


@pytest.mark.parametrize(
    ("given", "when", "then"),
    [
        ("approved", verify, [PartnerWebsiteVerified(partner_id=P, website="example.com")]),
        *[(status, verify, "partner_state") for status in ("pending", "declined", "revoked")],
        ("unknown", verify, "partner_not_found"),
        ("pending", decisions.approve, [APPROVED]),
        ("declined", decisions.approve, [APPROVED]),
        ("approved", decisions.approve, []),
        ("revoked", decisions.approve, "partner_state"),
        ("unknown", decisions.approve, "partner_not_found"),
        ("pending", decisions.decline, [DECLINED]),
        ("declined", decisions.decline, []),
        ("approved", decisions.decline, "partner_state"),
        ("revoked", decisions.decline, "partner_state"),
        ("unknown", decisions.decline, "partner_not_found"),
        ("approved", decisions.revoke, [REVOKED]),
        ("revoked", decisions.revoke, []),
        ("pending", decisions.revoke, "partner_state"),
        ("declined", decisions.revoke, "partner_state"),
        ("unknown", decisions.revoke, "partner_not_found"),
        ("approved", issue, [ISSUED]),
        ("pending", issue, "auth_partner_not_approved"),
        ("declined", issue, "auth_partner_not_approved"),
        ("revoked", issue, "auth_partner_not_approved"),
        ("unknown", issue, "partner_not_found"),
        ("pending", set_return_link, [LINK_RETURNED]),
        ("approved", set_return_link, [LINK_RETURNED]),
        ("declined", set_return_link, [LINK_RETURNED]),
        ("revoked", set_return_link, "partner_state"),
        ("unknown", set_return_link, "partner_not_found"),
    ],
)
def test_what_may_happen_to_a_partner(given, when, then):
    """Each status allows what the contract's table of states allows, and nothing else."""
    partner = fold(HISTORIES[given])
    if isinstance(then, list):
        assert when(partner) == then
    else:
        with pytest.raises(Refusal) as refused:
            when(partner)
        assert refused.value.code == then


@pytest.mark.parametrize(
    ("return_link", "suppress_email", "then"),
    [
        (None, None, None),
        (False, False, None),
        (True, None, (True, False)),
        (None, True, (False, True)),
        (True, True, (True, True)),
    ],
)
def test_settings_change_only_where_they_differ(return_link, suppress_email, then):
    """What is not named stays; what is already so is no event."""
    events = decisions.change_settings(
        fold(HISTORIES["approved"]), return_link=return_link, suppress_email=suppress_email
    )
    expected = []
    if then is not None:
        expected = [
            PartnerSettingsChanged(partner_id=P, return_link=then[0], suppress_email=then[1])
        ]
    assert events == expected


def test_a_website_is_verified_anew_and_withdrawn():
    """Of a partner that was approved with or without one; approving again is refused with it."""
    past = [*HISTORIES["approved"]]
    for website in ("example.com", "example.net", None):
        known = fold(past)
        past += decisions.verify_website(known, website, known.status_version)
        assert decisions.verify_website(fold(past), website, known.status_version) == []
        assert fold(past).verified_website == website
        with pytest.raises(Refusal, match="form_outdated"):
            decisions.verify_website(fold(past), "example.org", known.status_version)
        with pytest.raises(Refusal, match="partner_state"):
            decisions.approve(fold(past), "example.org")
    assert len(past) == len(HISTORIES["approved"]) + 3


def test_the_return_url_is_kept_until_it_is_named():
    """Other changes leave it; an empty one removes it."""
    url = "https://www.example.com/connected"
    partner, past = fold(HISTORIES["approved"]), list(HISTORIES["approved"])
    for given, kept in (({"return_url": url}, url), ({"return_link": True}, url)):
        past += decisions.change_settings(
            partner, **{"return_link": None, "suppress_email": None} | given
        )
        partner = fold(past)
        assert partner.return_url == kept
    as_it_is = {"return_link": None, "suppress_email": None}
    same = decisions.change_settings(partner, **as_it_is, return_url=url)
    (gone,) = decisions.change_settings(partner, **as_it_is, return_url="")
    assert (same, gone.return_url, gone.return_link) == ([], None, True)


def lend(facts, **given):
    """Lend a key in place of another."""
    wanted = {"key_id": "key_3", "replaces": None, "secret_hash": b"hash", "now": NOW}
    return decisions.lend_key(fold(facts), **wanted | {"ends_at": NOW + HOUR} | given)


def test_a_key_is_lent_for_a_while_in_place_of_the_last_one():
    """It is a test key with an end from the start; the one before it ends at once."""
    issued, ends = lend([APPLIED, APPROVED, ISSUED])
    assert (issued.key_id, issued.mode, issued.name) == ("key_3", "test", decisions.REFERENCE_NAME)
    assert ends == ApiKeyRevoked(partner_id=P, key_id="key_3", effective_at=NOW + HOUR)
    lent = [APPLIED, APPROVED, ISSUED, issued, ends]
    again = {"key_id": "key_4", "replaces": "key_3"}
    assert lend(lent, **again)[2:] == [ApiKeyRevoked(partner_id=P, key_id="key_3")]
    assert lend(lent, **again, now=NOW + HOUR)[2:] == []
    keys = fold([*lent, *lend(lent, **again)]).keys
    assert [name for name, key in keys.items() if not key.has_ended(NOW)] == ["key_1", "key_4"]
    with pytest.raises(Refusal, match="auth_partner_not_approved"):
        lend([APPLIED])


def test_changed_settings_are_folded():
    """The next change starts from the last one."""
    changed = PartnerSettingsChanged(partner_id=P, return_link=True, suppress_email=False)
    partner = fold([APPLIED, changed])
    assert (partner.return_link, partner.suppress_email, partner.version) == (True, False, 2)


RUNNING = [APPLIED, APPROVED, ISSUED]


def ending(at):
    """Return the fact that the key ends then."""
    return ApiKeyRevoked(partner_id=P, key_id="key_1", effective_at=at)


@pytest.mark.parametrize(
    ("facts", "then"),
    [
        ([], [KEY_REVOKED]),
        ([KEY_REVOKED], []),
        ([ending(NOW + HOUR)], [KEY_REVOKED]),
        ([ending(NOW + HOUR), KEY_REVOKED], []),
        ([ending(NOW)], []),
        ([ending(NOW - HOUR)], []),
    ],
)
def test_a_key_is_revoked_once(facts, then):
    """Revoking twice changes nothing; an end that lies ahead gives way to an earlier one."""
    partner = fold([*RUNNING, *facts])
    assert decisions.revoke_key(partner, "key_1", now=NOW) == then


def roll(partner, ends_at, key_id="key_1"):
    """Roll a key, the new one being the same every time."""
    return decisions.roll_key(
        partner,
        key_id,
        new_key_id="key_2",
        secret_hashes={"live": b"other", "test": b"of test"},
        now=NOW,
        ends_at=ends_at,
    )


@pytest.mark.parametrize("overlap", [timedelta(), HOUR, 168 * HOUR])
def test_a_rolled_key_has_a_successor_and_an_end(overlap):
    """The new key has the old one's mode; without an overlap the old one ends at once."""
    later = NOW + overlap if overlap else None
    assert roll(fold(RUNNING), NOW + overlap) == [
        ApiKeyIssued(
            partner_id=P, key_id="key_2", mode="live", secret_hash=b"other", hash_version=2
        ),
        ending(later),
    ]


@pytest.mark.parametrize("fact", [KEY_REVOKED, ending(NOW + HOUR), ending(NOW - HOUR)])
def test_a_key_with_an_end_is_not_rolled(fact):
    """An end that is set stays, and no second successor is made."""
    with pytest.raises(Refusal) as refused:
        roll(fold([*RUNNING, fact]), NOW + 2 * HOUR)
    assert refused.value.code == "key_state"


@pytest.mark.parametrize(
    ("facts", "key_id", "code"),
    [
        (RUNNING, "key_9", "key_not_found"),
        ([], "key_1", "partner_not_found"),
        ([*RUNNING, REVOKED], "key_1", "auth_partner_not_approved"),
    ],
)
def test_only_a_key_of_an_approved_partner_is_rolled(facts, key_id, code):
    """No key comes to a partner that may not have one."""
    with pytest.raises(Refusal) as refused:
        roll(fold(facts), NOW + HOUR, key_id)
    assert refused.value.code == code


def test_a_key_is_issued_once():
    """The id of a key that exists is refused: its token was shown already."""
    with pytest.raises(Refusal) as refused:
        issue(fold(RUNNING))
    assert refused.value.code == "key_state"


def many_keys(count):
    """Return the facts that so many keys of a partner were issued."""
    return [
        ApiKeyIssued(partner_id=P, key_id=f"key_{number}", mode="live", secret_hash=b"")
        for number in range(100, 100 + count)
    ]


def test_the_keys_that_work_are_limited():
    """One too many is refused, until one ends; a key can be rolled at once all the same."""
    full = [APPLIED, APPROVED, *many_keys(decisions.KEYS_MAX)]
    ended = ApiKeyRevoked(partner_id=P, key_id="key_100", effective_at=NOW)
    for attempt in (issue, lambda partner: roll(partner, NOW + HOUR, "key_101")):
        with pytest.raises(Refusal) as refused:
            attempt(fold(full))
        assert refused.value.code == "limit_reached"
        assert attempt(fold([*full, ended]))
    assert roll(fold(full), NOW, "key_101")


def test_a_team_is_limited():
    """One member too many is refused."""
    team = [member(f"mem_{number}", f"h{number}") for number in range(100, 200)]
    with pytest.raises(Refusal) as refused:
        add_second(fold([APPLIED, *team]), by_colleague=False)
    assert refused.value.code == "limit_reached"


def test_a_declined_partner_is_told_why():
    """The reason is part of the fact, and is over with an approval."""
    (declined,) = decisions.decline(fold([APPLIED]), "no imprint")
    assert fold([APPLIED, declined]).reason == "no imprint"
    assert fold([APPLIED, declined, APPROVED]).reason is None


def member(member_id, email_hash):
    """Return the fact that somebody joined."""
    return MemberAdded(
        partner_id=P,
        member_id=member_id,
        email=f"{member_id}@example.com",
        email_hash=email_hash,
        person_id=person_id(email_hash),
    )


FIRST, SECOND = member("mem_1", "h1"), member("mem_2", "h2")
GONE = MemberRemoved(partner_id=P, member_id="mem_2")


def add_second(partner, *, by_colleague):
    """Add the second member."""
    return decisions.add_member(
        partner,
        member_id="mem_2",
        email="mem_2@example.com",
        email_hash="h2",
        by_colleague=by_colleague,
    )


def test_a_member_is_added_once():
    """An address that is in the team is not added again; one that left can come back."""
    for before, then in (([], [SECOND]), ([SECOND], []), ([SECOND, GONE], [SECOND])):
        partner = fold([APPLIED, APPROVED, FIRST, *before])
        assert add_second(partner, by_colleague=True) == then


@pytest.mark.parametrize("status", ["pending", "declined", "revoked"])
def test_colleagues_add_nobody_unless_the_partner_is_approved(status):
    """Anybody can apply, and would name any address; the service's team adds whom it likes."""
    partner = fold(HISTORIES[status])
    with pytest.raises(Refusal, match="auth_partner_not_approved"):
        add_second(partner, by_colleague=True)
    assert add_second(partner, by_colleague=False) == [SECOND]


LEFT = MemberRemoved(partner_id=P, member_id="mem_1")
FROM_CONSOLE = PartnerApplied(partner_id=P, email="mem_1@example.com", use="Referrals.")


@pytest.mark.parametrize(
    ("facts", "member_id", "then"),
    [
        ([APPLIED, APPROVED, FIRST, SECOND], "mem_1", [LEFT]),
        ([APPLIED, FIRST, SECOND], "mem_3", "member_not_found"),
        ([APPLIED, APPROVED, FIRST], "mem_1", "last_member"),
        ([APPLIED, FIRST, SECOND, GONE], "mem_1", [LEFT]),
        ([APPLIED, APPROVED, FIRST, REVOKED], "mem_1", [LEFT]),
        ([], "mem_1", "partner_not_found"),
        ([FROM_CONSOLE, FIRST, SECOND], "mem_1", "applicant_stays"),
        ([FROM_CONSOLE, FIRST, SECOND], "mem_2", [GONE]),
        ([FROM_CONSOLE, FIRST, DECLINED], "mem_1", [LEFT]),
        ([FROM_CONSOLE, FIRST, SECOND, APPROVED], "mem_1", [LEFT]),
    ],
)
def test_somebody_stays_in_a_team(facts, member_id, then):
    """Anybody can be removed but an approved partner's last one, and who waits for a review."""
    partner = fold(facts)
    if isinstance(then, list):
        assert decisions.remove_member(partner, member_id) == then
    else:
        with pytest.raises(Refusal) as refused:
            decisions.remove_member(partner, member_id)
        assert refused.value.code == then


def test_a_foreign_fact_is_refused():
    """A stream that holds another noun's event is not read as if nothing were wrong."""

    class Foreign(Event, frozen=True):
        """Of another noun."""

    with pytest.raises(TypeError):
        fold([Foreign()])


def test_no_facts_are_no_partner():
    """An empty stream is nobody."""
    assert fold([]) == Partner()


class Uncopied(dict[str, Any]):
    """A dict that is neither copied nor walked: either takes time with all that it holds."""

    def _refuse(self, *_: object):
        raise AssertionError("copied or walked")

    __iter__ = __or__ = items = values = _refuse


def test_an_event_costs_the_same_whatever_came_before(monkeypatch):
    """Each process folds a partner's events after a change, and copied its keys for each."""
    begun = Partner(keys=Uncopied(), members=Uncopied())
    monkeypatch.setattr(partners, "Partner", lambda: begun)
    rebound = ApiKeyRebound(partner_id=P, key_id="key_1", secret_hash=b"whole", hash_version=2)
    joined = MemberAdded(partner_id=P, member_id="mem_1")
    left = MemberRemoved(partner_id=P, member_id="mem_1")
    found = fold([APPLIED, APPROVED, ISSUED, rebound, KEY_REVOKED, joined, left])

    assert found.keys == {"key_1": Key("live", True, None, b"whole", 2)}
    assert found.members == {}


UNBOUND_KEY = ApiKeyIssued(
    partner_id=P, key_id="key_1", mode="live", secret_hash=b"hash", hash_version=1
)
REBOUND = ApiKeyRebound(
    partner_id=P, key_id="key_1", secret_hash=b"new", hash_version=decisions.HASH_VERSION
)


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ([UNBOUND_KEY], [REBOUND]),
        ([ISSUED], []),
        ([UNBOUND_KEY, REBOUND], []),
        ([UNBOUND_KEY, KEY_REVOKED], []),
        ([UNBOUND_KEY, REVOKED], []),
    ],
    ids=["of an earlier release", "bound", "bound since", "ended", "of a revoked partner"],
)
def test_a_key_is_bound_to_its_whole_token_once(given, then):
    """While it works: nothing is written of one that does not, or that is bound."""
    partner = fold([APPLIED, APPROVED, *given])
    assert decisions.rebind_key(partner, "key_1", secret_hash=b"new", now=NOW) == then
