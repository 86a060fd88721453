"""The demonstration's data is written on a machine of any speed."""

import pytest

from service.cli.dev import serving
from service.cli.dev.state import DevState
from service.ledger.limits import DEADLINE_SECONDS


class Made(Exception):
    """A service was made with these parts."""


async def test_seeding_may_take_longer_than_a_request(monkeypatch, tmp_path):
    """A first start on a busy machine is late, and does not fail."""

    def service(_settings, **parts):
        raise Made(parts)

    monkeypatch.setattr(serving, "Service", service)
    state = DevState(tmp_path, "", "postgresql://127.0.0.1/none", "http://127.0.0.1")
    with pytest.raises(Made) as made:
        await serving._seeded(state, None)  # noqa: SLF001 - without a server
    (parts,) = made.value.args
    assert parts.get("deadline_seconds", DEADLINE_SECONDS) >= 30
