"""Redis fails over, by Sentinel, under the load of fifty clients."""

import sys
import time

import pytest

from service.cli.dev.postgres import EmbeddedPostgres
from tests.drills.installation import Installation
from tests.drills.losses import KINDS, accepted, refused
from tests.drills.machines import home_of_machines
from tests.drills.redis_pair import RedisPair
from tests.patience import eventually
from tests.soak.accounts import claims

pytestmark = pytest.mark.server


@pytest.mark.timeout(1800)
async def test_redis_fails_over(capsys):
    """Requests are answered all the while, and limits are shared again afterwards."""
    rows = []
    with home_of_machines() as home, EmbeddedPostgres(home / "postgres") as postgres:
        pair = RedisPair(home)
        pair.start()
        installation = Installation(home, postgres.url, pair.nodes, REDIS_URL=pair.url, WORKERS="2")
        async with installation.running() as served:
            for number, kind in enumerate(KINDS):
                async with installation.load(served, number):
                    await accepted(installation, time.monotonic())
                    before = refused(installation)
                    was = await eventually(pair.master)
                    lost_at = time.monotonic()
                    pair.lose(was, kind)
                    now = await eventually(lambda was=was: pair.another_than(was), look=0.1)
                    led_at = time.monotonic()
                    await eventually(installation.shares_limits, look=0.2)
                    shared_at = time.monotonic()
                    await accepted(installation, shared_at)
                    pair.restore(was, kind)
                    await eventually(pair.is_whole, look=0.2)
                found = claims(installation.url, installation.history)
                rows.append(
                    f"{kind}: {now.name} leads after {led_at - lost_at:.1f} s, limits are shared"
                    f" after {shared_at - lost_at:.1f} s;"
                    f" {refused(installation) - before} answers of 503; {found}"
                )
        faults = installation.history.faults()
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *rows, *faults, ""]))
    assert faults == []
    assert (found["lost"], found["doubled"]) == (0, 0)
