from datetime import timedelta

import pytest

from service.cli.dev.gcs.credentials import CLIENT_EMAIL, local_credentials
from service.cli.dev.gcs.refusals import Refused
from service.cli.dev.gcs.verifier import Request, verify
from tests.storage.signing import HOST, NOW, PDF, RANGE, private_key_of, signed


@pytest.fixture(scope="module")
def credentials(tmp_path_factory):
    """Return a local account's credentials."""
    return local_credentials(tmp_path_factory.mktemp("credentials"))


@pytest.fixture
def sign(credentials):
    """Return a signer of requests whose parts a test chooses."""
    key, email = private_key_of(credentials.key), credentials.key["client_email"]
    return lambda **parts: signed(key, email, **parts)


@pytest.fixture
def outcome(credentials):
    """Return the verification's result: `ok`, or status, code and the named parameter."""

    def outcome(request: Request, now=NOW):
        try:
            verify(request, now, credentials.public_key_of)
        except Refused as error:
            status, code, _, fields = error.refusal
            return status, code, dict(fields).get("ParameterName")
        return "ok"

    return outcome


def test_a_signed_request_verifies(sign, outcome):
    """What was signed is accepted."""
    assert outcome(sign()) == "ok"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/object.pdf", "/object2.pdf"),
        ("/bucket/", "/bucket2/"),
        ("/object.pdf", "/object.pdf/"),
        ("/object.pdf", "/./object.pdf"),
    ],
)
def test_an_altered_path_does_not_verify(sign, outcome, old, new):
    """Another object, bucket or path style is another request."""
    request = sign()
    altered = request._replace(raw_path=request.raw_path.replace(old, new))
    assert outcome(altered) == (403, "SignatureDoesNotMatch", None)


def test_encodings_of_one_path_are_one_object(sign, outcome):
    """`%2F` and `/`, `%6f` and `o` are the same in names and signatures."""
    request = sign()._replace(raw_path="/bucket%2F%6fbject.pdf")
    assert outcome(request) == "ok"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("X-Goog-Expires=900", "X-Goog-Expires=901", (403, "SignatureDoesNotMatch", None)),
        ("T120000Z", "T120001Z", (403, "SignatureDoesNotMatch", None)),
        ("Signature=", "Signature=00", (403, "SignatureDoesNotMatch", None)),
        ("&X-Goog-Signature", "&extra=1&X-Goog-Signature", (403, "SignatureDoesNotMatch", None)),
        ("&X-Goog-Signature=", "&removed=", (403, "AccessDenied", None)),
        (
            "X-Goog-Expires=900",
            "X-Goog-Expires=900&X-Goog-Expires=900",
            (400, "MalformedSecurityHeader", "x-goog-expires"),
        ),
        (
            "X-Goog-Expires=900",
            "X-Goog-Expires=900&x-goog-expires=9000",
            (400, "MalformedSecurityHeader", "x-goog-expires"),
        ),
        ("X-Goog-Date=", "removed=", (400, "MalformedSecurityHeader", "x-goog-date")),
        ("Signature=", "Signature=zz", (400, "MalformedSecurityHeader", "x-goog-signature")),
        ("Signature=", "Signature=0", (400, "MalformedSecurityHeader", "x-goog-signature")),
    ],
)
def test_an_altered_query_is_refused(sign, outcome, old, new, expected):
    """No parameter can be changed, repeated or left out."""
    request = sign()
    assert old in request.raw_query
    assert outcome(request._replace(raw_query=request.raw_query.replace(old, new, 1))) == expected


def test_the_order_of_parameters_means_nothing(sign, outcome):
    """Clients may sort the query: the signature covers the sorted one."""
    request = sign()
    shuffled = "&".join(reversed(request.raw_query.split("&")))
    assert outcome(request._replace(raw_query=shuffled)) == "ok"


