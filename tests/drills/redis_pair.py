"""Redis on two machines, and Sentinel on these and a third: deploy/high_availability."""

import socket
from contextlib import suppress
from pathlib import Path

from tests.drills.encryption import authority, certify, place, verifying
from tests.drills.losses import ways
from tests.drills.machines import Machine
from tests.patience import until

NAME = "redis.internal"
REPLICATION = "info replication"
_WHOLE = "slaves=1,sentinels=3"
_PORT = 6379


class RedisPair:
    """A master and its replica; two of three Sentinels decide who is the master."""

    def __init__(self, home: Path) -> None:
        """Choose the machines; `start` turns them on."""
        names = ("redis-one", "redis-two", "third")
        self._machines = [Machine(name, number, home) for number, name in enumerate(names, 21)]
        self.pair = self._machines[:2]
        for machine in self._machines:
            certify(home, machine, NAME)
            place("redis.conf", machine.etc)
            sentinel = place("sentinel.conf", machine.etc)
            given = sentinel.read_text().replace("REDIS_ONE", self.pair[0].address)
            sentinel.write_text(given)
        place("haproxy.cfg", home)
        self.url = f"rediss://{NAME}:6379/0?ssl_ca_certs={authority(home)}"
        self._verifying = verifying(home)
        # Sentinels answer those alone who have a certificate, too.
        files = [self.pair[0].etc / f"machine.{ending}" for ending in ("crt", "key")]
        self._verifying.load_cert_chain(*files)

    @property
    def nodes(self) -> dict[str, str]:
        """The nodes' addresses, as the proxy's configuration names them."""
        one, two = self.pair
        return {"REDIS_ONE": one.address, "REDIS_TWO": two.address}

    def start(self) -> None:
        """Start all, and wait until the replica follows and every Sentinel knows the others."""
        for machine in self._machines:
            self._start_machine(machine)
        until(self.is_whole, self.logs, look=0.2)

    def lose(self, machine: Machine, kind: str) -> None:
        """Lose a machine."""
        ways(machine, kind, lambda: self._start_machine(machine)).lose()

    def restore(self, machine: Machine, kind: str) -> None:
        """Bring it back."""
        ways(machine, kind, lambda: self._start_machine(machine)).restore()

    def master(self) -> Machine | None:
        """Return the machine that is the only master."""
        masters = [one for one in self.pair if "role:master" in self._ask(one, _PORT, REPLICATION)]
        return masters[0] if len(masters) == 1 else None

    def another_than(self, lost: Machine) -> Machine | None:
        """Return the other machine if it is a master."""
        (other,) = [one for one in self.pair if one is not lost]
        return other if "role:master" in self._ask(other, _PORT, REPLICATION) else None

    def is_whole(self) -> bool:
        """Return whether there is one master, its replica follows, and Sentinels see all."""
        master = self.master()
        return (
            master is not None
            and "slave0:" in (said := self._ask(master, _PORT, REPLICATION))
            and "state=online" in said
            and all(_WHOLE in self._ask(one, 26379, "info sentinel") for one in self._machines)
        )

    def logs(self) -> str:
        """Return the ends of the machines' logs."""
        logs = [path for one in self._machines for path in sorted(one.disk.glob("*.log"))]
        return "\n".join(f"{path}:\n{path.read_text()[-1500:]}" for path in logs)

    def _ask(self, machine: Machine, port: int, command: str) -> str:
        with (
            suppress(OSError),
            socket.create_connection((machine.address, port), timeout=1) as plain,
            self._verifying.wrap_socket(plain, server_hostname=machine.address) as connection,
        ):
            connection.sendall(f"{command}\r\n".encode())
            return connection.recv(65536).decode()
        return ""

    def _start_machine(self, machine: Machine) -> None:
        machine.start()
        if machine in self.pair:
            # Sentinel makes the one that comes back a replica, whatever it begins as.
            first, second = self.pair
            follows = ["--replicaof", first.address, str(_PORT)] if machine is second else []
            machine.run(
                ["redis-server", machine.etc / "redis.conf", "--dir", machine.disk, *follows],
                "redis.log",
                {},
            )
        machine.run(["redis-sentinel", machine.etc / "sentinel.conf"], "sentinel.log", {})
