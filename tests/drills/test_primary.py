"""The primary's machine is lost, again and again, under the load of fifty clients."""

import sys

import pytest

from tests.drills.cluster import PatroniCluster
from tests.drills.installation import Installation
from tests.drills.losses import KINDS, lose_primary, table
from tests.drills.machines import home_of_machines

pytestmark = pytest.mark.server
SECONDS_MAX = 30.0
"""What the drill is there to show: writes are accepted again within this time."""


@pytest.mark.timeout(3600)
async def test_a_primary_is_lost(request, capsys):
    """No acknowledged claim is lost or doubled, evidence holds, writes and the archive go on."""
    losses = []
    with home_of_machines() as home:
        cluster = PatroniCluster(home)
        cluster.start()
        installation = Installation(home, cluster.url, cluster.nodes)
        async with installation.running(pooled=True) as served:
            for number in range(request.config.getoption("--rounds")):
                kind = KINDS[number % len(KINDS)]
                losses.append(await lose_primary(cluster, installation, served, kind, number))
                with capsys.disabled():
                    sys.stdout.write("\n".join(["", table(losses), *losses[-1].faults, ""]))
            await installation.settle(served)
            await cluster.until_archived()
        faults = installation.history.faults()
    assert all(one.is_clean for one in losses), losses
    assert faults == []
    assert max(one.seconds for one in losses) <= SECONDS_MAX, table(losses)
