import pytest

from service.errors import Refusal
from service.ledger.events import Event
from service.partners import decisions
from service.partners.events import (
    ApiKeyIssued,
    ApiKeyRevoked,
    Partner,
    PartnerApplied,
    PartnerApproved,
    PartnerDeclined,
    PartnerRevoked,
    PartnerSettingsChanged,
    fold,
)

P = "ptn_1"
APPLIED = PartnerApplied(partner_id=P, name="A partner", email="a@example.com")
APPROVED = PartnerApproved(partner_id=P)
DECLINED = PartnerDeclined(partner_id=P)
REVOKED = PartnerRevoked(partner_id=P)
ISSUED = ApiKeyIssued(partner_id=P, key_id="key_1", mode="live", secret_hash=b"hash")
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
    return decisions.issue_key(partner, key_id="key_1", mode="live", secret_hash=b"hash")


@pytest.mark.parametrize(
    ("given", "when", "then"),
    [
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


def test_changed_settings_are_folded():
    """The next change starts from the last one."""
    changed = PartnerSettingsChanged(partner_id=P, return_link=True, suppress_email=False)
    partner = fold([APPLIED, changed])
    assert (partner.return_link, partner.suppress_email, partner.version) == (True, False, 2)


def test_a_key_is_revoked_once():
    """Revoking a key twice changes nothing; an unknown one is refused."""
    partner = fold([APPLIED, APPROVED, ISSUED])
    assert decisions.revoke_key(partner, "key_1") == [KEY_REVOKED]
    assert decisions.revoke_key(fold([APPLIED, APPROVED, ISSUED, KEY_REVOKED]), "key_1") == []
    with pytest.raises(Refusal) as refused:
        decisions.revoke_key(partner, "key_2")
    assert refused.value.code == "key_not_found"


def test_a_foreign_fact_is_refused():
    """A stream that holds another noun's event is not read as if nothing were wrong."""

    class Foreign(Event, frozen=True):
        """Of another noun."""

    with pytest.raises(TypeError):
        fold([Foreign()])


def test_no_facts_are_no_partner():
    """An empty stream is nobody."""
    assert fold([]) == Partner()
