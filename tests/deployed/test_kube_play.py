"""`deploy/kubernetes`, run by Podman: migrate, API and worker of the overlay `development`.

PostgreSQL with TLS, and Redis, are servers of the test, and the secrets are those of the overlay's
store. `just test-kube-play`; skipped where Podman, kubectl, or a Docker for the image is missing.
"""

import psycopg
import pytest

from service.cli.dev.postgres import EmbeddedPostgres, debian_bin_dir
from tests.certificates import certificate
from tests.deployed.main_path import main_path
from tests.deployed.podman import Overlay, Podman, missing
from tests.patience import until
from tests.processes import free_port
from tests.redis_server import RedisServer
from tests.world import TEAM

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]

OWNERS_PASSWORD = "example-o"
"""Of the overlay's store: an example that everybody has."""


@pytest.fixture
def overlay(folder):
    """Return the overlay, with the addresses of this machine's PostgreSQL and Redis."""
    if lacking := missing():
        pytest.skip(f"there is no {lacking} here")
    bin_dir = debian_bin_dir()  # the wheel's PostgreSQL has no TLS
    if bin_dir is None:
        pytest.skip("Debian's PostgreSQL is not installed")
    made = certificate(folder, "127.0.0.1")
    over_tls = {
        "ssl": "on",
        "ssl_cert_file": str(made),
        "ssl_key_file": str(made.with_suffix(".key")),
    }
    redis = RedisServer(folder)
    redis.start()
    with EmbeddedPostgres(
        folder / "postgres", bin_dir=bin_dir, settings=over_tls, durable=False
    ) as server:
        with psycopg.connect(server.url, autocommit=True) as owner:
            owner.execute(f"alter role claim_ledger password '{OWNERS_PASSWORD}'".encode())
        address = server.url.rpartition("@")[2].partition("/")[0]
        moved = {
            "claim-ledger-db-rw:5432": address,
            "redis://redis:6379/0": redis.url,
            "smtp://mail:1025": "file:///tmp/mail",
        }
        yield Overlay("development", {"claim-ledger-db-ca": {"ca.crt": made.read_text()}}, moved)
    redis.stop()


def test_the_manifests_lead_to_a_first_claim(overlay, folder):
    """Read-only, without a capability, with the secrets as files; SIGTERM ends each in order."""
    podman = Podman(folder)
    port = free_port()
    listening = {"CLAIM_LEDGER_HOST": "127.0.0.1", "CLAIM_LEDGER_OPERATIONS_HOST": "127.0.0.1"}
    shown = {"CLAIM_LEDGER_PUBLIC_URL": f"http://127.0.0.1:{port}", "CLAIM_LEDGER_PORT": str(port)}

    def given():
        return listening | shown | {"CLAIM_LEDGER_OPERATIONS_PORT": str(free_port())}

    with podman.played(overlay, "claim-ledger-migrate", {}) as (_, migrate):
        assert podman.exit_code(migrate) == 0, podman.logs(migrate)
    with (
        podman.played(overlay, "claim-ledger-api", given()) as (api_pod, api),
        podman.played(overlay, "claim-ledger-worker", given()) as (worker_pod, worker),
    ):
        for one in (api, worker):
            until(
                lambda one=one: podman.answers(one, "claim-ledger", "health"),
                lambda one=one: podman.logs(one),
                look=1,
            )
        staff = ("--env", f"CLAIM_LEDGER_STAFF={TEAM}")
        main_path(lambda words: podman.run("exec", *staff, api, *words), port)
        status = podman.run("exec", api, "python3", "-c", "print(open('/proc/1/status').read())")
        assert {"CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} <= set(
            status.splitlines()
        )
        for pod, one in ((api_pod, api), (worker_pod, worker)):
            podman.run("pod", "stop", "--time", "60", pod)
            assert podman.exit_code(one) == 0, podman.logs(one)
