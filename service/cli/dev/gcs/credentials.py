"""The local store's credentials: a service account's key, and a token for the JSON API.

Both are generated once and kept in files of mode 0600, which are written atomically.
"""

import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from service.app.storage import TOKEN_FILE
from service.core.files import write_new

KEY_FILE: Final = "service-account.json"
CLIENT_EMAIL: Final = "uploader@local-store.invalid"
"""`.invalid` is reserved (RFC 2606): no account of the cloud can have it."""


@dataclass(frozen=True, slots=True)
class LocalCredentials:
    """`key` is for `service_account.Credentials.from_service_account_info`. repr hides secrets."""

    key_file: Path
    key: Mapping[str, str]
    public_key: rsa.RSAPublicKey
    token: str

    def __repr__(self) -> str:
        return f"LocalCredentials({self.key_file})"

    def public_key_of(self, email: str) -> rsa.RSAPublicKey | None:
        """Return the public key of the only account, or None for another email address."""
        return self.public_key if email == self.key["client_email"] else None


def local_credentials(directory: Path) -> LocalCredentials:
    """Return the credentials kept in a directory, generating what is missing."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    key_file = directory / KEY_FILE
    key: dict[str, str] = json.loads(_kept(key_file, _service_account_key))
    # Ours, of which the public half is needed: to test it for primes would take fifty milliseconds.
    private_key = serialization.load_pem_private_key(
        key["private_key"].encode(), password=None, unsafe_skip_rsa_key_validation=True
    )
    if not isinstance(private_key, rsa.RSAPrivateKey):
        raise TypeError(f"{key_file} holds no RSA key")
    token = _kept(directory / TOKEN_FILE, lambda: secrets.token_urlsafe(32)).strip()
    return LocalCredentials(key_file, key, private_key.public_key(), token)


def _service_account_key() -> str:
    private_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key = {
        "type": "service_account",
        "project_id": "local-store",
        "private_key_id": secrets.token_hex(20),
        "private_key": pem.decode(),
        "client_email": CLIENT_EMAIL,
        "client_id": "0",
        # Nothing listens there: a client that asks for a token with this key fails at once.
        "token_uri": "http://localhost:1/no-token-for-the-local-store",
    }
    return json.dumps(key, indent=2)


def _kept(path: Path, generate: Callable[[], str]) -> str:
    """Return the file's text. Of several that generate it at once, only one can link its own."""
    if not path.exists():
        new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            write_new(new, generate().encode())
            with suppress(FileExistsError):
                path.hardlink_to(new)
        finally:
            new.unlink(missing_ok=True)
    return path.read_text()
