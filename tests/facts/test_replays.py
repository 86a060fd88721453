from typing import Annotated, Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
from msgspec import NODEFAULT, UNSET, Meta, UnsetType, defstruct

from service.claims.wire import ClaimRequest, Defendant, Invoice
from service.facts import replays
from service.facts.claims import ClaimCreated, ClaimReplayMismatched
from service.facts.onboardings import OnboardingReplayMismatched, OnboardingStarted
from service.http.decoding import decode
from service.ledger.encryption import DataKey
from service.onboardings.wire import OnboardingAddress, OnboardingRequest
from tests.facts.request_fields import faults, next_version, stored, to_store

NOBODYS = "x_named_by_no_release"
"""The name of a later field: a release that adds one chooses another."""
KEY = DataKey(UUID(int=1), b"k" * 32, b"", "")
CLAIM: dict[str, Any] = {
    "entity_id": "ent_1",
    "partner_claim_id": "case",
    "defendant": {"name": "Zoë", "address": {"postcode": "AB1 2CD", "second_line": None}},
    "invoices": [{"due_date": "2026-01-31", "total_amount_for_invoice": "12.00"}, {}],
    "contract_date": "2025-11-03T09:00:00.000Z",
    "message": "",
    "is_written": False,
    "document_refs": [{"storage_path": "a", "mime_type": "b", "filename": "c"}],
}
ONBOARDING: dict[str, Any] = {
    "partner_user_id": "user-17",
    "company_name": "Example Trading Ltd",
    "user_email": "owner@example.com",
    "address": {"first_line": "1 Example Street", "second_line": None},
}


def with_field(kind, name, since, **nested):
    """Return a copy of a wire type with one more optional field and with types replaced.

    The field comes first, so that the fingerprint of what follows does not depend on its place.
    """
    extra = {} if since is None else {"extra": {"since": since}}
    added = (name, Annotated[str | UnsetType, Meta(**extra)], UNSET)
    fields = [
        (field.name, nested.get(field.name, field.type))
        + (() if field.default is NODEFAULT else (field.default,))
        for field in msgspec.structs.fields(kind)
    ]
    return defstruct(kind.__name__, [added, *fields], kw_only=True, frozen=True)


def later_claim(since):
    """Return a future `ClaimRequest`, with a new field at the top and in nested objects."""
    defendant = with_field(Defendant, NOBODYS, since)
    invoice = with_field(Invoice, NOBODYS, since)
    return with_field(ClaimRequest, NOBODYS, since, defendant=defendant, invoices=list[invoice])


def later_onboarding(since):
    """Return a future `OnboardingRequest`, with a new field at the top and in the address."""
    address = with_field(OnboardingAddress, NOBODYS, since) | UnsetType
    return with_field(OnboardingRequest, NOBODYS, since, address=address)


def merged(body, added):
    """Return a body with fields added, nested ones included; each object of a list gets them."""
    if isinstance(body, list):
        return [merged(item, added) for item in body]
    if not isinstance(added, dict):
        return added
    nested = {name: merged(body[name], more) for name, more in added.items() if name in body}
    return body | added | nested


def request_of(body, kind):
    """Return a body decoded as the API decodes it."""
    return decode(msgspec.json.encode(body), "application/json", kind)


def made_by(request, kind):
    """Return the creation event that a request makes."""
    version = replays.request_version(type(request))
    print_ = replays.fingerprint(KEY, request, version)
    shared = {"partner_id": "ptn_1", "entity_id": "ent_1", "fingerprint": print_}
    shared["fingerprint_version"] = version
    if kind is ClaimCreated:
        return ClaimCreated(claim_id="clm_1", partner_claim_id="case", **shared)
    return OnboardingStarted(onboarding_id="onb_1", partner_user_id="user-17", **shared)


class Noun(NamedTuple):
    """What both idempotent creations need: today's request, a future one, and their events."""

    kind: Any
    later: Any
    body: dict[str, Any]
    additions: list[dict[str, Any]]
    creation: Any
    mismatched: Any

    @property
    def today(self) -> int:
        """The version that its request has by now."""
        return replays.request_version(self.kind)

    @property
    def future(self) -> Any:
        """The request of the release that adds the next field."""
        return self.later(self.today + 1)


NOUNS = {
    "claim": Noun(
        ClaimRequest,
        later_claim,
        CLAIM,
        [
            {NOBODYS: "one"},
            {"defendant": {NOBODYS: "one"}},
            {"invoices": {NOBODYS: "one"}},
        ],
        ClaimCreated,
        ClaimReplayMismatched,
    ),
    "onboarding": Noun(
        OnboardingRequest,
        later_onboarding,
        ONBOARDING,
        [{NOBODYS: "one"}, {"address": {NOBODYS: "one"}}],
        OnboardingStarted,
        OnboardingReplayMismatched,
    ),
}
each_noun = pytest.mark.parametrize("noun", NOUNS.values(), ids=NOUNS)


@each_noun
def test_the_fields_of_a_version_stay(noun):
    """Adding to one that is stored, removing or moving a field would change fingerprints."""
    versions = stored(noun.kind)
    assert not faults(noun.kind, versions)
    assert not to_store(noun.kind, versions), (
        f"the new version of {noun.kind.__name__} is not stored: run `just generate`"
    )
    assert set(versions) >= {1}


