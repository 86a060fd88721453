"""A PostgreSQL server that is a child of this process and never outlives it."""

import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired
from typing import IO, Final, Self

from service.cli.dev.ports import HOST, free_port
from service.cli.dev.postgres.binaries import usable_binaries, wheel_bin_dir
from service.cli.dev.postgres.cluster import OWNER, ensure_cluster
from service.cli.dev.postgres.directory import (
    lock,
    open_log,
    password,
    recorded_port,
    replace,
    seen_by,
)
from service.cli.dev.postgres.faults import EmbeddedPostgresError, describe, reason
from service.cli.dev.postgres.processes import (
    evict,
    pid_file,
    send,
    server_user,
    servers_tagged,
    spawn,
    wait_until_gone,
)

_START_SECONDS_MAX: Final = 120.0  # replaying the log after a crash of a large database
_STOP_SECONDS_MAX: Final = 15.0
_POLL_SECONDS: Final = 0.01
_PORT_ATTEMPTS_MAX: Final = 5
_PORT_TAKEN: Final = "Address already in use"

_SETTINGS: Final = {
    "max_connections": "100",
    "lc_messages": "C",  # faults are recognised by their English text
}
_SETTINGS_NOT_DURABLE: Final = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
}


class EmbeddedPostgres:
    """One server on one directory, listening on 127.0.0.1 alone; a context manager.

    `bin_dir` defaults to the wheel's PostgreSQL 18, `port` to the last one or any free one;
    `settings` are PostgreSQL's own and win over ours. `durable=False` trades safety from a
    machine's crash for speed (tests); as synchronous_commit is off, `shutdown_abruptly` may then
    lose the last commits too: fault tests that count them ask for it on.

    Call `start` from the main thread: on Linux the server is stopped (fast shutdown) when the
    thread that started it ends, however it ends.

    The directory is ours: a server that is left over in it is stopped before the next starts.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        bin_dir: Path | None = None,
        port: int | None = None,
        settings: Mapping[str, str] = {},
        durable: bool = True,
    ) -> None:
        self.data_dir = data_dir.resolve()
        self._bin_dir = bin_dir
        self._port = port
        self._durable = durable
        self._settings = _SETTINGS | ({} if durable else _SETTINGS_NOT_DURABLE) | dict(settings)
        self._held: IO[str] | None = None
        self._process: Popen[bytes] | None = None
        self._tag = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def postmaster_pid(self) -> int:
        """The server's first process, for fault tests; raises when it is not started."""
        if self._process is None:
            raise EmbeddedPostgresError(f"{self.data_dir} is not started")
        return self._process.pid

    @property
    def url(self) -> str:
        """The owner's database URL: postgresql://claim_ledger:…@127.0.0.1:<port>/claim_ledger."""
        port = self._port or recorded_port(self.data_dir)
        if port is None:
            raise EmbeddedPostgresError(f"{self.data_dir} was never started")
        return f"postgresql://{OWNER}:{password(self.data_dir)}@{HOST}:{port}/{OWNER}"

    def start(self) -> str:
        """Start the server, creating its cluster on first use; return the owner's database URL.

        Returns when the server accepts connections. Raises EmbeddedPostgresError, and leaves
        nothing running, when the directory is in use, unwritable, on a full disk or of another
        major version, when the port is taken, a library is missing, or PostgreSQL gives up.
        """
        if self._process is not None:
            raise EmbeddedPostgresError(f"{self.data_dir} is already started")
        try:
            self._start()
        except OSError as error:
            self.stop()
            raise EmbeddedPostgresError(describe(error, self.data_dir)) from error
        except BaseException:  # Ctrl-C must not leave a server
            self.stop()
            raise
        return self.url

    def stop(self) -> None:
        """Stop the server: clients are cut off, committed data is safe. Idempotent.

        A server that does not stop within 15 s is killed; the next start then recovers.
        """
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            with suppress(TimeoutExpired):  # then it is killed below, with its children
                self._process.wait(_STOP_SECONDS_MAX)
        self.shutdown_abruptly()

    def shutdown_abruptly(self) -> None:
        """Kill every process of the server at once, like a power cut; `start` recovers."""
        if self._process is not None:
            # Stopped first, so that it forks no more children.
            self._process.send_signal(signal.SIGSTOP)
            send(servers_tagged(self._tag), signal.SIGKILL)
            self._process.kill()
            self._process.wait()
            wait_until_gone(self._tag, _STOP_SECONDS_MAX)
            self._process = None
        if self._held is not None:
            self._held.close()
            self._held = None

    def _start(self) -> None:
        self._held = lock(self.data_dir)
        user = server_user(self.data_dir / "cluster")
        binaries = usable_binaries(self._bin_dir or wheel_bin_dir(), user)
        cluster = ensure_cluster(
            self.data_dir, binaries, password=password(self.data_dir), durable=self._durable
        )
        found = cluster.stat()
        # Bracketed, so that no tag is a prefix of another.
        self._tag = f"claim-ledger[{found.st_dev:x}:{found.st_ino:x}]"
        evict(cluster, self._tag, seconds_max=_STOP_SECONDS_MAX)
        ports = self._ports()
        for port in ports:
            with (
                open_log(self.data_dir / "postgres.log") as log,
                seen_by(user, cluster) as (path, descriptors),
            ):
                log_start = log.seek(0, 2)
                self._process = spawn(
                    [binaries.bin_dir / "postgres", "-D", path, *self._options(port)],
                    user,
                    output=log,
                    stdin=DEVNULL,
                    pass_fds=descriptors,
                )
                if self._wait_until_ready(cluster):
                    replace(self.data_dir / "port", str(port))
                    return
                log.seek(log_start)
                output = log.read().decode(errors="replace")
            self._process = None
            if _PORT_TAKEN not in output:
                raise EmbeddedPostgresError(
                    f"PostgreSQL did not start: {reason(output)} (see {self.data_dir}/postgres.log)"
                )
        raise EmbeddedPostgresError(f"port {', '.join(map(str, ports))} on {HOST} is taken")

    def _ports(self) -> list[int]:
        """Return the ports to try: only the given one, or the last one and then free ones."""
        if self._port is not None:
            return [self._port]
        last = recorded_port(self.data_dir)
        free = [free_port() for _ in range(_PORT_ATTEMPTS_MAX)]
        return free if last is None else [last, *free]

    def _options(self, port: int) -> list[str]:
        options = self._settings | {
            "port": str(port),
            "listen_addresses": HOST,
            # None: a socket's path is at most 107 bytes, and TCP on the loopback is enough.
            "unix_socket_directories": "",
            "cluster_name": self._tag,
        }
        return [part for name, value in options.items() for part in ("-c", f"{name}={value}")]

    def _wait_until_ready(self, cluster: Path) -> bool:
        """Wait for the state in postmaster.pid, as pg_ctl does; False if the server gave up."""
        process = self._process
        deadline = time.monotonic() + _START_SECONDS_MAX
        while process is not None and process.poll() is None:
            lines = pid_file(cluster)
            if lines[:1] == [str(process.pid)] and lines[7:8] in (["ready"], ["standby"]):
                return True
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(
                    f"PostgreSQL was not ready within {_START_SECONDS_MAX:.0f} s "
                    f"(see {self.data_dir}/postgres.log)"
                )
            time.sleep(_POLL_SECONDS)
        return False
