"""The release before and this one side by side, under traffic, while the schema changes."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from migrations import is_newest
from service.cli.dev.postgres import EmbeddedPostgres
from service.evidence.note import NoteKey
from service.sandbox.fixtures import fixture_ids
from tests.databases import with_logins
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, eventually
from tests.processes import end, free_port, start
from tests.upgrade.releases import ROOT, Release, has_history, release_before, tag_before
from tests.upgrade.traffic import Traffic
from tests.world import MASTER_KEY, TEAM

CLIENTS = 4
CLAIMS_MIN = 20
"""In each phase: enough that every kind of request meets every state."""
CHECKPOINT_KEY = NoteKey.of_seed("example.com/upgrade", bytes(32))
pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not has_history(), reason="git's history is not at hand"),
]


def variables(url: str, directory: Path, **more: str) -> dict[str, str]:
    """Return the environment of a release's commands."""
    values = {
        "DATABASE_URL": url,
        "MASTER_KEYS": MASTER_KEY,
        "PUBLIC_URL": "http://127.0.0.1:1",
        "SMTP_URL": (directory / "mail").as_uri(),
        "CHECKPOINT_KEYS": CHECKPOINT_KEY.private_text,
        "ARCHIVE_URL": (directory / "archive").as_uri(),
        "STAFF": TEAM,
        "RATE_LIMIT_PER_MINUTE": "1000000",
        "OPERATIONS_PORT": "0",
        "LOG_LEVEL": "warning",
        **more,
    }
    own = {name: text for name, text in os.environ.items() if not name.startswith("CLAIM_LEDGER_")}
    own.pop("PYTHONPATH", None)
    return own | {f"CLAIM_LEDGER_{name}": text for name, text in with_logins(values).items()}


def call(release: Release, environment: Mapping[str, str], *words: str) -> dict[str, Any]:
    """Return the answer of a command that must succeed."""
    done = subprocess.run(
        [release.command, *words, "--json"],
        cwd=release.tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


class Served:
    """A release's `serve`."""

    def __init__(self, release: Release, url: str, directory: Path) -> None:
        """Start it on a free port."""
        port = free_port()
        self.origin = f"http://127.0.0.1:{port}"
        environment = variables(url, directory, PORT=str(port), PUBLIC_URL=self.origin)
        self.log = directory / f"{release.name}.log"
        with self.log.open("ab") as log:
            self.process = start(
                [release.command, "serve"],
                cwd=release.tree,
                env=environment,
                stdout=log,
                stderr=log,
            )

    async def answers(self) -> None:
        """Wait until it is ready."""

        async def ready() -> bool:
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            try:
                async with httpx.AsyncClient(timeout=PATIENCE_SECONDS, verify=NO_TLS) as http:
                    return (await http.get(f"{self.origin}/health/ready")).is_success
            except httpx.TransportError:
                return False

        await eventually(ready, self.log.read_text, look=0.2)

    async def stop(self, traffic: Traffic) -> None:
        """Take it out of the traffic, let what is under way end, and stop it."""
        traffic.origins.remove(self.origin)
        await asyncio.to_thread(end, self.process)


async def test_no_request_fails_while_releases_change(tmp_path):
    """Nothing but announced 503s; every claim is there once, whichever release made it."""
    this = Release("this", ROOT, Path(sys.executable).with_name("claim-ledger"))
    for name in ("before", "archive"):
        (tmp_path / name).mkdir(mode=0o700)
    before = await asyncio.to_thread(release_before, tmp_path / "before")
    with EmbeddedPostgres(tmp_path / "postgres") as postgres:
        url = postgres.url
        environment = variables(url, tmp_path)
        call(before, environment, "migrate")
        assert tag_before() or not is_newest(url), "the release before has the newest schema"
        old = Served(before, url, tmp_path)
        await old.answers()
        traffic = await _partner(before, environment, old.origin)
        sending = asyncio.create_task(traffic.run(CLIENTS))

        async def some() -> None:
            """Wait for some more claims, or for a fault."""
            enough = len(traffic.acknowledged) + CLAIMS_MIN
            await eventually(
                lambda: len(traffic.acknowledged) >= enough or traffic.faults or sending.done()
            )

        await some()
        await asyncio.to_thread(call, this, environment, "migrate")
        assert is_newest(url)
        await some()  # the release before on the new schema
        new = Served(this, url, tmp_path)
        await new.answers()
        traffic.origins.append(new.origin)
        await some()  # side by side: each repeats what the other has made
        await old.stop(traffic)
        await some()
        again = Served(before, url, tmp_path)  # back to the release before, and forward again
        await again.answers()
        traffic.origins.append(again.origin)
        await some()
        await again.stop(traffic)
        traffic.over.set()
        await sending
        assert traffic.faults == []
        await _settled(url)
        await asyncio.to_thread(call, this, environment, "audit", "verify")
        with psycopg.connect(url) as owner:
            rows = owner.execute(
                "select partner_claim_id, claim_id from test.claim_list"
            ).fetchall()
        await new.stop(traffic)
    print(f"\n{before.name}: {dict(traffic.answers)}")  # noqa: T201 - the recipe's figures
    assert traffic.acknowledged.items() <= dict(rows).items()
    assert len(rows) == len(dict(rows))


async def _partner(release: Release, environment: Mapping[str, str], origin: str) -> Traffic:
    """Return traffic of a partner whose sandbox is made."""
    call(release, environment, "staff", "add", TEAM)
    added = call(release, environment, "partners", "add", "Partner", "--email", "p@example.com")
    partner_id = added["partner_id"]
    call(release, environment, "partners", "approve", partner_id)
    token = call(release, environment, "keys", "issue", partner_id, "--mode", "test")["token"]
    traffic = Traffic(token, fixture_ids(partner_id).connected_entity_id, [origin])
    headers = {"Authorization": f"Bearer {token}"}

    async def is_made() -> bool:
        async with httpx.AsyncClient(timeout=PATIENCE_SECONDS, verify=NO_TLS) as http:
            answer = await http.get(
                f"{origin}/v1/claims", headers=headers, params={"entity_id": traffic.entity_id}
            )
        return answer.is_success

    await eventually(is_made, look=0.2)
    return traffic


async def _settled(url: str) -> None:
    """Wait until everything has its number."""

    def is_numbered() -> bool:
        with psycopg.connect(url) as owner:
            return owner.execute("select not exists(select from test.pending)").fetchone() == (
                True,
            )

    await eventually(lambda: asyncio.to_thread(is_numbered), look=0.2)
