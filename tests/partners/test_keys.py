import hmac
import re
import zlib

import pytest

from service.core.errors import Refusal
from service.core.ids import base62
from service.partners.keys import Token, hash_secret, new_secret, parse_authorization

TOKEN = Token("live", "ptn_1", "key_1", "secret")


def has_checksum(secret: str) -> bool:
    """Return whether a secret ends in the checksum of what precedes it, as scanners check it."""
    return secret[43:] == base62(zlib.crc32(secret[:43].encode()), 6)


def test_a_secret_has_256_bits_and_a_checksum():
    """Secrets are 49 base62 characters, never alike, and end in the checksum of the rest."""
    drawn = {new_secret() for _ in range(200)}
    assert len(drawn) == 200
    assert all(re.fullmatch("[0-9A-Za-z]{49}", secret) for secret in drawn)
    assert all(has_checksum(secret) for secret in drawn)


def test_a_mistyped_secret_fails_its_checksum():
    """A secret scanner can tell a key from chance."""
    secret = new_secret()
    mistyped = ("b" if secret[0] == "a" else "a") + secret[1:]
    assert not has_checksum(mistyped)


def test_the_stored_hash_depends_on_the_pepper():
    """A stolen table of hashes is of no use without the pepper."""
    assert hash_secret(b"pepper", TOKEN) != hash_secret(b"other", TOKEN)
    assert len(hash_secret(b"pepper", TOKEN)) == 32


def test_the_stored_hash_binds_all_of_the_key():
    """Mode, partner, key and secret: in another key's row it is of no use."""
    others = [TOKEN._replace(**{name: "other"}) for name in Token._fields]
    hashes = {hash_secret(b"pepper", token) for token in (TOKEN, *others)}
    assert len(hashes) == 1 + len(Token._fields)


def test_a_key_issued_before_is_hashed_as_it_was_then():
    """Version 1 covers the secret alone, with the pepper as the key."""
    assert hash_secret(b"pepper", TOKEN, 1) == hmac.digest(b"pepper", b"secret", "sha256")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_token_is_taken_apart(scheme):
    """The scheme's case does not matter (RFC 9110, 11.1); everything after it does."""
    token = parse_authorization(f"{scheme} pk_test_ptn_1.key_1.Secret")
    assert token == Token("test", "ptn_1", "key_1", "Secret")


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic pk_live_p.k.s",
        "Bearer p.k.s",
        "Bearer pk_prod_p.k.s",
        "Bearer pk_live_",
        "Bearer pk_live_p.k",
        "Bearer pk_live_p.k.s.t",
        "Bearer pk_live_.k.s",
        "Bearer pk_live_p..s",
        "Bearer pk_live_p.k.",
        "Bearer pk_live_p.k.s x",
        "Bearer pk_live_p.k.s\x7f",
        "Bearer pk_live_p.k.é",
        "Bearer pk_live_p.k." + "s" * 600,
    ],
)
def test_a_malformed_token_is_refused(header):
    """Anything else is `auth_invalid_format`, whatever it is."""
    with pytest.raises(Refusal) as refused:
        parse_authorization(header)
    assert refused.value.code == "auth_invalid_format"


def test_no_header_is_missing():
    """Only the header's absence is `auth_missing`."""
    with pytest.raises(Refusal) as refused:
        parse_authorization(None)
    assert refused.value.code == "auth_missing"
