"""A machine that comes back with what nobody else has, and that cannot be rewound."""

import asyncio

import pytest

from tests.drills.cluster import PatroniCluster
from tests.drills.machines import home_of_machines
from tests.patience import eventually

pytestmark = pytest.mark.server
BROKEN = '#!/bin/sh\n[ "$1" = --help ]\n'
"""Patroni asks it for help, to see whether it is there."""


@pytest.mark.timeout(600)
async def test_a_machine_that_cannot_be_rewound_is_copied_anew():
    """Nobody is called for it: three replicate again, with what the new primary has."""
    with home_of_machines() as home:
        broken = home / "pg_rewind"
        broken.write_text(BROKEN)
        broken.chmod(0o755)
        cluster = PatroniCluster(home, POSTGRESQL_BIN_PG_REWIND=str(broken))
        cluster.start()
        lost = cluster.primary()
        assert lost is not None
        lost.cut_off()
        await cluster.until_another_leads(lost)
        lost.plug_in()
        await eventually(lambda: asyncio.to_thread(cluster.is_whole), cluster.logs, look=0.2)
