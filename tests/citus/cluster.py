"""A Citus cluster of three nodes, each a PostgreSQL of its own: `accounts`, `live` and `test`.

It is set up as `deploy/citus` says, by psql, with the ledgers' passwords between the nodes.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from service.cli.dev.postgres import EmbeddedPostgres
from service.cli.dev.postgres.processes import (
    _ENVIRONMENT,
)
from tests.databases import login_url, migrated
from tests.faults.clusters import Cluster, folder_for_all

DEPLOY = Path(__file__).parents[2] / "deploy" / "citus"
HOMES = {"accounts": "coordinator", "live": "one", "test": "two"}
"""The nodes that have the ledgers at first."""
_SETTING = re.compile(r"^([\w.]+) = '?(\w+)'?", re.MULTILINE)
DURABLE = {"synchronous_commit": "on", "full_page_writes": "on"}
"""As far as a test kills a node and not its machine."""
PASSWORD = "of-every-node"


@dataclass
class Citus:
    """A running cluster: its nodes by their names."""

    nodes: Mapping[str, Cluster]

    @property
    def url(self) -> str:
        """The owner's URL of the coordinator."""
        return self.nodes["coordinator"].url

    @property
    def urls(self) -> dict[str, str]:
        """The settings that say where the ledgers are: either worker may have a partner's."""
        one, two = (port(self.nodes[name]) for name in ("one", "two"))
        both = self.url.replace(f":{port(self.nodes['coordinator'])}/", f":{one},127.0.0.1:{two}/")
        return {
            f"{ledger.upper()}_DATABASE_URL": login_url(both, ledger)
            + "?target_session_attrs=read-write"
            for ledger in ("live", "test")
        }

    def run(self, script: str, ledger: str) -> None:
        """Run a file of `deploy/citus` by psql on the coordinator."""
        self._checked("psql", "--no-psqlrc", f"--set=ledger={ledger}", f"--file={DEPLOY / script}")

    def move(self, ledger: str, node: str) -> None:
        """Move a ledger to another node, as an operator does."""
        self._checked(DEPLOY / "move.sh", ledger, "127.0.0.1", str(port(self.nodes[node])))

    def _checked(self, *command: str | Path) -> None:
        coordinator = self.nodes["coordinator"]
        given = {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(port(coordinator)),
            "PGUSER": "postgres",
            "PGDATABASE": "claim_ledger",
            "PATH": f"{coordinator.bin_dir}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": _ENVIRONMENT["LD_LIBRARY_PATH"],
        }
        done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "ERROR" not in done.stdout, done.stdout

    def node_of(self, ledger: str) -> str:
        """Return the node that has a ledger's tables."""
        there = self.nodes["coordinator"].value(
            f"select nodeport from citus_shards where table_name = '{ledger}.events'::regclass",  # noqa: S608 - ours
            superuser=True,
        )
        return next(name for name, node in self.nodes.items() if port(node) == there)


@contextmanager
def citus_in(bin_dir: Path, migrate: Callable[[str], None] = migrated) -> Iterator[Citus]:
    """Run a cluster of these programs, whose ledgers are on different nodes."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        home = stack.enter_context(folder_for_all())
        patch.setitem(_ENVIRONMENT, "LD_LIBRARY_PATH", str(bin_dir.parent / "wheel-libs"))
        nodes = {name: _node(stack, bin_dir, home / name) for name in HOMES.values()}
        coordinator = nodes["coordinator"]
        migrate(coordinator.url)
        for node in nodes.values():
            with as_superuser(node) as operator:
                operator.execute("create extension citus")
        with as_superuser(coordinator) as operator:
            own = ("127.0.0.1", port(coordinator))
            operator.execute("select citus_set_coordinator_host(%s, %s)", own)
            for name in ("one", "two"):
                there = ("127.0.0.1", port(nodes[name]))
                operator.execute("select citus_add_node(%s, %s)", there)
        for node in nodes.values():
            _introduce(node)
        citus = Citus(nodes)
        for ledger in ("live", "test"):
            citus.run("distribute.sql", ledger)
            citus.run("fence.sql", ledger)
            citus.run("enter.sql", ledger)
            if citus.node_of(ledger) != HOMES[ledger]:
                citus.move(ledger, HOMES[ledger])
        yield citus


def as_superuser(node: Cluster) -> psycopg.Connection:
    """Return a connection to a node, each statement its own transaction."""
    return psycopg.connect(node.superuser_url, autocommit=True)


def port(node: Cluster) -> int:
    """Return a node's port."""
    return int(node.url.rpartition(":")[2].partition("/")[0])


def shard_of(citus: Citus, table: str) -> str:
    """Return the name of a table's only shard, on the node that has it."""
    name: str = citus.nodes["coordinator"].value(
        f"select shard_name::text from citus_shards where table_name = '{table}'::regclass",  # noqa: S608 - ours
        superuser=True,
    )
    return name


def _node(stack: ExitStack, bin_dir: Path, home: Path) -> Cluster:
    home.mkdir(mode=0o700)
    (home / "password").write_text(PASSWORD)
    (home / "password").chmod(0o600)
    settings = DURABLE | dict(_SETTING.findall((DEPLOY / "postgresql.conf").read_text()))
    server = EmbeddedPostgres(home, bin_dir=bin_dir, settings=settings, durable=False)
    node = Cluster(stack.enter_context(server), bin_dir)
    node.admit_superuser()
    return node


def _introduce(node: Cluster) -> None:
    """Give a node the passwords by which it reaches the others."""
    with as_superuser(node) as operator:
        for role in ("claim_ledger", *(f"claim_ledger_{ledger}" for ledger in HOMES)):
            operator.execute(
                "insert into pg_dist_authinfo values (0, %s, %s)", (role, f"password={PASSWORD}")
            )