@each_noun
def test_what_to_give_a_new_field_is_said(noun):
    """The next version, whether none is given or one that has fingerprints, at the top or nested.

    A field that is copied with its version would be part of what was fingerprinted without it.
    """
    versions, new = stored(noun.kind), next_version(stored(noun.kind))
    for wrong in (None, *versions, new + 1):
        said = faults(noun.later(wrong), versions)
        assert said == [f'`{NOBODYS}` is new: give it extra={{"since": {new}}}'] * len(
            noun.additions
        )
    assert faults(noun.later(new), versions) == []
    assert list(to_store(noun.later(new), versions)) == [new]
    once_stored = versions | to_store(noun.later(new), versions)
    assert faults(noun.later(new), once_stored) == []
    assert len(faults(noun.kind, once_stored)) == 1  # it was removed


@pytest.mark.parametrize("kind", [ClaimRequest, OnboardingRequest])
def test_a_later_field_is_optional(kind):
    """Bodies that were valid before a field was added stay valid."""
    for struct in replays.shapes(kind):
        required = {field.name for field in msgspec.structs.fields(struct) if field.required}
        versions = replays.fields_since(struct)
        later = {name for name, since in versions.items() if since > 1}
        assert required & later == set()
        assert replays.FINGERPRINT_VERSION not in versions.values()  # it has no fields of its own


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (
            ClaimRequest,
            CLAIM,
            [
                "a9c9a1097b84825987541bd819a5f6b0db18134ddc50647ade94761839a90197",
                "9ccd2bf737dc886ee57f72e0f2e1f7aec990b61806ec0ebb64c41f261d283b70",
            ],
        ),
        (
            OnboardingRequest,
            ONBOARDING,
            [
                "a0f2efe78cd3bf625f098d6cabad4adbe087f637eae5a15fc383d66c31577b17",
                "49610b9434012e7135beaf8299d76f283aafbd5a6bfbe560d10c2b33de7e1f26",
            ],
        ),
    ],
)
def test_fingerprints_are_pinned(kind, body, expected):
    """Each version of a body has the fingerprint that ledgers have stored since that version."""
    request = request_of(body, kind)
    assert [replays.fingerprint(KEY, request, version) for version in (1, 2)] == expected


@each_noun
def test_a_creation_of_version_1_is_compared_by_it(noun):
    """Fingerprints that were stored before they had a key of their own still tell bodies apart."""
    request = request_of(noun.body, noun.kind)
    older = msgspec.structs.replace(
        made_by(request, noun.creation),
        fingerprint=replays.fingerprint(KEY, request, 1),
        fingerprint_version=1,
    )
    other = merged(
        noun.body, {"company_name": "B"} if "company_name" in noun.body else {"message": "B"}
    )
    assert replays.compare("live", older, request, KEY).matches
    assert not replays.compare("live", older, request_of(other, noun.kind), KEY).matches


@each_noun
def test_a_stored_body_matches_after_a_field_was_added(noun):
    """Replays match whether or not partners already sent the then-unknown field."""
    bodies = [noun.body, *(merged(noun.body, added) for added in noun.additions)]
    for first in bodies:
        made = made_by(request_of(first, noun.kind), noun.creation)
        assert made.fingerprint_version == noun.today
        for again in bodies:
            compared = replays.compare("live", made, request_of(again, noun.future), KEY)
            assert compared == replays.ReplayComparison(True)


@each_noun
def test_a_known_field_is_compared_after_a_field_was_added(noun):
    """Only fields missing in a version are ignored: another name is recorded once."""
    made = made_by(request_of(noun.body, noun.kind), noun.creation)
    other = merged(
        noun.body, {"company_name": "B"} if "company_name" in noun.body else {"message": "B"}
    )
    found = [
        replays.compare("live", made, request_of(merged(other, added), noun.future), KEY)
        for added in ({}, *noun.additions)
    ]
    assert found[0] == replays.compare("live", made, request_of(other, noun.kind), KEY)
    assert [compared.matches for compared in found] == [False] * len(found)
    assert len({compared.mismatch for compared in found}) == 1
    assert isinstance(found[0].mismatch.event, noun.mismatched)


@each_noun
def test_a_new_field_is_compared_for_new_creations(noun):
    """The fingerprint of a creation with the new shape covers the field."""
    wide = noun.future
    for added in noun.additions:
        made = made_by(request_of(merged(noun.body, added), wide), noun.creation)
        assert made.fingerprint_version == noun.today + 1
        same = replays.compare("live", made, request_of(merged(noun.body, added), wide), KEY)
        without = replays.compare("live", made, request_of(noun.body, wide), KEY)
        (name, value), *_ = added.items()
        another = {name: dict.fromkeys(value, "other") if isinstance(value, dict) else "other"}
        differing = replays.compare("live", made, request_of(merged(noun.body, another), wide), KEY)
        assert (same.matches, without.matches, differing.matches) == (True, False, False)


@each_noun
def test_nothing_is_compared_with_a_later_release(noun):
    """After a roll-back the fingerprint may cover fields unknown here: no verdict."""
    made = made_by(request_of(noun.body, noun.future), noun.creation)
    compared = replays.compare("live", made, request_of(noun.body, noun.kind), KEY)
    assert compared == replays.ReplayComparison(None)


def test_mismatches_belong_to_a_mode_and_a_body():
    """Each pair has its own stream."""
    made = made_by(request_of(CLAIM, ClaimRequest), ClaimCreated)
    streams = {
        replays.compare(
            mode, made, request_of(CLAIM | {"message": text}, ClaimRequest), KEY
        ).mismatch.stream_id
        for mode in ("live", "test")
        for text in ("a", "b", "a")
    }
    assert len(streams) == 4
