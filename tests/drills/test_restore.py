"""Backups of a cluster under load, restored into an empty directory by one script."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from service.cli.dev.postgres import debian_bin_dir
from tests.databases import with_logins
from tests.drills.cluster import PatroniCluster
from tests.drills.encryption import DEPLOYED
from tests.drills.installation import Installation
from tests.drills.losses import accepted
from tests.drills.machines import UNPRIVILEGED, home_of_machines
from tests.faults.clusters import settled
from tests.processes import free_port
from tests.soak.accounts import value
from tests.world import MASTER_KEY, TEAM

pytestmark = pytest.mark.server


@pytest.mark.timeout(3600)
async def test_a_backup_is_restored_by_one_script(capsys):
    """Full and incremental backup and the log after them: all events, as they were published."""
    with home_of_machines() as home:
        cluster = PatroniCluster(home)
        cluster.start()
        installation = Installation(home, cluster.url, cluster.nodes)
        async with installation.running() as served:
            async with installation.load(served, 0):
                await accepted(installation, time.monotonic())
                await asyncio.to_thread(cluster.back_up, "--type=full", "backup")
                await accepted(installation, time.monotonic())
                await asyncio.to_thread(cluster.back_up, "--type=incr", "backup")
                await accepted(installation, time.monotonic())
            await settled(installation.url)
            assert installation.command("audit", "checkpoint")[0] == 0
            size = value(installation.url, "select size from live.head")
            await cluster.until_archived()
        drill, published = home / "drill", home / "copy"
        shutil.copytree(home / "published", published)
        drill.mkdir(mode=0o700)
        shutil.chown(drill, UNPRIVILEGED, UNPRIVILEGED)
        began = time.monotonic()
        done = await asyncio.to_thread(_run, cluster, installation, drill, published)
        took = time.monotonic() - began
    with capsys.disabled():
        steps = [line for line in done.stdout.splitlines() if " s: " in line]
        sys.stdout.write("\n".join(["", *steps, f"{size} events in {took:.1f} s", ""]))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert f"live has {size} events; comparing with {size:020}.txt" in done.stdout


def _run(
    cluster: PatroniCluster, installation: Installation, drill: Path, published: Path
) -> subprocess.CompletedProcess[str]:
    port = free_port()
    bin_dir = debian_bin_dir()
    settings = with_logins(
        {
            "DATABASE_URL": cluster.owner_url(f"127.0.0.1:{port}"),
            "MASTER_KEYS": MASTER_KEY,
            "PUBLIC_URL": "http://127.0.0.1:8000",
            "SMTP_URL": (drill.parent / "drill-mail").as_uri(),
            "STAFF": TEAM,
            "RUN_WORKER": "off",
        }
    )
    given = {
        "DRILL_DIRECTORY": drill,
        "DRILL_PORT": port,
        "DRILL_PUBLISHED": published,
        "DRILL_PUBLIC_KEY": installation.public_key,
        "PG_BIN": bin_dir,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    machine = cluster.machines[0]
    environment = (
        {name: text for name, text in os.environ.items() if not name.startswith("CLAIM_LEDGER_")}
        | cluster.backups(machine)
        | {name: str(text) for name, text in given.items()}
        | {f"CLAIM_LEDGER_{name}": text for name, text in settings.items()}
    )
    return subprocess.run(
        [DEPLOYED / "restore_drill.sh"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
