"""The machine of a worker vanishes under load; another one goes on."""

import asyncio
import sys
import time
from collections.abc import Mapping

import pytest

from tests.drills.cluster import PatroniCluster
from tests.drills.installation import NOBODY, Installation
from tests.drills.losses import accepted, evidence_of, findings
from tests.drills.machines import Machine, home_of_machines
from tests.faults.clusters import settled
from tests.patience import eventually
from tests.soak.accounts import SERVICE, claims, value

pytestmark = pytest.mark.server
ROUNDS = 2
NEWEST = "select max(append_id) from live.events"
NUMBERED = "select exists(select from live.log where append_id >= {})"


def start_worker(machine: Machine, cluster: PatroniCluster, settings: Mapping[str, str]) -> None:
    """Turn a machine on, with a worker on it, and a proxy to the primary."""
    machine.start()
    proxy = ["/usr/sbin/haproxy", "-db", "-f", machine.disk.parent / "haproxy.cfg"]
    machine.run(proxy, "haproxy.log", NOBODY | cluster.nodes)
    machine.run_ours([*SERVICE, "worker"], "worker.log", settings)


@pytest.mark.timeout(1800)
async def test_a_workers_machine_vanishes(capsys):
    """What is accepted is numbered and signed by another worker, and nothing is done twice."""
    with home_of_machines() as home:
        cluster = PatroniCluster(home)
        cluster.start()
        installation = Installation(
            home, cluster.url, cluster.nodes, RUN_WORKER="off", OPERATIONS_PORT="0"
        )
        workers = [Machine(f"worker-{number}", number, home) for number in (31, 32)]
        async with installation.running() as served:
            for worker in workers:
                start_worker(worker, cluster, installation.environment)
            for number in range(ROUNDS):
                worker = workers[number % 2]
                async with installation.load(served, number):
                    await accepted(installation, time.monotonic())
                    evidence = await asyncio.to_thread(evidence_of, installation, number)
                    await asyncio.to_thread(worker.vanish)
                    lost_at = time.monotonic()
                    newest = value(installation.url, NEWEST)
                    numbered_query = NUMBERED.format(newest)
                    await eventually(
                        lambda query=numbered_query: value(installation.url, query), look=0.1
                    )
                    numbered = time.monotonic() - lost_at
                    start_worker(worker, cluster, installation.environment)
                    await accepted(installation, time.monotonic())
                await settled(installation.url)
                found = claims(installation.url, installation.history)
                faults = await asyncio.to_thread(findings, installation, evidence)
                with capsys.disabled():
                    said = f"{worker.name}: numbered within {numbered:.1f} s; {found}"
                    sys.stdout.write("\n".join(["", said, *faults, ""]))
                assert faults == []
                assert (found["lost"], found["doubled"]) == (0, 0)
        faults = installation.history.faults()
    assert faults == []
