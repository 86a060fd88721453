"""What commands of the team do on a replica, beside whose primary the service runs."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from service.ledger.following.status import STANDBY
from tests.faults.clusters import (
    Cluster,
    Clusters,
    Installation,
    followed,
    settled,
    unnumbered,
)
from tests.mail.mail_server import MailServer
from tests.protections import put_back, take_off
from tests.world import STAFF, TEAM, World


@dataclass
class Replica:
    """A standby; of the claims, none of the later ones is signed, and the last has no number."""

    installation: Installation
    cluster: Cluster
    partner_id: str
    entity_id: str
    claims: list[str]
    signed: int
    world: World

    async def told(self, code: int, *arguments: str | Path) -> dict[str, Any]:
        """Run a command, which must exit with a code; return its answer."""
        done = await asyncio.to_thread(self.installation.command, self.cluster, *arguments)
        assert done[0] == code, done
        return done[1]

    async def refused(self, *arguments: str | Path) -> str:
        """Run a command, which must be refused; return why."""
        message: str = (await self.told(1, *arguments))["message"]
        return message


@pytest.fixture
async def replica(
    clusters: Clusters, smtp: tuple[MailServer, int], tmp_path: Path
) -> AsyncGenerator[Replica, None]:
    """Return the replica, which goes on replaying as little as its primary writes."""
    source = clusters.migrated("source", max_wal_senders="4")
    source.admit_superuser()
    await asyncio.to_thread(source.base_backup, tmp_path / "base", "--write-recovery-conf")
    cluster = clusters.from_base_backup("replica", tmp_path / "base", source)
    installation = Installation(tmp_path, smtp[1])
    async with installation.on(source) as world:
        await world.service.staff.add(TEAM, STAFF)
        partner, entity_id = await world.connected()
        claims = [(await partner.claim(entity_id, "signed")).json()["claim_id"]]
        for ledger in ("accounts", "test", "live"):
            made = await world.service.checkpoints(ledger).make()
        signed = made.checkpoint.size
        claims.append((await partner.claim(entity_id, "numbered")).json()["claim_id"])
        await settled(source.url)
        async with unnumbered(source.url):
            claims.append((await partner.claim(entity_id, "waiting")).json()["claim_id"])
            await followed(source, cluster)
            cluster.execute("select pg_wal_replay_pause()", superuser=True)
        yield Replica(installation, cluster, partner.partner_id, entity_id, claims, signed, world)


async def test_evidence_rests_on_the_newest_checkpoint(replica, tmp_path):
    """Nothing is signed, and the answer has what is left out; what it does not cover is refused.

    A report says so before it reads anything, and an earlier end helps.
    """
    lacking, out = f"and {STANDBY}", tmp_path / "out"
    exported = await replica.told(0, "audit", "export", "--ledger", "live", "--out", out)
    assert (exported["events"], exported["size"]) == (replica.signed, replica.signed)
    assert exported["unsigned_events"] == 2
    shown = await replica.told(0, "audit", "history", replica.claims[1])
    assert shown["events"][0]["position"] == replica.signed + 1
    await replica.told(0, "audit", "prove", replica.claims[0], "--out", tmp_path / "receipt")
    report = ("audit", "report", "--entity", replica.entity_id, "--from", "2020-01-01")
    out = tmp_path / "report"
    why = await replica.refused(*report, "--to", "2100-01-01", "--out", out)
    lacks = f"the newest checkpoint has {replica.signed} events of {replica.signed + 1}, {lacking}"
    assert why == f"{lacks}: an earlier --to asks for fewer"
    why = await replica.refused("audit", "history", replica.entity_id, "--prove", tmp_path / "h")
    assert why == lacks
    until = shown["events"][0]["at"]
    reported = await replica.told(0, *report, "--to", until, "--out", out)
    assert reported["rests_on"][1]["last_position"] == replica.signed


async def test_what_has_to_write_begins_nothing(replica, tmp_path):
    """An erasure names its subject, and is listed nowhere; a proof of absence reads no log."""
    asked = ("--entity", replica.entity_id)
    why = await replica.refused("privacy", "erase", *asked, "--reason", "case 1", "--yes")
    assert why == f"{replica.entity_id} is not erased: {STANDBY}."
    assert not list((tmp_path / "published").rglob("*erasure*"))
    name = ("--absent", "other", "--partner", replica.partner_id, *asked)
    why = await replica.refused("audit", "prove", *name, "--out", tmp_path / "absent")
    assert why.endswith(f"the proof's index is stored, and {STANDBY}")
    published = set((tmp_path / "published").rglob("*"))
    forced = ("audit", "lineage", "--ledger", "accounts", "--force")
    why = await replica.refused(*forced, "--reason", "a trial", "--yes")
    assert set((tmp_path / "published").rglob("*")) == published, "the primary's lineage goes on"
    assert why == f"accounts: no lineage is begun: {STANDBY}"
    why = await replica.refused("documents", "sweep", "--older-than", "1h", "--unknown")
    assert why == f"live: nothing is removed: {STANDBY}"


async def test_what_only_reads_does_so(replica, tmp_path):
    """Verification, and look-ups; what builds tables does not.

    Once it is behind what is published, nobody can tell there whether the rest is late or lost.
    """
    assert (await replica.told(0, "audit", "verify"))["ok"]
    for command in ("documents verify", "keys-at-rest verify", "privacy find x@example.com"):
        await replica.told(0, *command.split())
    for command in ("audit replay --ledger live", "projections verify"):
        assert "ReadOnlySQLTransactionError" in await replica.refused(*command.split())
    published = (await replica.world.service.checkpoints("live").make()).checkpoint.size
    assert published > replica.signed + 1, "the replica does not replay"
    verdict = await replica.told(3, "audit", "verify")
    assert (verdict["ok"], verdict["ledger"], verdict["behind"]) == (None, "live", published)
    assert verdict["size"] == replica.signed + 1
    asked = ("--claim", replica.claims[0], "--from", "2020-01-01", "--to", "2100-01-01")
    late = await replica.told(3, "audit", "report", *asked, "--out", tmp_path / "report")
    assert late == {"ok": None, "ledger": "live", "behind": published}
    assert not (tmp_path / "report").exists()


async def test_no_function_makes_a_primary_a_standby(clusters, smtp, tmp_path):
    """A superuser can replace any; then a primary that lost what was published has to say so."""
    primary = clusters.migrated("primary")
    primary.admit_superuser()
    installation = Installation(tmp_path, smtp[1])
    async with installation.on(primary) as world:
        await world.service.staff.add(TEAM, STAFF)
        await world.service.checkpoints("accounts").make()
    with psycopg.connect(primary.url, autocommit=True) as owner:
        take_off(owner, "accounts.checkpoints")
        owner.execute("delete from accounts.checkpoints")
        put_back(owner, "accounts.checkpoints")
    primary.execute(
        "create or replace function pg_catalog.pg_is_in_recovery() returns bool"
        " language sql as 'select true'",
        superuser=True,
    )
    code, verdict = await asyncio.to_thread(installation.command, primary, "audit", "verify")
    assert (code, verdict["ok"], verdict["ledger"]) == (1, False, "accounts")
    assert verdict["fault"].endswith("is missing from the database.")
