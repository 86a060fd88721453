"""The MACs that bind events to the service, as RFC 2104 has them."""

import hmac

from service.ledger.event_macs import keyed_hash
from tests.tables import every_row

KEYS = {"an installation's": b"k" * 32, "as long as a block": b"k" * 64, "longer": b"k" * 65}


def test_a_macs_hash_is_that_of_every_other_library():
    """Under a key of any length, and as often as it is asked for."""
    with every_row() as row:
        for name, key in KEYS.items():
            with row(name):
                made = keyed_hash(key)
                for message in (b"a digest", b"", b"x" * 100):
                    assert made(message) == hmac.digest(key, message, "sha256")
