"""What the XML API refuses, with Google Cloud Storage's own statuses and codes.

`captured`: a real response with this code for this case is known. `assumed`: none is known, and the
code is what we expect of the cloud. Clients match `<Code>` alone, because the cloud words its
messages in two ways.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

CONTENT_TYPE: Final = "application/xml; charset=UTF-8"
ANONYMOUS: Final = "Anonymous caller"
_ALLOWED_CONTROLS: Final = frozenset("\t\n\r")
_MISMATCH: Final = (
    "The request signature we calculated does not match the signature you provided. "
    "Check your Google secret key and signing method."
)
_WRONG_SIZE: Final = (
    "Your proposed upload is {} than the {} object size specified in your Policy Document."
)


class StoreRefusal(NamedTuple):
    """A status, a code, a message, and the further elements of the document in order."""

    status: int
    code: str
    message: str
    fields: Sequence[tuple[str, str]] = ()

    def xml(self) -> bytes:
        """Return the document as the cloud writes it: one line, single-quoted declaration."""
        elements = [("Code", self.code), ("Message", self.message), *self.fields]
        inner = "".join(f"<{name}>{_text(value)}</{name}>" for name, value in elements)
        return f"<?xml version='1.0' encoding='UTF-8'?><Error>{inner}</Error>".encode()


class Refused(Exception):
    """A request is refused; raised to where the response is made."""

    def __init__(self, refusal: StoreRefusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


def not_permitted(caller: str, permission: str) -> StoreRefusal:
    """Refuse what a signer may not do (overwrite, read, delete), or an unsigned request (captured).

    `caller` is the signer's email address, or ANONYMOUS.
    """
    details = f"{caller} does not have {permission} access to the Google Cloud Storage object."
    return _detailed(403, "AccessDenied", "Access denied.", details)


def malformed(parameter: str, details: str) -> StoreRefusal:
    """Refuse a parameter or header of the signature that cannot be used (captured)."""
    return StoreRefusal(
        400,
        "MalformedSecurityHeader",
        "Your request has a malformed header.",
        [("ParameterName", parameter), ("Details", details)],
    )


def expired(moment: str) -> StoreRefusal:
    """Refuse a URL after its lifetime (captured); `moment` is ISO 8601."""
    details = f"Request signature expired at: {moment}"
    return _detailed(400, "ExpiredToken", "The provided token has expired.", details)


def signature_mismatch(string_to_sign: str, canonical_request: str) -> StoreRefusal:
    """Refuse a signature that is not of this request (captured)."""
    return StoreRefusal(
        403,
        "SignatureDoesNotMatch",
        _MISMATCH,
        [("StringToSign", string_to_sign), ("CanonicalRequest", canonical_request)],
    )


def invalid_argument(details: str) -> StoreRefusal:
    """Refuse a header's value (captured)."""
    return _detailed(400, "InvalidArgument", "Invalid argument.", details)


def not_implemented(what: str) -> StoreRefusal:
    """Refuse what the cloud would do and this store does not, instead of ignoring it."""
    message = "A header or query you provided requested a function that is not implemented."
    return _detailed(501, "NotImplemented", message, f"The local store does not know {what}.")


def _detailed(status: int, code: str, message: str, details: str) -> StoreRefusal:
    return StoreRefusal(status, code, message, [("Details", details)])


TOO_LARGE: Final = _detailed(
    400,
    "EntityTooLarge",
    _WRONG_SIZE.format("larger", "maximum"),
    "Content-length exceeds upper bound on range",
)  # captured
TOO_SMALL: Final = _detailed(
    400,
    "EntityTooSmall",
    _WRONG_SIZE.format("smaller", "minimum"),
    "Content-length smaller than lower bound on range",
)  # assumed
TOO_EARLY: Final = StoreRefusal(
    403,
    "RequestTimeTooSkewed",
    "The difference between the request time and the server's time is too large.",
)  # assumed
UNKNOWN_SIGNER: Final = StoreRefusal(
    403, "InvalidSecurity", "The provided security credentials are not valid."
)  # assumed
BAD_DIGEST: Final = StoreRefusal(
    400, "BadDigest", "The Content-MD5 you specified did not match what we received."
)  # assumed
INCOMPLETE_BODY: Final = StoreRefusal(
    400,
    "IncompleteBody",
    "You did not provide the number of bytes specified by the Content-Length HTTP header.",
)  # assumed
INVALID_URI: Final = StoreRefusal(400, "InvalidURI", "Couldn't parse the specified URI.")  # assumed
METHOD_NOT_ALLOWED: Final = StoreRefusal(
    405, "MethodNotAllowed", "The specified method is not allowed against this resource."
)  # assumed
NO_SUCH_BUCKET: Final = StoreRefusal(
    404, "NoSuchBucket", "The specified bucket does not exist."
)  # assumed


def _text(value: str) -> str:
    # XML allows no other control characters, not even escaped ones.
    return escape("".join(c if c >= " " or c in _ALLOWED_CONTROLS else "\ufffd" for c in value))
