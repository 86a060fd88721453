"""What crosses between the machines, and who is let in without TLS."""

import socket
import ssl
import time

import httpx
import psycopg
import pytest

from tests.drills.cluster import PatroniCluster
from tests.drills.encryption import verifying
from tests.drills.installation import Installation
from tests.drills.losses import accepted
from tests.drills.machines import home_of_machines
from tests.drills.redis_pair import RedisPair
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.server
SESSIONS = """
select array_agg(distinct usename || case when ssl then ' over TLS' else ' in the clear' end)
from pg_stat_ssl join pg_stat_activity using (pid) where client_addr is not null
"""
LEDGERS = ("accounts", "live", "test")
UNVERIFIED = "a session with PostgreSQL is not encrypted"


@pytest.mark.timeout(1800)
async def test_what_crosses_between_machines_is_encrypted():
    """The service's sessions and replication are; whoever asks for less is let in nowhere."""
    with home_of_machines() as home:
        cluster, pair = PatroniCluster(home), RedisPair(home)
        cluster.start()
        pair.start()
        nodes = cluster.nodes | pair.nodes
        installation = Installation(home, cluster.url, nodes, REDIS_URL=pair.url)
        async with (
            installation.running(pooled=True) as served,
            installation.load(served, 0),
        ):
            await accepted(installation, time.monotonic())
            await eventually(installation.shares_limits, look=0.2)
            found = cluster.value(SESSIONS)
        users = {one.partition(" ")[0] for one in found}
        assert {f"claim_ledger_{ledger}" for ledger in LEDGERS} | {"replicator"} <= users
        assert [one for one in found if not one.endswith("over TLS")] == []
        assert UNVERIFIED not in (home / "serve.log").read_text()
        _refuses_plain_sessions(cluster)
        _refuses_those_without_a_certificate(cluster, home)
        master = pair.master()
        assert master is not None
        for port in (6379, 26379):
            assert _said_in_the_clear(master.address, port) == b""


def _refuses_plain_sessions(cluster):
    primary = cluster.primary()
    url = cluster.owner_url(f"{primary.address}:5432")
    for database in ("", "?replication=true"):
        plain = f"{url}{database}{'&' if database else '?'}sslmode=disable"
        with pytest.raises(psycopg.OperationalError, match="no encryption"):
            psycopg.connect(plain)


def _refuses_those_without_a_certificate(cluster, home):
    """Patroni answers what they ask, and does nothing that they say; etcd answers nothing."""
    primary, etcd = cluster.primary(), cluster.etcds[0]
    told = httpx.post(
        f"https://{primary.address}:8008/restart", json={}, verify=verifying(home), timeout=10
    )
    assert told.status_code == 403
    for url in (f"http://{primary.address}:8008/primary", f"http://{etcd.address}:2379/health"):
        with pytest.raises(httpx.HTTPError):
            httpx.get(url, verify=NO_TLS, timeout=PATIENCE_SECONDS).raise_for_status()
    with pytest.raises((httpx.TransportError, ssl.SSLError)):  # as the handshake is over for us
        httpx.get(f"https://{etcd.address}:2379/health", verify=verifying(home))


def _said_in_the_clear(address, port):
    with socket.create_connection((address, port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(b"PING\r\n")
        try:
            return connection.recv(100)
        except ConnectionError:
            return b""
