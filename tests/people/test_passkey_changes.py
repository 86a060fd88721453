"""How often somebody adds a passkey, and what a look at their passkeys costs."""

import pytest

from service.core.errors import Refusal
from service.facts import changes
from service.ledger.events import Cause
from tests.ledger.decoded import decoded
from tests.world import STAFF

PERSON = "per_passkeys"
OWN = Cause(f"customer:{PERSON}", "req_1")


async def test_passkeys_are_added_so_often_in_a_day(in_memory, monkeypatch):
    """Removing one is always possible; and no look costs what those before it did."""
    passkeys = in_memory.service.passkeys
    monkeypatch.setattr(changes, "CHANGES_MAX", 20)
    for number in range(20):
        await passkeys.add(PERSON, b"%d" % number, b"key", OWN)
        with decoded() as topics:
            (held,) = await passkeys.of(PERSON)
        assert len(topics) == 1
        if number < 19:
            await passkeys.remove(PERSON, held.passkey_id, OWN)
    with pytest.raises(Refusal, match="rate_limited"):
        await passkeys.add(PERSON, b"another", b"key", OWN)
    await passkeys.add(PERSON, b"19", b"key", OWN)  # is there, and changes nothing
    await passkeys.remove(PERSON, held.passkey_id, OWN)
    assert await passkeys.of(PERSON) == []
    await passkeys.add(PERSON, b"another", b"key", STAFF)
