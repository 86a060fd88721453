"""PostgreSQL on three machines under Patroni, etcd on three others: deploy/high_availability."""

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import patroni
import psycopg

from service.cli.dev.postgres import debian_bin_dir
from service.cli.dev.postgres.cluster import OWNER
from tests.drills.machines import UNPRIVILEGED, Machine
from tests.no_tls import NO_TLS
from tests.patience import eventually, until
from tests.soak.accounts import value

DEPLOYED = Path(__file__).parents[2] / "deploy" / "high_availability"
NAMES = ("one", "two", "three")
_LOGINS = {"SUPERUSER": "postgres", "REPLICATION": "replicator", "REWIND": "rewinder"}
_PASSWORD = "of-a-drill"
_ARCHIVED = "select coalesce(last_archived_wal >= '{}', false) from pg_stat_archiver"


class PatroniCluster:
    """Three nodes, one of them the primary, which waits for both others at each commit."""

    def __init__(self, home: Path, **own: str) -> None:
        """Choose the machines; `start` turns them on. `own` are settings of Patroni's."""
        self._own = {f"PATRONI_{name}": text for name, text in own.items()}
        bin_dir = debian_bin_dir()
        assert bin_dir is not None, "PostgreSQL of Debian is not installed"
        self._bin_dir = bin_dir
        self.machines = [Machine(name, number, home) for number, name in enumerate(NAMES, 1)]
        self._etcds = [
            Machine(f"etcd-{name}", number, home) for number, name in enumerate(NAMES, 4)
        ]
        self._config = home / "patroni.yml"
        for name in ("patroni.yml", "pgbackrest.conf", "haproxy.cfg", "pgbackrest_archive.sh"):
            shutil.copy(DEPLOYED / name, home)
        where = self._config.read_text().replace("/etc/claim-ledger", str(home))
        self._config.write_text(where)
        # For the Python of the system, which an unprivileged user can run.
        self._programs = home / "programs"
        shutil.copytree(Path(patroni.__path__[0]), self._programs / "patroni")
        self.repository = home / "backups"
        self.repository.mkdir()
        shutil.chown(self.repository, UNPRIVILEGED, UNPRIVILEGED)

    @property
    def nodes(self) -> dict[str, str]:
        """The nodes' addresses, as the proxy's configuration names them."""
        return {f"NODE_{one.name.upper()}": one.address for one in self.machines}

    def start(self) -> None:
        """Start every node, wait until all replicate, and make the owner and its database."""
        for machine in self._etcds:
            machine.start()
            machine.run(self._etcd(machine), "etcd.log", {})
        for machine in self.machines:
            self.start_node(machine)
        until(self.is_whole, self.logs, look=0.2)
        primary = self.primary()
        assert primary is not None
        with psycopg.connect(self._superuser_url(primary), autocommit=True) as superuser:
            superuser.execute(
                f"create role {OWNER} login createrole password '{_PASSWORD}'".encode()
            )
            superuser.execute(f"create database {OWNER} owner {OWNER}".encode())
        self.back_up("stanza-create")

    def start_node(self, machine: Machine) -> None:
        """Turn a machine on, with what runs on it."""
        machine.start()
        command = ["/usr/bin/python3", "-m", "patroni", self._config]
        machine.run(command, "patroni.log", self._patroni(machine))

    def back_up(self, *words: str) -> None:
        """Run pgBackRest on the primary's machine, which must succeed."""
        primary = self.primary()
        assert primary is not None
        command = ["pgbackrest", "--stanza=claim-ledger", *words]
        done = primary.run(command, "pgbackrest.log", self.backups(primary)).wait()
        assert done == 0, (primary.disk / "pgbackrest.log").read_text()[-2000:]

    def backups(self, machine: Machine) -> dict[str, str]:
        """Return the environment of pgBackRest on a machine: one repository for all."""
        given = {
            "REPO1_PATH": self.repository,
            "PG1_PATH": machine.disk / "data",
            "LOG_PATH": machine.disk,
            "LOCK_PATH": machine.disk / "locks",
            "CONFIG": self._config.with_name("pgbackrest.conf"),
        }
        return {f"PGBACKREST_{name}": str(value) for name, value in given.items()}

    def value(self, query: str) -> Any:
        """Return the single value of a query that the superuser runs on the primary."""
        primary = self.primary()
        assert primary is not None
        return value(self._superuser_url(primary), query)

    def owner_url(self, address: str) -> str:
        """Return the owner's URL at the address of a proxy."""
        return f"postgresql://{OWNER}:{_PASSWORD}@{address}/{OWNER}"

    def primary(self) -> Machine | None:
        """Return the machine that says it is the primary, if there is one."""
        for machine in self.machines:
            if _ask(machine, "primary") is not None:
                return machine
        return None

    async def until_another_leads(self, lost: Machine) -> None:
        """Wait until another than the lost machine says that it is the primary."""
        others = [one for one in self.machines if one is not lost]

        def leads() -> bool:
            return any(_ask(one, "primary") is not None for one in others)

        await eventually(lambda: asyncio.to_thread(leads), self.logs, look=0.1)

    async def until_archived(self) -> None:
        """Wait until what was written by now is in the repository."""
        file = self.value("select pg_walfile_name(pg_switch_wal())")
        await eventually(lambda: self.value(_ARCHIVED.format(file)), self.logs, look=0.2)

    def is_whole(self) -> bool:
        """Return whether there is a primary, and both others follow it synchronously."""
        primary = self.primary()
        if primary is None:
            return False
        members = (_ask(primary, "cluster") or {"members": []})["members"]
        following = [one for one in members if one["role"] == "sync_standby"]
        return (
            len(following) == len(NAMES) - 1
            and all(one["state"] in {"running", "streaming"} for one in following)
            and all(one.get("lag") == 0 for one in following)
        )

    def logs(self) -> str:
        """Return the ends of the nodes' logs."""
        logs = [
            path
            for one in (*self.machines, *self._etcds)
            for path in sorted(one.disk.glob("*.log"))
        ]
        return "\n".join(f"{path}:\n{path.read_text()[-3000:]}" for path in logs)

    def _superuser_url(self, machine: Machine) -> str:
        return f"postgresql://postgres:{_PASSWORD}@{machine.address}/postgres"

    def _etcd(self, machine: Machine) -> Sequence[str | Path]:
        peers = ",".join(f"{one.name}=http://{one.address}:2380" for one in self._etcds)
        clients, peer = f"http://{machine.address}:2379", f"http://{machine.address}:2380"
        return [
            *("etcd", "--name", machine.name, "--data-dir", machine.disk / "etcd"),
            *("--listen-client-urls", clients, "--advertise-client-urls", clients),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", peers, "--initial-cluster-state", "new", "--logger", "zap"),
        ]

    def _patroni(self, machine: Machine) -> dict[str, str]:
        hosts = ",".join(f"'{one.address}:2379'" for one in self._etcds)
        given = {
            "NAME": machine.name,
            "RESTAPI_LISTEN": f"{machine.address}:8008",
            "RESTAPI_CONNECT_ADDRESS": f"{machine.address}:8008",
            "ETCD3_HOSTS": hosts,
            "POSTGRESQL_LISTEN": f"{machine.address}:5432",
            "POSTGRESQL_CONNECT_ADDRESS": f"{machine.address}:5432",
            "POSTGRESQL_DATA_DIR": str(machine.disk / "data"),
            "POSTGRESQL_BIN_DIR": str(self._bin_dir),
            "POSTGRESQL_PGPASS": str(machine.disk / "pgpass"),
        }
        for user, name in _LOGINS.items():
            given |= {f"{user}_USERNAME": name, f"{user}_PASSWORD": _PASSWORD}
        settings = {f"PATRONI_{name}": text for name, text in given.items()}
        more = {"USER": UNPRIVILEGED, "PYTHONPATH": str(self._programs)}
        return settings | self.backups(machine) | more | self._own


def _ask(machine: Machine, path: str) -> dict[str, Any] | None:
    try:
        answer = httpx.get(f"http://{machine.address}:8008/{path}", timeout=2, verify=NO_TLS)
    except httpx.TransportError:
        return None
    return json.loads(answer.text) if answer.is_success else None
