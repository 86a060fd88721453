"""Connections that leave a machine are encrypted, and whom they reach is verified."""

from pathlib import Path

import psycopg
import pytest
from structlog.testing import capture_logs

from service.app.databases import database_of
from service.cli.dev.postgres import EmbeddedPostgres, debian_bin_dir
from service.http.rate_limit import redis
from service.http.rate_limit.limiter import RateLimiter
from service.ledger.database import Database, warn_of_plaintext
from service.ledger.login import login_fault
from tests.certificates import certificate
from tests.databases import login_url, migrated, run
from tests.faults.clusters import Cluster, folder_for_all
from tests.http.limiting import HOUR
from tests.patience import PATIENCE_SECONDS
from tests.redis_server import RedisServer
from tests.tables import every_row
from tests.world import settings_for


@pytest.fixture
def folder():
    """Return a folder that the server's user can read."""
    with folder_for_all() as one:
        yield one


async def test_postgresql_is_verified(folder, tmp_path):
    """By the authority of the URL and the name in it; what is wrong is one line."""
    bin_dir = debian_bin_dir()  # the wheel's PostgreSQL has no TLS
    if bin_dir is None:
        pytest.skip("Debian's PostgreSQL is not installed")
    right, other = certificate(folder, "127.0.0.1"), certificate(folder, "127.0.0.2")
    over_tls = {
        "ssl": "on",
        "ssl_cert_file": str(right),
        "ssl_key_file": str(right.with_suffix(".key")),
    }
    with EmbeddedPostgres(
        tmp_path / "tls", bin_dir=bin_dir, settings=over_tls, durable=False
    ) as server:
        password = server.url.split(":")[2].partition("@")[0]
        run(server.url, f"create role claim_ledger_live login password '{password}'")
        url = login_url(server.url, "live")
        named = url.replace("@127.0.0.1", "@localhost")
        said = {
            f"{url}?sslmode=verify-full&sslrootcert={right}": "",
            f"{named}?sslmode=require": "",
            f"{url}?sslmode=verify-full&sslrootcert={other}": "certificate verify failed",
            f"{named}?sslmode=verify-full&sslrootcert={right}": "certificate verify failed",
        }
        with every_row() as row:
            for text, expected in said.items():
                with row(text.partition("?")[2]):
                    fault = await fault_of(text)
                    assert expected in fault
                    assert bool(fault) == bool(expected)
                    assert password not in fault


ELSEWHERE = """
create or replace function pg_catalog.inet_server_addr() returns inet language sql
as $$select inet '10.0.0.7'$$
"""
"""Has a server say that it is on another machine: a proxy of this one may lead there."""


async def test_a_session_that_leaves_the_machine_unencrypted_is_told_of(folder, tmp_path):
    """Whatever the URL's host, once; not if PostgreSQL is here, nor if the network encrypts."""
    bin_dir = debian_bin_dir()  # the wheel's PostgreSQL has no TLS
    if bin_dir is None:
        pytest.skip("Debian's PostgreSQL is not installed")
    made = certificate(folder, "127.0.0.1")
    given = {"ssl_cert_file": str(made), "ssl_key_file": str(made.with_suffix(".key"))}
    with EmbeddedPostgres(
        tmp_path / "tls", bin_dir=bin_dir, settings={"ssl": "on", **given}, durable=False
    ) as server:
        cluster = Cluster(server, bin_dir)
        cluster.admit_superuser()
        migrated(server.url)
        url = f"{login_url(server.url, 'live')}?sslmode="
        assert await told(f"{url}disable") == []
        with psycopg.connect(cluster.superuser_url, dbname="claim_ledger") as superuser:
            superuser.execute(ELSEWHERE)
        said = [("a session with PostgreSQL is not encrypted", "live")]
        assert await told(f"{url}disable", f"{url}disable") == said
        assert await told(f"{url}require") == []
        assert await told(f"{url}disable", PLAINTEXT_HOSTS="127.0.0.1") == []
        assert await told(f"{url}disable", PLAINTEXT_HOSTS="10.0.0.7") == said


async def told(*urls: str, **given: str) -> list[tuple[str, str]]:
    """Return what a new process logs of the ledger live, which it opens by each of the URLs."""
    warn_of_plaintext.cache_clear()  # stands for a new process
    with capture_logs() as lines:
        for url in urls:
            settings = settings_for(url, Path("/nowhere"), LIVE_DATABASE_URL=url, **given)
            assert await login_fault(database_of(settings, "live", PATIENCE_SECONDS)) is None
    return [(line["event"], line["ledger"]) for line in lines]


async def test_a_server_without_tls_is_named(postgres_url):
    """A URL that asks for TLS is not answered in clear text."""
    assert "rejected SSL upgrade" in await fault_of(f"{postgres_url}?sslmode=require")


async def test_redis_is_verified(folder, tmp_path, monkeypatch):
    """By the authority of the URL; one that is somebody else's is as good as away."""
    monkeypatch.setattr(redis, "TIMEOUT_SECONDS", PATIENCE_SECONDS)
    right, other = certificate(folder, "127.0.0.1"), certificate(folder, "127.0.0.2")
    server = RedisServer(tmp_path)
    if server.binary is None:
        pytest.skip("redis-server is not installed")
    server.start(tls=right)
    found: dict[Path, list[bool]] = {right: [], other: []}
    reasons: list[str] = []
    for authority, degraded in found.items():
        url = f"rediss://127.0.0.1:{server.tls_port}/0?ssl_ca_certs={authority}"
        limiter = RateLimiter(
            redis_url=url, per_minute=5, window_seconds=HOUR, on_degraded=degraded.append
        )
        with capture_logs() as lines:
            await limiter.charge("p1")
        reasons += [line["error_type"] for line in lines]
        await limiter.close()
    server.stop()
    assert reasons == ["SSLCertVerificationError"]
    assert found == {right: [], other: [True]}


async def fault_of(url: str) -> str:
    """Return what is wrong with the login of a URL."""
    return await login_fault(Database(url, "live", pool_size=1, deadline=PATIENCE_SECONDS)) or ""