def test_a_request_without_a_query_is_anonymous(outcome):
    """Without a signature nobody can create an object."""
    bare = Request(method="PUT", raw_path="/bucket/object.pdf", raw_query="", headers=[HOST])
    assert outcome(bare) == (403, "AccessDenied", None)


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"X-Goog-Expires": "604801"}, "x-goog-expires"),
        ({"X-Goog-Expires": "0"}, "x-goog-expires"),
        ({"X-Goog-Expires": "-5"}, "x-goog-expires"),
        ({"X-Goog-Expires": "9\u06600"}, "x-goog-expires"),
        ({"X-Goog-Date": "20261304T120000Z"}, "x-goog-date"),
        ({"X-Goog-Date": "2026-05-04T12:00:00Z"}, "x-goog-date"),
        ({"X-Goog-Algorithm": "GOOG4-HMAC-SHA256"}, "x-goog-algorithm"),
        ({"X-Goog-Algorithm": "none"}, "x-goog-algorithm"),
        ({"X-Goog-Credential": "nobody"}, "x-goog-credential"),
        (
            {"X-Goog-Credential": f"{CLIENT_EMAIL}/20260503/auto/storage/goog4_request"},
            "x-goog-credential",
        ),
        ({"X-Goog-SignedHeaders": "x-goog-content-length-range;host"}, "x-goog-signedheaders"),
        ({"X-Goog-SignedHeaders": "content-type"}, "x-goog-signedheaders"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(sign, outcome, parameters, name):
    """A valid signature does not help what the cloud would refuse."""
    request = sign(parameters=parameters)
    assert outcome(request) == (400, "MalformedSecurityHeader", name)


def test_seven_days_are_allowed(sign, outcome):
    """The longest lifetime is seven days to the second."""
    request = sign(parameters={"X-Goog-Expires": "604800"})
    assert outcome(request, NOW + timedelta(days=7)) == "ok"
    assert outcome(request, NOW + timedelta(days=7, seconds=1)) == (400, "ExpiredToken", None)


def test_expiry_is_checked_before_the_signature(sign, outcome):
    """An expired URL with a bad signature is expired, as in the cloud."""
    request = sign()
    broken = request._replace(raw_query=request.raw_query + "00")
    assert outcome(broken, NOW + timedelta(minutes=16)) == (400, "ExpiredToken", None)


def test_a_url_of_the_future_is_refused(sign, outcome):
    """A signer's clock may be at most 15 minutes ahead."""
    assert outcome(sign(), NOW - timedelta(minutes=15)) == "ok"
    assert outcome(sign(), NOW - timedelta(minutes=16)) == (403, "RequestTimeTooSkewed", None)


def test_an_unknown_signer_is_refused(credentials, outcome):
    """Only the store's own account may sign, whatever key was used."""
    request = signed(private_key_of(credentials.key), "someone@example.com")
    assert outcome(request) == (403, "InvalidSecurity", None)


def test_another_key_is_refused(tmp_path, credentials, outcome):
    """The account's name with another key does not verify."""
    other = local_credentials(tmp_path)
    request = signed(private_key_of(other.key), credentials.key["client_email"])
    assert outcome(request) == (403, "SignatureDoesNotMatch", None)


@pytest.mark.parametrize("missing", ["content-type", "x-goog-content-length-range", "host"])
def test_a_signed_header_may_not_be_missing(sign, outcome, missing):
    """The refusal names the header."""
    request = sign()
    headers = [header for header in request.headers if header[0] != missing]
    expected = (400, "MalformedSecurityHeader", missing)
    assert outcome(request._replace(headers=headers)) == expected


@pytest.mark.parametrize(
    "headers",
    [
        [("content-type", "image/png"), HOST, RANGE],
        [PDF, HOST, ("x-goog-content-length-range", "0,1001")],
        [PDF, PDF, HOST, RANGE],
        [PDF, ("host", "example.com"), RANGE],
        [PDF, HOST, ("host", "example.com"), RANGE],
    ],
)
def test_a_signed_header_may_not_be_altered(sign, outcome, headers):
    """A changed or a repeated value of a signed header does not verify."""
    assert outcome(sign()._replace(headers=headers)) == (403, "SignatureDoesNotMatch", None)


@pytest.mark.parametrize("header", ["x-goog-acl", "x-goog-meta-note", "x-goog-if-generation-match"])
def test_headers_of_the_cloud_must_be_signed(sign, outcome, header):
    """The URL's holder cannot add headers that change the upload."""
    request = sign()
    altered = request._replace(headers=[*request.headers, (header, "1")])
    assert outcome(altered) == (400, "MalformedSecurityHeader", header)


def test_other_headers_need_no_signature(sign, outcome):
    """Clients add headers of their own."""
    request = sign()
    headers = [*request.headers, ("user-agent", "curl/8"), ("accept", "*/*")]
    assert outcome(request._replace(headers=headers)) == "ok"


def test_the_refusal_shows_what_was_signed(sign, credentials):
    """Both texts are there for debugging a signature."""
    request = sign()._replace(raw_path="/bucket/<other>&.pdf")
    with pytest.raises(Refused) as refused:
        verify(request, NOW, credentials.public_key_of)
    answer = refused.value.refusal
    fields = dict(answer.fields)
    canonical = fields["CanonicalRequest"].split("\n")
    assert canonical[:2] == ["PUT", "/bucket/%3Cother%3E%26.pdf"]
    assert canonical[-1] == "UNSIGNED-PAYLOAD"
    assert fields["StringToSign"].startswith("GOOG4-RSA-SHA256\n20260504T120000Z\n20260504/auto/")
    assert b"&amp;X-Goog-Date" in answer.xml()
