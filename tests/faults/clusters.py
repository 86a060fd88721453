"""A test's own clusters, PostgreSQL's programs on them, and checks of a sound ledger."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.app.bootstrap import Service
from service.cli.dev.postgres import EmbeddedPostgres, wheel_bin_dir
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.signing import MadeCheckpoint
from service.evidence.note import NoteKey
from service.evidence.verify.expectations import published_evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.ledger.merkle import CompactRange, leaf_hash, leaf_record
from tests.dev_process import environment, run
from tests.mail.mail_server import MailServer
from tests.migrated_clusters import MigratedClusters
from tests.patience import eventually, until
from tests.world import (
    MASTER_KEY,
    PUBLIC_URL,
    STAFF,
    TEAM,
    Partner,
    World,
    settings_for,
    world_on,
)

LEDGERS = ("accounts", "live", "test")
_HEAD = (
    "select size, tree, (select count(*) from {0}.pending), (select count(*) from {0}.events)"
    " from {0}.head"
)
_ROWS = (
    "select l.position, l.append_id, e.originator_id, e.originator_version, e.topic, e.state,"
    " l.leaf_hash from {0}.log as l left join {0}.events as e using (append_id)"
    " order by l.position"
)
_SETTLED = (
    "select (select count(*) from {0}.pending) + (select count(*) from {0}.subscriptions"
    " where position < (select size from {0}.head))"
)
_OWN_HBA = "host all postgres 127.0.0.1/32 trust\nhost replication postgres 127.0.0.1/32 trust\n"


@dataclass
class Cluster:
    """A running PostgreSQL and its programs."""

    server: EmbeddedPostgres
    bin_dir: Path

    @property
    def url(self) -> str:
        """The owner's URL."""
        return self.server.url

    @property
    def superuser_url(self) -> str:
        """The superuser's URL, usable after `admit_superuser`."""
        return f"postgresql://postgres@127.0.0.1:{self.url.rpartition(':')[2]}"

    def run(self, program: str, *arguments: str | Path) -> str:
        """Run one of PostgreSQL's programs, which must succeed; return its output."""
        done = subprocess.run(
            [self.bin_dir / program, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def execute(self, *statements: str, superuser: bool = False) -> None:
        """Run statements, each a transaction of its own."""
        url = self.superuser_url if superuser else self.url
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def value(self, query: str, *, superuser: bool = False) -> Any:
        """Return the single value of a query."""
        with psycopg.connect(self.superuser_url if superuser else self.url) as connection:
            row = connection.execute(query).fetchone()
        assert row is not None
        return row[0]

    def base_backup(self, folder: Path, *more: str) -> None:
        """Take a base backup while the service runs; admit the superuser first."""
        self.run(
            *("pg_basebackup", "--dbname", self.superuser_url, "--pgdata", folder),
            *("--checkpoint", "fast", "--no-password", *more),
        )

    def until(self, condition: str) -> None:
        """Wait until a condition holds."""
        until(lambda: self.value(f"select {condition}"), lambda: condition)

    def wait_for_replica(self, name: str) -> None:
        """Let commits wait for a replica from now on; "": for none. Admit the superuser first."""
        self.execute(
            f"alter system set synchronous_standby_names = '{name}'",
            "select pg_reload_conf()",
            superuser=True,
        )
        with psycopg.connect(self.superuser_url, autocommit=True) as operator:
            show = "show synchronous_standby_names"
            until(lambda: operator.execute(show).fetchone() == (name,))

    def admit_superuser(self) -> None:
        """Let the superuser log in without a password, on a test's own cluster."""
        hba = self.server.data_dir / "cluster" / "pg_hba.conf"
        hba.write_text(_OWN_HBA + hba.read_text())
        self.server.stop()
        self.server.start()


@dataclass
class Clusters:
    """Creates clusters, which all end with the test."""

    home: Path
    copies: MigratedClusters
    _stack: ExitStack = field(default_factory=ExitStack)

    def new(self, name: str, **settings: str) -> Cluster:
        """Return a new running, empty cluster, with additional PostgreSQL settings."""
        return self._started(
            EmbeddedPostgres(
                self.home / name, bin_dir=self.copies.bin_dir, **_nearly_durable(settings)
            )
        )

    def migrated(self, name: str, **settings: str) -> Cluster:
        """Return a new running cluster with our schema."""
        return self._started(self.copies.server(self.home / name, **_nearly_durable(settings)))

    def from_base_backup(self, name: str, backup: Path, of: Cluster, **settings: str) -> Cluster:
        """Return a cluster on a base backup that recovers according to its settings.

        It can be read before it is recovered.
        """
        home, found = self.home / name, (of.server.data_dir / "cluster").stat()
        home.mkdir(mode=0o700)
        shutil.copy(of.server.data_dir / "password", home)
        shutil.move(backup, home / "cluster")
        for path in (home / "cluster", *(home / "cluster").rglob("*")):
            os.chown(path, found.st_uid, found.st_gid)
        return self.new(name, **settings)

    def _started(self, server: EmbeddedPostgres) -> Cluster:
        self._stack.enter_context(server)
        return Cluster(server, self.copies.bin_dir or wheel_bin_dir())


def _nearly_durable(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return what a backup needs of a server whose machine will not crash, and more settings."""
    kept = {"synchronous_commit": "on", "full_page_writes": "on"}
    return {"settings": kept | dict(settings), "durable": False}


@contextmanager
def clusters_in(home: Path, copies: MigratedClusters) -> Iterator[Clusters]:
    """Create clusters below a directory, of the version of `copies`."""
    clusters = Clusters(home, copies)
    with clusters._stack:  # noqa: SLF001 - its maker
        yield clusters


class Installation:
    """An installation independent of its database: mail server, archive and keys."""

    def __init__(self, home: Path, smtp_port: int) -> None:
        self.home = home
        self._given = {
            "SMTP_URL": f"smtp://127.0.0.1:{smtp_port}",
            "ARCHIVE_URL": (home / "published").as_uri(),
            "CHECKPOINT_KEYS": NoteKey.generate("example.com/claim-ledger").private_text,
        }

    def on(self, *clusters: Cluster) -> AbstractAsyncContextManager[World]:
        """Run the service with its followers, on whichever cluster accepts writes."""
        settings = settings_for(_url_of(clusters), self.home, **self._given)
        return world_on(settings, self.home)

    def command(self, cluster: Cluster, *arguments: str | Path) -> tuple[int, dict[str, Any]]:
        """Run a command of the team; return its exit code and its JSON."""
        given = {
            "DATABASE_URL": cluster.url,
            "MASTER_KEYS": MASTER_KEY,
            "PUBLIC_URL": PUBLIC_URL,
            "STAFF": TEAM,
        } | self._given
        done = run(*arguments, "--json", env=environment(**given))
        return done.returncode, json.loads(done.stdout)


def _url_of(clusters: Sequence[Cluster]) -> str:
    first, *others = [cluster.url for cluster in clusters]
    if not others:
        return first
    ends = [url.rpartition("@")[2].partition("/")[0] for url in others]
    begin, _, name = first.rpartition("/")
    return f"{','.join([begin, *ends])}/{name}?target_session_attrs=read-write"


@contextmanager
def folder_for_all() -> Iterator[Path]:
    """Return a folder that both the server's user and we can write to."""
    with tempfile.TemporaryDirectory(prefix="claim-ledger-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


@contextmanager
def impatient_writes(world: World, seconds: float) -> Iterator[None]:
    """Give up each write after this time; reads have all of theirs."""
    with pytest.MonkeyPatch.context() as patch:
        for mode in world.service.modes.values():
            patch.setattr(mode.ledger.database.writes, "deadline_seconds", seconds)
            batcher = mode.claims._batcher  # noqa: SLF001 - has its own deadline, of the same length
            patch.setattr(batcher, "_deadline", seconds)
        yield


def check_log(url: str, ledger: str, *, size: int | None = None) -> int:
    """Recompute a log from its events; return its size.

    Positions without a gap, each event once, each stream in its order, leaf hashes and the tree as
    the documented record has them, and nothing left over: every event has a position.
    """
    with psycopg.connect(url) as owner:
        rows = owner.execute(_ROWS.format(ledger)).fetchall()
        head = owner.execute(_HEAD.format(ledger)).fetchone()
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    assert len({row[1] for row in rows}) == len(rows)
    versions: dict[object, int] = {}
    for row in rows:
        assert row[3] == versions.get(row[2], 0) + 1
        versions[row[2]] = row[3]
    assert [row[-1] for row in rows] == [leaf_hash(leaf_record(*row[:-1])) for row in rows]
    tree = CompactRange()
    tree.extend(row[-1] for row in rows)
    size = len(rows) if size is None else size
    assert head == (size, tree.to_bytes(), 0, size)
    return size


async def check_verified(service: Service) -> None:
    """Verify every ledger as `audit verify` does, published checkpoints included."""
    keys = service.settings.checkpoint_keys or ()
    for ledger in service.ledgers:
        evidence = await published_evidence(service.archive, ledger.name, keys, None)
        verdict = await verify_ledger(ledger.database, evidence)
        assert verdict.ok, verdict


async def gone_on(
    installation: Installation,
    cluster: Cluster,
    world: World,
    older: MadeCheckpoint,
    beyond: MadeCheckpoint,
) -> None:
    """Follow the runbook after a loss: checkpoints `beyond` the loss, and `older` ones."""

    async def told(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
        return await asyncio.to_thread(installation.command, cluster, *arguments)

    await world.service.staff.add(TEAM, STAFF)
    with pytest.raises(LedgerForked):
        await world.service.checkpoints("live").make()
    assert (await told("audit", "checkpoint"))[0] == 1
    code, verdict = await told("audit", "verify", "--ledger", "live")
    assert (code, verdict["ok"]) == (1, False)
    code, answer = await told("audit", "lineage", "--reason", "events were lost", "--yes")
    (begun,) = answer["lineages"]
    assert (code, begun["ledger"]) == (0, "live")
    assert begun["previous_size"] == beyond.checkpoint.size
    assert older.checkpoint.size <= begun["shared_size"] < beyond.checkpoint.size
    assert (await told("audit", "checkpoint"))[0] == 0
    code, verdict = await told("audit", "verify")
    assert (code, verdict["ok"]) == (0, True)
    for name, made, expected in (("older", older, 0), ("beyond", beyond, 1)):
        note = installation.home / f"{name}.txt"
        note.write_text(made.note)
        code, verdict = await told("audit", "verify", "--ledger", "live", "--checkpoint", note)
        assert (name, code, verdict["ok"]) == (name, expected, not expected)
    await check_verified(world.service)


async def settled(url: str) -> None:
    """Wait until every event is numbered and every subscriber has seen it."""
    with psycopg.connect(url, autocommit=True) as owner:
        for left in map(_SETTLED.format, LEDGERS):
            await eventually(lambda left=left: owner.execute(left).fetchone() == (0,))


async def followed(source: Cluster, replica: Cluster) -> None:
    """Wait until a replica has replayed everything that its source has written."""
    written = source.value("select pg_current_wal_lsn()::text")
    await asyncio.to_thread(replica.until, f"pg_last_wal_replay_lsn() >= '{written}'::pg_lsn")


@asynccontextmanager
async def unnumbered(url: str) -> AsyncIterator[None]:
    """Hold the head of the live log, so that appended events wait for their position."""
    with psycopg.connect(url) as stranger:
        # In a thread: a sequencer in this loop may hold it, and has to get on.
        await asyncio.to_thread(stranger.execute, "select from live.head for update")
        yield


async def onboard(partner: Partner, reference: str) -> None:
    """Start an onboarding, which sends mail to `<reference>@example.com`."""
    body = {
        "partner_user_id": reference,
        "company_name": "New business",
        "user_email": f"{reference}@example.com",
    }
    answer = await partner.call("POST", "/onboardings", json=body)
    assert answer.status_code == 201


def links_received(server: MailServer) -> int:
    """Return how many mails with an onboarding's link there are; partners get others."""
    return sum(
        re.search(rb"(?im)^message-id:\s*<?onb_", one) is not None for one in server.received
    )


async def received(server: MailServer, count: int) -> None:
    """Wait until the mail server has this many mails with an onboarding's link."""
    await eventually(lambda: links_received(server) >= count)


async def outbox_empty(cluster: Cluster) -> None:
    """Wait until no mail is left to send."""
    waiting = "select count(*) from live.mail_outbox where state = 'waiting'"
    await eventually(lambda: not cluster.value(waiting))


async def metric(world: World, name: str, **labels: str) -> float:
    """Return a metric's value from a scrape."""
    text = await world.scrape()
    (value,) = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    ]
    return value
