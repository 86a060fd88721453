"""PostgreSQL on three machines under Patroni, etcd on three others: deploy/high_availability."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import patroni
import psycopg

from service.cli.dev.postgres import debian_bin_dir
from service.cli.dev.postgres.cluster import OWNER
from tests.drills.encryption import authority, certify, place, verifying
from tests.drills.machines import UNPRIVILEGED, Machine
from tests.patience import eventually, until
from tests.soak.accounts import value

NAMES = ("one", "two", "three")
NAME = "postgresql.internal"
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
        self.etcds = [Machine(f"etcd-{name}", number, home) for number, name in enumerate(NAMES, 4)]
        for machine in self.machines:
            certify(home, machine, NAME)
            for name in ("patroni.yml", "pgbackrest_archive.sh"):
                place(name, machine.etc)
        for machine in self.etcds:
            certify(home, machine, machine.name)
            place("etcd.env", machine.etc)
        for name in ("pgbackrest.conf", "haproxy.cfg"):
            place(name, home)
        self._home = home
        self._verifying = verifying(home)
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
        for machine in self.etcds:
            machine.start()
            machine.run(["etcd"], "etcd.log", self._etcd(machine))
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
        command = ["/usr/bin/python3", "-m", "patroni", machine.etc / "patroni.yml"]
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
            "CONFIG": self._home / "pgbackrest.conf",
        }
        return {f"PGBACKREST_{name}": str(value) for name, value in given.items()}

    def value(self, query: str) -> Any:
        """Return the single value of a query that the superuser runs on the primary."""
        primary = self.primary()
        assert primary is not None
        return value(self._superuser_url(primary), query)

    @property
    def url(self) -> str:
        """The owner's URL through the proxy of a machine of the API, as the runbook has it."""
        return f"{self.owner_url(f'{NAME}:5432')}?{self._verified}"

    def owner_url(self, address: str) -> str:
        """Return the owner's URL at the address of a server on this machine."""
        return f"postgresql://{OWNER}:{_PASSWORD}@{address}/{OWNER}"

    def primary(self) -> Machine | None:
        """Return the machine that says it is the primary, if there is one."""
        for machine in self.machines:
            if self._ask(machine, "primary") is not None:
                return machine
        return None

    async def until_another_leads(self, lost: Machine) -> None:
        """Wait until another than the lost machine says that it is the primary."""
        others = [one for one in self.machines if one is not lost]

        def leads() -> bool:
            return any(self._ask(one, "primary") is not None for one in others)

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
        members = (self._ask(primary, "cluster") or {"members": []})["members"]
        following = [one for one in members if one["role"] == "sync_standby"]
        return (
            len(following) == len(NAMES) - 1
            and all(one["state"] in {"running", "streaming"} for one in following)
            and all(one.get("lag") == 0 for one in following)
        )

    def logs(self) -> str:
        """Return the ends of the nodes' logs."""
        logs = [
            path for one in (*self.machines, *self.etcds) for path in sorted(one.disk.glob("*.log"))
        ]
        return "\n".join(f"{path}:\n{path.read_text()[-3000:]}" for path in logs)

    def _ask(self, machine: Machine, path: str) -> dict[str, Any] | None:
        url = f"https://{machine.address}:8008/{path}"
        try:
            answer = httpx.get(url, timeout=2, verify=self._verifying)
        except httpx.TransportError:
            return None
        return json.loads(answer.text) if answer.is_success else None

    def _superuser_url(self, machine: Machine) -> str:
        return f"postgresql://postgres:{_PASSWORD}@{machine.address}/postgres?{self._verified}"

    @property
    def _verified(self) -> str:
        return f"sslmode=verify-full&sslrootcert={authority(self._home)}"

    def _etcd(self, machine: Machine) -> dict[str, str]:
        peers = ",".join(f"{one.name}=https://{one.address}:2380" for one in self.etcds)
        clients, peer = f"https://{machine.address}:2379", f"https://{machine.address}:2380"
        lines = (machine.etc / "etcd.env").read_text().splitlines()
        shared = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
        return shared | {
            "ETCD_NAME": machine.name,
            "ETCD_DATA_DIR": str(machine.disk / "etcd"),
            "ETCD_LISTEN_CLIENT_URLS": clients,
            "ETCD_ADVERTISE_CLIENT_URLS": clients,
            "ETCD_LISTEN_PEER_URLS": peer,
            "ETCD_INITIAL_ADVERTISE_PEER_URLS": peer,
            "ETCD_INITIAL_CLUSTER": peers,
            "ETCD_INITIAL_CLUSTER_STATE": "new",
        }

    def _patroni(self, machine: Machine) -> dict[str, str]:
        hosts = ",".join(f"'{one.address}:2379'" for one in self.etcds)
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
