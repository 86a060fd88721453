"""The official signing cases, and cases of this project's URL shape."""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from service.cli.dev.gcs.verifier import Request

FILE = Path(__file__).parents[2].parent / "shared" / "vectors" / "gcs-v4-signatures.json"
NEEDS_FILE = pytest.mark.skipif(not FILE.exists(), reason="the signing cases are not at hand")


@dataclass(frozen=True)
class Case:
    """One case: the request that its signed URL makes, and when it was signed."""

    description: str
    request: Request
    signed_at: datetime
    canonical_request: str
    string_to_sign: str


def cases() -> list[Case]:
    """Return all cases, or none if the file is missing."""
    if not FILE.exists():
        return []
    content = json.loads(FILE.read_text())
    return [_case(one) for one in [*content["signingV4Tests"], *content["uploadUrlTests"]]]


def public_key_of(email: str) -> RSAPublicKey | None:
    """Return the key of the account that signed all cases."""
    content = json.loads(FILE.read_text())
    key = load_pem_public_key(content["public_key_pem"].encode())
    assert isinstance(key, RSAPublicKey)
    return key if email == content["credential_email"] else None


def _case(one: dict) -> Case:
    url = urlsplit(one["expectedUrl"])
    headers = [(name.lower(), value) for name, value in one.get("headers", {}).items()]
    return Case(
        description=one["description"],
        request=Request(
            method=one["method"],
            raw_path=url.path,
            raw_query=url.query,
            headers=[("host", url.netloc), *headers],
        ),
        signed_at=datetime.fromisoformat(one["timestamp"]),
        canonical_request=one["expectedCanonicalRequest"],
        string_to_sign=one.get("expectedStringToSign", ""),
    )
