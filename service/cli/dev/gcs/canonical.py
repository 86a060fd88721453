"""The canonical form of a signed request (V4): what the signer hashed, from what was received.

https://cloud.google.com/storage/docs/authentication/canonical-requests
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import parse_qsl, quote, unquote_to_bytes

Header = tuple[str, str]
"""A lower-case name and a value as received."""

SIGNATURE: Final = "X-Goog-Signature"
_WHITE: Final = re.compile(r"[ \t\r\n]+")


def query_pairs(raw_query: str) -> list[tuple[str, str]]:
    """Return the parameters, decoded; a `+` is a plus. Undecodable bytes become U+FFFD."""
    return parse_qsl(raw_query.replace("+", "%2B"), keep_blank_values=True)


def canonical_path(raw_path: str) -> str:
    """Return the path encoded as signers do, so that `%2F` and `/` are the same object."""
    return quote(unquote_to_bytes(raw_path), safe="/~")


def canonical_query(raw_query: str) -> str:
    """Return the parameters without the signature, re-encoded and sorted."""
    pairs = (pair.partition("=") for pair in raw_query.split("&") if pair)
    encoded = sorted((_encoded(name), _encoded(value)) for name, _, value in pairs)
    return "&".join(f"{name}={value}" for name, value in encoded if name != SIGNATURE)


def values_of(headers: Iterable[Header], name: str) -> list[str]:
    """Return a header's values in the order received."""
    return [value for other, value in headers if other == name]


def canonical_request(
    method: str,
    raw_path: str,
    raw_query: str,
    headers: Sequence[Header],
    signed_names: Sequence[str],
    host: str,
) -> str:
    """Return the text whose SHA-256 is signed; `host` stands for the Host header."""
    lines: list[str] = []
    for name in signed_names:
        values = [host] if name == "host" else values_of(headers, name)
        lines.append(f"{name}:{','.join(_collapsed(value) for value in values)}\n")
    payloads = values_of(headers, "x-goog-content-sha256")
    signed_payload = "x-goog-content-sha256" in signed_names and payloads
    return "\n".join(
        [
            method,
            canonical_path(raw_path),
            canonical_query(raw_query),
            "".join(lines),
            ";".join(signed_names),
            payloads[0] if signed_payload else "UNSIGNED-PAYLOAD",
        ]
    )


def string_to_sign(algorithm: str, date: str, scope: str, canonical: str) -> str:
    """Return the text that the signature is over."""
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return f"{algorithm}\n{date}\n{scope}\n{digest}"


def _collapsed(value: str) -> str:
    return _WHITE.sub(" ", value).strip()


def _encoded(text: str) -> str:
    return quote(unquote_to_bytes(text), safe="-_.~")
