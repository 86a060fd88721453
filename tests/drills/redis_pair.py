"""Redis on two machines, and Sentinel on these and a third: deploy/high_availability."""

import shutil
import socket
from contextlib import suppress
from pathlib import Path

from tests.drills.cluster import DEPLOYED
from tests.drills.losses import ways
from tests.drills.machines import Machine
from tests.patience import until

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
        self._sentinel = (DEPLOYED / "sentinel.conf").read_text()
        shutil.copy(DEPLOYED / "haproxy.cfg", home)

    @property
    def nodes(self) -> dict[str, str]:
        """The nodes' addresses, as the proxy's configuration names them."""
        one, two = self.pair
        return {"REDIS_ONE": one.address, "REDIS_TWO": two.address}

    def start(self) -> None:
        """Start all, and wait until the replica follows and every Sentinel knows the others."""
        for machine in self._machines:
            settings = self._sentinel.replace("REDIS_ONE", self.pair[0].address)
            (machine.disk / "sentinel.conf").write_text(settings)
            shutil.chown(machine.disk / "sentinel.conf", "postgres", "postgres")
            self._start_machine(machine)
        until(self.is_whole, look=0.2)

    def lose(self, machine: Machine, kind: str) -> None:
        """Lose a machine."""
        ways(machine, kind, lambda: self._start_machine(machine)).lose()

    def restore(self, machine: Machine, kind: str) -> None:
        """Bring it back."""
        ways(machine, kind, lambda: self._start_machine(machine)).restore()

    def master(self) -> Machine | None:
        """Return the machine that is the only master."""
        masters = [one for one in self.pair if "role:master" in _ask(one, _PORT, REPLICATION)]
        return masters[0] if len(masters) == 1 else None

    def another_than(self, lost: Machine) -> Machine | None:
        """Return the other machine if it is a master."""
        (other,) = [one for one in self.pair if one is not lost]
        return other if "role:master" in _ask(other, _PORT, REPLICATION) else None

    def is_whole(self) -> bool:
        """Return whether there is one master, its replica follows, and Sentinels see all."""
        master = self.master()
        return (
            master is not None
            and "slave0:" in (said := _ask(master, _PORT, REPLICATION))
            and "state=online" in said
            and all(_WHOLE in _ask(one, 26379, "info sentinel") for one in self._machines)
        )

    def _start_machine(self, machine: Machine) -> None:
        machine.start()
        if machine in self.pair:
            # Sentinel makes the one that comes back a replica, whatever it begins as.
            first, second = self.pair
            follows = ["--replicaof", first.address, str(_PORT)] if machine is second else []
            machine.run(
                ["redis-server", "--save", "", "--protected-mode", "no", *follows], "redis.log", {}
            )
        machine.run(["redis-sentinel", machine.disk / "sentinel.conf"], "sentinel.log", {})


def _ask(machine: Machine, port: int, command: str) -> str:
    with (
        suppress(OSError),
        socket.create_connection((machine.address, port), timeout=1) as connection,
    ):
        connection.sendall(f"{command}\r\n".encode())
        return connection.recv(65536).decode()
    return ""
