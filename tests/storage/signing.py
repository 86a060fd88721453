"""Signed requests made by hand, so that any part of them can be wrong."""

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from service.cli.dev.gcs.canonical import canonical_request, string_to_sign
from service.cli.dev.gcs.verifier import Request

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
PDF = ("content-type", "application/pdf")
RANGE = ("x-goog-content-length-range", "0,1000")
HOST = ("host", "127.0.0.1:9000")


def signed(
    private_key: RSAPrivateKey,
    email: str,
    *,
    method: str = "PUT",
    path: str = "/bucket/object.pdf",
    headers: Sequence[tuple[str, str]] = (PDF, HOST, RANGE),
    signed_names: Sequence[str] | None = None,
    parameters: dict[str, str] | None = None,
    at: datetime = NOW,
) -> Request:
    """Return a request with a valid signature over whatever was requested."""
    names = list(signed_names or sorted({name for name, _ in headers}))
    given = {
        "X-Goog-Algorithm": "GOOG4-RSA-SHA256",
        "X-Goog-Credential": f"{email}/{at:%Y%m%d}/auto/storage/goog4_request",
        "X-Goog-Date": f"{at:%Y%m%dT%H%M%SZ}",
        "X-Goog-Expires": "900",
        "X-Goog-SignedHeaders": ";".join(names),
    } | (parameters or {})
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items())
    host = dict(headers).get("host", "")
    canonical = canonical_request(method, path, query, headers, names, host)
    scope = given["X-Goog-Credential"].partition("/")[2]
    text = string_to_sign(given["X-Goog-Algorithm"], given["X-Goog-Date"], scope, canonical)
    signature = private_key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()).hex()
    return Request(
        method=method,
        raw_path=path,
        raw_query=f"{query}&X-Goog-Signature={signature}",
        headers=headers,
    )


def private_key_of(key: dict[str, str]) -> RSAPrivateKey:
    """Return the private key in a service account's key file."""
    loaded = serialization.load_pem_private_key(key["private_key"].encode(), password=None)
    assert isinstance(loaded, RSAPrivateKey)
    return loaded
