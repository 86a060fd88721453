import hmac
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from service.ledger.encryption import (
    DataKey,
    DecryptionFailed,
    KeyUnknown,
    MasterKeys,
    decrypt,
    encrypt,
)

ONE, TWO = bytes([1]) * 32, bytes([2]) * 32
KEY_ID = UUID(int=7)


def test_a_box_opens_with_its_key_and_its_place():
    """What was sealed comes back; two boxes of one value have nothing in common."""
    boxes = [encrypt(ONE, b"value", b"place") for _ in range(2)]
    assert [decrypt(ONE, box, b"place") for box in boxes] == [b"value", b"value"]
    assert boxes[0] != boxes[1]


@pytest.mark.parametrize(
    ("key", "place", "flipped"),
    [(TWO, b"place", 0), (ONE, b"other", 0), (ONE, b"place", 1)],
    ids=["another key", "another place", "an altered byte"],
)
def test_a_box_does_not_open_otherwise(key, place, flipped):
    """Another key, another place and an altered box are refused alike."""
    box = encrypt(ONE, b"value", b"place")
    altered = box[:-1] + bytes([box[-1] ^ flipped])
    with pytest.raises(KeyUnknown):
        decrypt(key, altered, place)


def test_an_older_master_key_of_the_ring_still_opens_what_it_wrapped():
    """After a rotation the newest key wraps, and the older one unwraps its own."""
    before = MasterKeys([ONE]).new_data_key(KEY_ID)
    ring = MasterKeys([TWO, ONE])
    opened = ring.open_data_key(KEY_ID, before.wrapped, before.master_key_id)
    assert opened.key == before.key
    assert ring.new_data_key(KEY_ID).master_key_id == MasterKeys([TWO]).newest


def test_a_data_key_does_not_open_without_its_master_key_or_under_another_id():
    """A ring that lacks the master key, and a wrapped key moved to another subject, refuse."""
    key = MasterKeys([ONE]).new_data_key(KEY_ID)
    with pytest.raises(KeyUnknown, match="no master key"):
        MasterKeys([TWO]).open_data_key(KEY_ID, key.wrapped, key.master_key_id)
    with pytest.raises(KeyUnknown, match="does not open"):
        MasterKeys([ONE]).open_data_key(UUID(int=8), key.wrapped, key.master_key_id)


def test_fingerprints_tell_bodies_apart_and_belong_to_one_key():
    """The same body has one fingerprint under a key, and another under another key."""
    keys = [MasterKeys([ONE]).new_data_key(KEY_ID) for _ in range(2)]
    for version in (1, 2):
        first = keys[0].fingerprint(b"a", version)
        assert first == keys[0].fingerprint(b"a", version)
        assert first != keys[0].fingerprint(b"b", version)
        assert first != keys[1].fingerprint(b"a", version)


def test_a_data_key_serves_one_algorithm():
    """Boxes and fingerprints are keyed by HKDF (RFC 5869) of the data key, under labels."""
    key = DataKey(KEY_ID, ONE, b"", "")
    derived = {
        use: HKDFExpand(SHA256(), 32, b"claim-ledger data key: " + use).derive(ONE)
        for use in (b"box", b"fingerprint")
    }
    box = key.encrypt(b"value", b"place")
    assert decrypt(derived[b"box"], box, b"place") == b"value"
    assert key.fingerprint(b"a", 2) == hmac.digest(derived[b"fingerprint"], b"a", "sha256").hex()
    with pytest.raises(DecryptionFailed):
        decrypt(ONE, box, b"place")


def test_what_an_earlier_release_made_still_opens():
    """Boxes of version 1 are under the data key itself; one of a later release is refused."""
    key = DataKey(KEY_ID, ONE, b"", "")
    old = encrypt(ONE, b"value", b"place")
    assert key.decrypt(old, b"place", 1) == b"value"
    for version in (2, 3):
        with pytest.raises(DecryptionFailed):
            key.decrypt(old, b"place", version)


@pytest.mark.parametrize("length", [0, 1, 8, 12, 27])
def test_a_box_that_is_too_short_does_not_open(length):
    """Whatever the database holds is refused as a box that does not open."""
    with pytest.raises(DecryptionFailed):
        decrypt(ONE, bytes(length), b"place")
