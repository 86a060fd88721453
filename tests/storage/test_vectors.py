import hashlib
from datetime import timedelta

import pytest

from service.cli.dev.gcs.refusals import Refused
from service.cli.dev.gcs.verifier import verify
from tests.storage.vectors import NEEDS_FILE, Case, cases, public_key_of

CASES = [pytest.param(case, id=case.description) for case in cases()]


@NEEDS_FILE
def test_all_cases_are_present():
    """29 official cases and 5 of this project's URL shape."""
    assert len(cases()) == 34


@NEEDS_FILE
@pytest.mark.parametrize("case", CASES)
def test_official_signatures_verify(case: Case):
    """Every case of the vectors is accepted at the moment it was signed."""
    assert verify(case.request, case.signed_at, public_key_of)


@NEEDS_FILE
@pytest.mark.parametrize("case", CASES)
def test_another_method_does_not_verify(case: Case):
    """A URL is for one method; the refusal shows the expected string to sign."""
    altered = case.request._replace(method="PATCH")
    with pytest.raises(Refused) as refused:
        verify(altered, case.signed_at, public_key_of)
    answer = refused.value.refusal
    assert (answer.status, answer.code) == (403, "SignatureDoesNotMatch")
    shown = dict(answer.fields)["CanonicalRequest"]
    assert _without_host(shown) == _without_host(_expected(case))


@NEEDS_FILE
@pytest.mark.parametrize("case", CASES)
def test_expired_cases_are_refused(case: Case):
    """A second after its lifetime every case is 400 ExpiredToken."""
    late = case.signed_at + timedelta(days=7, seconds=1)
    with pytest.raises(Refused) as refused:
        verify(case.request, late, public_key_of)
    assert (refused.value.refusal.status, refused.value.refusal.code) == (400, "ExpiredToken")


def _without_host(canonical: str) -> list[str]:
    """Return the lines that do not depend on the method, nor on a port that signers may strip."""
    return [line for line in canonical.split("\n")[1:] if not line.startswith("host:")]


def _expected(case: Case) -> str:
    digest = hashlib.sha256(case.canonical_request.encode()).hexdigest()
    if not case.string_to_sign or case.string_to_sign.endswith(digest):
        return case.canonical_request
    # One official case shows a path with the bucket, and is signed (and hashed) without it.
    assert case.description == "Universe domain with virtual hosted style"
    return case.canonical_request.replace("\n/test-bucket/", "\n/", 1)
