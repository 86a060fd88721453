from uuid import UUID

import pytest

from service.ledger.encryption import KeyUnknown, MasterKeys, decrypt, encrypt

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
    assert keys[0].fingerprint(b"a") == keys[0].fingerprint(b"a")
    assert keys[0].fingerprint(b"a") != keys[0].fingerprint(b"b")
    assert keys[0].fingerprint(b"a") != keys[1].fingerprint(b"a")
