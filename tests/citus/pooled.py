"""PgBouncer in front of ledgers that move, and HAProxy, which knows where they are entered."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.citus.cluster import DEPLOY, PASSWORD, Citus, port
from tests.faults.clusters import folder_for_all
from tests.pgbouncer import deployed_logins, pooler
from tests.processes import end, free_port, start


@contextmanager
def pooled(citus: Citus) -> Iterator[dict[str, str]]:
    """Yield the settings that lead each ledger through a pooler to wherever it is entered."""
    with (
        proxied(citus) as servers,
        folder_for_all() as home,
        pooler(citus.url, deployed_logins(citus.url), home, servers) as urls,
    ):
        yield urls


@contextmanager
def proxied(citus: Citus) -> Iterator[dict[str, str]]:
    """Run the proxy, and yield its address for each ledger."""
    servers = {ledger: f"127.0.0.1:{free_port()}" for ledger in ("live", "test")}
    with folder_for_all() as home:
        for name in ("haproxy.cfg", "entered.sh"):
            copy = home / name
            copy.write_text((DEPLOY / name).read_text().replace("/etc/claim-ledger", str(home)))
            copy.chmod(0o755)
        passwords = home / "pgpass"
        passwords.write_text(f"*:*:*:*:{PASSWORD}\n")
        passwords.chmod(0o600)
        proxy = _start_proxy(citus, servers, home)
        try:
            yield servers
        finally:
            end(proxy, signal.SIGKILL)


def _start_proxy(citus: Citus, servers: dict[str, str], home: Path) -> "subprocess.Popen[bytes]":
    nodes = {
        f"NODE_{name.upper()}": f"127.0.0.1:{port(citus.nodes[name])}" for name in ("one", "two")
    }
    given = {ledger.upper(): address for ledger, address in servers.items()} | nodes
    with (home / "haproxy.log").open("wb") as log:
        return start(
            ["/usr/sbin/haproxy", "-db", "-f", home / "haproxy.cfg"],
            bound_by=signal.SIGKILL,
            env=os.environ | given,
            stdout=log,
            stderr=log,
        )
