"""A real redis-server for one test, which can be killed, frozen and restarted."""

import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.patience import PATIENCE_SECONDS, until
from tests.processes import end, free_port, start


class RedisServer:
    """One redis-server on a free loopback port, without persistence."""

    def __init__(self, directory: Path) -> None:
        """Choose the port; `directory` is the server's working directory."""
        self.binary = shutil.which("redis-server")
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.tls_port = 0

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self, *, cluster: bool = False, tls: Path | None = None) -> None:
        """Start it, always on the same port, and wait until it answers.

        `cluster`: as the one node of a cluster, which has all slots. `tls`: a certificate, beside
        its key, with which it listens on `tls_port`, too.
        """
        assert self.binary is not None, "redis-server is not installed"
        assert self._process is None, "already started"
        options: dict[str, object] = {
            "port": self.port,
            "bind": "127.0.0.1",
            "save": "",
            "appendonly": "no",
        }
        if cluster:
            # Without it, the bus has a port ten thousand higher, which there may not be.
            bus = {"cluster-port": free_port()}
            options |= {"cluster-enabled": "yes", "cluster-config-file": "nodes.conf"} | bus
        if tls:
            self.tls_port = free_port()
            files = {"tls-cert-file": tls, "tls-key-file": tls.with_suffix(".key")}
            options |= {"tls-port": self.tls_port, "tls-auth-clients": "no", **files}
            options |= {"tls-ca-cert-file": tls}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        self._process = start(
            [self.binary, *words, "--dir", str(self._directory)],
            bound_by=signal.SIGKILL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(self._is_up)
        if cluster:
            assert self.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383") == b"+OK\r\n"
            until(lambda: b"cluster_state:ok" in self.command("CLUSTER", "INFO"))

    def command(self, *words: str) -> bytes:
        """Return the first bytes of the reply to one command; empty when nobody answers."""
        line = "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
        with (
            suppress(OSError),
            socket.create_connection(
                ("127.0.0.1", self.port), timeout=PATIENCE_SECONDS
            ) as connection,
        ):
            connection.sendall(f"*{len(words)}\r\n{line}".encode())
            return connection.recv(65536)
        return b""

    def stop(self) -> None:
        """Stop it in an orderly way; do nothing if it is not running."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it with SIGKILL: connections are cut, later ones refused."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Freeze it: connections open, but nothing is answered."""
        assert self._process is not None, "not running"
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue after `pause`."""
        assert self._process is not None, "not running"
        self._process.send_signal(signal.SIGCONT)

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "redis-server ended while starting"
        return self.command("PING") == b"+PONG\r\n"

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)  # a frozen one would not end
            end(self._process, number)
            self._process = None
