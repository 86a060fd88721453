"""`claim-ledger serve` and `worker` as an operator runs them: processes, signals, settings."""

import asyncio
import json
import os
import re
import signal
import socket
from base64 import b64decode
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest

from service.app.settings import SERVE, Settings
from service.ledger.encryption import MasterKeys
from tests.bench.processes import children
from tests.dev_process import PROGRAM, environment, no_orphans, run
from tests.key_service import NAME, key_service
from tests.mail.mail_server import MailServer
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, until
from tests.prepared import PreparedProcess, start_prepared
from tests.processes import Running, free_port, start
from tests.small_disk import fill
from tests.world import MASTER_KEY, STAFF, TEAM, claim_body, service_on

NEW_KEY = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
NOT_PUBLIC = ("/metrics", "//metrics", "/%6detrics", "/metrics/", "/health")
WORKER = b"service.app.worker"
"""What the command line of the worker that `serve` runs has."""
LOOK_SECONDS = 0.05
"""Between two looks that cost a connection or a walk: they compete with what they wait for."""


@contextmanager
def running(command: str, env: Mapping[str, str], log: Path) -> Generator[PreparedProcess]:
    """Run `serve` or `worker`, which must exit with 0 after SIGTERM with no worker killed."""
    with log.open("wb") as output:
        process = start_prepared([command], env, output, output)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(PATIENCE_SECONDS)
    assert code == 0
    assert b"Killing worker" not in log.read_bytes()


def address_of(env: Mapping[str, str]) -> str:
    """Return the address that this `serve` listens on."""
    return f"http://127.0.0.1:{env['CLAIM_LEDGER_PORT']}"


def operations_of(env: Mapping[str, str]) -> str:
    """Return the address of the operations listener of this `serve` or `worker`."""
    return f"http://127.0.0.1:{env['CLAIM_LEDGER_OPERATIONS_PORT']}"


def api_is_up(scrape: str) -> str:
    """Return a scrape that says so, or else nothing: it may not be for a moment."""
    return scrape if "claim_ledger_api_up 1.0" in scrape else ""


def scraped(env: Mapping[str, str], path: str = "/metrics") -> httpx.Response:
    """Return an answer of the operations listener, once there is one."""
    found: list[httpx.Response] = []

    def answers() -> bool:
        with suppress(httpx.TransportError):
            found.append(
                httpx.get(f"{operations_of(env)}{path}", timeout=PATIENCE_SECONDS, verify=NO_TLS)
            )
        return bool(found)

    until(answers, look=LOOK_SECONDS)
    return found[0]


def up(env: Mapping[str, str]) -> None:
    """Wait until `serve` answers."""

    def answers() -> bool:
        url = f"{address_of(env)}/health/live"
        with suppress(httpx.TransportError):
            return httpx.get(url, timeout=PATIENCE_SECONDS, verify=NO_TLS).is_success
        return False

    until(answers, look=LOOK_SECONDS)


def ready(env: Mapping[str, str]) -> int:
    """Return the status with which `serve` answers a load balancer."""
    url = f"{address_of(env)}/health/ready"
    return httpx.get(url, timeout=PATIENCE_SECONDS, verify=NO_TLS).status_code


def settings(database_url: str, tmp_path: Path, **more: str) -> dict[str, str]:
    """Return the environment of a `serve` on a free port."""
    port = str(free_port())
    given = {
        "DATABASE_URL": database_url,
        "MASTER_KEYS": MASTER_KEY,
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "SMTP_URL": (tmp_path / "mail").as_uri(),
        "PORT": port,
        "STAFF": TEAM,
        "OPERATIONS_PORT": "0",
    }
    return environment(**given | more)


def team(env: Mapping[str, str], *arguments: str) -> dict[str, str]:
    """Run a command of the team on the installation."""
    return json.loads(run(*arguments, "--json", env=env).stdout)


def live_key(env: Mapping[str, str]) -> str:
    """Return the token of a new approved partner."""
    return asyncio.run(partner_and_entity(env))[0]


async def partner_and_entity(env: Mapping[str, str]) -> tuple[str, str]:
    """Return the token of a new approved partner, and the id of a new business.

    By a service of this process's own, which takes a tenth of what commands take.
    """
    async with service_on(Settings.from_environment(env, require=SERVE)) as service:
        partner_id = await service.partners.add("P", "p@example.com", STAFF)
        await service.partners.approve(partner_id, STAFF)
        key = await service.partners.issue_key(partner_id, "live", STAFF)
        entities = service.modes["live"].entities
        return key.token, await entities.add("E", "e@example.com", None, STAFF, another=True)


def children_of(process: Running) -> dict[int, bytes]:
    """Return the command lines of a process's children by pid."""
    found: dict[int, bytes] = {}
    for pid in children(process.pid):
        with suppress(FileNotFoundError, ProcessLookupError):  # it may end meanwhile
            found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes()
    return found


def api_processes(process: Running) -> list[int]:
    """Return the pids of the processes that serve the API."""
    found = children_of(process).items()
    return [pid for pid, command in found if command and WORKER not in command]


def worker_process(process: Running) -> int | None:
    """Return the pid of the worker that `serve` runs."""
    found = children_of(process).items()
    return next((pid for pid, command in found if WORKER in command), None)


def begun_since(process: Running, known: Sequence[int]) -> list[int]:
    """Return the API's processes beside those that are known."""
    return [pid for pid in api_processes(process) if pid not in known]


async def test_four_workers_share_limit_and_metrics(database_url, tmp_path, redis_server):
    """Four workers share one rate limit and one scrape; a crashed worker is restarted.

    Each says once that a proxy which is not trusted forwards requests. The scrape is the operations
    listener's, and counts what the crashed one has answered.
    """
    operations = str(free_port())
    env = settings(
        database_url,
        tmp_path,
        WORKERS="4",
        REDIS_URL=redis_server.url,
        OPERATIONS_PORT=operations,
        RUN_WORKER="off",
    )
    token, _ = await partner_and_entity(env)
    headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": "192.0.2.7:4711"}
    log = tmp_path / "serve.log"
    with no_orphans(), running("serve", env, log) as process:
        up(env)
        async with httpx.AsyncClient(
            base_url=address_of(env), timeout=PATIENCE_SECONDS, verify=NO_TLS
        ) as client:
            a_few = asyncio.Semaphore(16)  # each answered in time, however busy the machine is

            async def ask() -> int:
                async with a_few:
                    asked = client.get("/v1/claims", headers=headers, params={"entity_id": "x"})
                    return (await asked).status_code

            codes = await asyncio.gather(*(ask() for _ in range(300)))
            first = api_processes(process)
            os.kill(first[0], signal.SIGKILL)
            (again,) = until(lambda: begun_since(process, first))
            os.kill(again, signal.SIGKILL)
            until(lambda: begun_since(process, [*first, again]))
            assert set(first[1:]) < set(api_processes(process))  # one that ends twice ends no other
            # The SIGTERM that follows meets a worker that has just been started.
            scrape = await asyncio.to_thread(until, lambda: api_is_up(scraped(env).text))
            public = [
                (await client.get(f"{address_of(env)}{path}")).status_code for path in NOT_PUBLIC
            ]
    counted = re.findall(
        r'^claim_ledger_requests_total\{[^}]*route="/v1/claims",status="(404|429)"[^}]*\} (\S+)$',
        scrape,
        re.MULTILINE,
    )
    assert public == [404] * len(NOT_PUBLIC)
    assert 'claim_ledger_database_up{ledger="live"} 1.0' in scrape
    totals = {status: sum(float(n) for s, n in counted if s == status) for status in ("404", "429")}
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert (codes.count(404), codes.count(429)) == (120, 180)
    assert totals == {"404": 120, "429": 180}
    assert [line for line in lines if not {"at", "level", "event"} <= set(line)] == []
    noticed = [line["level"] for line in lines if "TRUSTED_PROXIES" in line["event"]]
    assert noticed in [["warning"] * count for count in (1, 2, 3, 4)]


@asynccontextmanager
async def mail_server() -> AsyncGenerator[tuple[MailServer, str]]:
    """Return a mail server and its URL."""
    server = MailServer()
    port = await server.start()
    yield server, f"smtp://127.0.0.1:{port}"
    await server.stop()


def all_sent(database_url: str, count: int) -> bool:
    """Return whether the outbox has this many mails, all sent."""
    with psycopg.connect(database_url) as connection:
        states = connection.execute("select state from live.mail_outbox").fetchall()
    return states == [("sent",)] * count


async def test_workers_follow_the_log_for_serve(database_url, tmp_path):
    """Two workers number events and mail each link once for a serve without a worker.

    One of the three has the port of their operations listeners; the others go on without.
    """
    async with mail_server() as (server, url):
        env = settings(
            database_url,
            tmp_path,
            SMTP_URL=url,
            RUN_WORKER="off",
            OPERATIONS_PORT=str(free_port()),
        )
        token, _ = await partner_and_entity(env)
        headers = {"Authorization": f"Bearer {token}"}
        with (
            running("worker", env, tmp_path / "one.log"),
            running("worker", env, tmp_path / "two.log"),
            running("serve", env, tmp_path / "serve.log"),
        ):
            await asyncio.to_thread(up, env)
            async with httpx.AsyncClient(
                base_url=address_of(env), timeout=PATIENCE_SECONDS, verify=NO_TLS
            ) as client:
                for number in range(10):
                    body = {
                        "partner_user_id": f"u{number}",
                        "company_name": "C",
                        "user_email": f"u{number}@example.com",
                    }
                    code = 503  # as partners do: on a busy machine it may not be done in time
                    while code == 503:
                        answer = await client.post("/v1/onboardings", json=body, headers=headers)
                        code = answer.status_code
                    assert code in {200, 201}
            await asyncio.to_thread(until, partial(all_sent, database_url, 10), look=LOOK_SECONDS)
            health = (await asyncio.to_thread(scraped, env, "/health")).json()
    ids = [re.findall(rb"(?im)^message-id: (\S+)", mail)[0] for mail in server.received]
    ids = [one for one in ids if b"onb_" in one]  # the partner got others
    assert (len(ids), len(set(ids))) == (10, 10)
    assert health["figures"]["database_up"] == {"accounts": 1, "live": 1, "test": 1}


def numbered(database_url: str) -> bool:
    """Return whether every event of the accounts has its position, and there is one."""
    with psycopg.connect(database_url) as connection:
        (waiting,) = connection.execute("select count(*) from accounts.pending").fetchone() or (1,)
        (size,) = connection.execute("select size from accounts.head").fetchone() or (0,)
    return waiting == 0 and size > 0


def test_serve_runs_the_worker_beside_the_api(database_url, tmp_path):
    """It numbers events, is restarted when it is killed, and ends with a `serve` that is killed."""
    env = settings(database_url, tmp_path)
    log = tmp_path / "serve.log"
    with no_orphans(), log.open("wb") as output:
        process = start([PROGRAM, "serve"], env=env, stdout=output, stderr=output)
        up(env)
        live_key(env)
        until(lambda: numbered(database_url), look=LOOK_SECONDS)
        first = worker_process(process)
        assert first is not None
        assert first not in api_processes(process)
        os.kill(first, signal.SIGKILL)
        until(lambda: worker_process(process) not in {first, None}, look=LOOK_SECONDS)
        live_key(env)
        until(lambda: numbered(database_url), look=LOOK_SECONDS)
        process.kill()
        process.wait(PATIENCE_SECONDS)
    assert b"worker ended and is restarted" in log.read_bytes()
    assert b"the owner's database url is in the environment" in log.read_bytes()


def test_serve_starts_before_postgresql(migrated_clusters, tmp_path):
    """Without PostgreSQL serve starts and answers 503; once it is up, requests succeed."""
    with migrated_clusters.server(tmp_path / "postgres", durable=False) as server:
        env = settings(server.url, tmp_path)
        token, entity_id = asyncio.run(partner_and_entity(env))
        headers = {"Authorization": f"Bearer {token}"}
        server.stop()
        with (
            running("serve", env, tmp_path / "serve.log"),
            httpx.Client(timeout=PATIENCE_SECONDS, verify=NO_TLS) as client,
        ):
            up(env)
            ready = client.get(f"{address_of(env)}/health/ready")
            refused = client.post(
                f"{address_of(env)}/v1/claims", json=claim_body(entity_id), headers=headers
            )
            server.start()
            until(lambda: client.get(f"{address_of(env)}/health/ready").status_code == 200)
            answer = client.post(
                f"{address_of(env)}/v1/claims", json=claim_body(entity_id), headers=headers
            )
    assert (ready.status_code, refused.status_code) == (503, 503)
    assert refused.json()["code"] == "service_unavailable"
    assert int(refused.headers["Retry-After"]) >= 1
    assert answer.json()["code"] == "entity_not_owned"


def test_a_ring_without_the_services_keys_is_not_ready(database_url, tmp_path):
    """After a rotation, only a process that has opened them goes on: no other is ready, or starts.

    The API's process that `serve` starts anew has the ring that `serve` began with.
    """
    env = settings(database_url, tmp_path, RUN_WORKER="off")
    rotated = env | {"CLAIM_LEDGER_MASTER_KEYS": f"{NEW_KEY},{MASTER_KEY}"}
    newest = MasterKeys([b64decode(NEW_KEY)]).newest
    team(env, "staff", "add", TEAM)
    log = tmp_path / "serve.log"
    with running("serve", env, log) as process:
        up(env)
        until(lambda: ready(env) == 200, look=LOOK_SECONDS)
        team(rotated, "keys-at-rest", "rotate")
        went_on, healthy = ready(env), run("health", env=env)
        (first,) = api_processes(process)
        os.kill(first, signal.SIGKILL)
        until(lambda: api_processes(process) not in ([], [first]), look=LOOK_SECONDS)
        up(env)
        anew, ill = ready(env), run("health", env=env)
    ended = [run(command, env=env) for command in ("serve", "worker")]
    assert (went_on, anew) == (200, 503)
    assert (healthy.returncode, ill.returncode) == (0, 1)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    missing = {one["master_key_id"] for one in lines if one["event"] == "master key missing"}
    assert missing == {newest}
    for one in ended:
        line = f"Error: CLAIM_LEDGER_MASTER_KEYS: no master key {newest} in the ring\n"
        assert (one.returncode, one.stderr) == (1, line)


@pytest.mark.parametrize("command", ["serve", "worker", "migrate"])
def test_every_faulty_setting_is_reported(command):
    """Each is named on stderr with what is expected, and no secret is shown."""
    given = environment(
        DATABASE_URL="mysql://user:hunter2@host/db", MASTER_KEYS="hunter2", WORKERS="0"
    )
    done = run(command, env=given)
    faults = ("DATABASE_URL", "MASTER_KEYS", "WORKERS")
    assert (done.returncode, done.stdout) == (1, "")
    assert [name for name in faults if f"CLAIM_LEDGER_{name}: " not in done.stderr] == []
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_nothing_runs_as_the_owner(database_url, tmp_path, command):
    """Each ledger whose login may do more than its work takes is named, in a line."""
    owner = {f"{name}_DATABASE_URL": database_url for name in ("ACCOUNTS", "LIVE")}
    done = run(command, env=settings(database_url, tmp_path, **owner))
    assert (done.returncode, done.stdout) == (1, "")
    assert re.findall(r"CLAIM_LEDGER_(\w+)_DATABASE_URL: the login claim_ledger ", done.stderr) == [
        "ACCOUNTS",
        "LIVE",
    ]
    assert database_url.split(":")[2].partition("@")[0] not in done.stderr


def test_a_taken_port_is_one_line(database_url, tmp_path):
    """A port in use is refused in one line; otherwise two servers would share it unnoticed."""
    env = settings(database_url, tmp_path)
    with socket.create_server(("127.0.0.1", int(env["CLAIM_LEDGER_PORT"]))):
        done = run("serve", env=env)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: cannot listen on 127.0.0.1, port {env['CLAIM_LEDGER_PORT']}: "
        "Address already in use\n"
    )


def test_kms_is_asked_at_the_start_alone(database_url, tmp_path):
    """An API process that is started anew needs no KMS; a `serve` that begins without it does not.

    The master key comes from a file.
    """
    with key_service() as kms:
        wrapping = environment(KMS_ENDPOINT=kms.url)
        made = team(wrapping, "keys-at-rest", "keygen", "--kms-key", NAME)["master_key"]
        (tmp_path / "ring").write_text(made)
        (tmp_path / "ring").chmod(0o400)
        env = settings(
            *(database_url, tmp_path),
            KMS_ENDPOINT=kms.url,
            MASTER_KEYS="",
            MASTER_KEYS_FILE=str(tmp_path / "ring"),
            RUN_WORKER="off",
        )
        with running("serve", env, tmp_path / "serve.log") as process:
            up(env)
            kms.statuses = [403]
            (first,) = api_processes(process)
            os.kill(first, signal.SIGKILL)
            until(lambda: api_processes(process) not in ([], [first]))
            up(env)
        assert kms.calls == ["encrypt", "decrypt"]
        done = [run(command, env=env) for command in ("serve", "worker")]
        done.append(run("staff", "list", env=env))
    for one in done:
        assert (one.returncode, one.stderr.count("\n")) == (1, 1)
        assert f"{NAME}: KMS refuses, or is away: 403" in one.stderr


def test_the_api_needs_no_disk(database_url, tmp_path, small_disk):
    """What was never counted before is answered and counted while no byte is left."""
    port = str(free_port())
    env = settings(database_url, tmp_path, OPERATIONS_PORT=port) | {"TMPDIR": str(small_disk)}
    with running("serve", env, tmp_path / "log"):
        up(env)
        fill(small_disk)
        with httpx.Client(
            base_url=address_of(env), timeout=PATIENCE_SECONDS, verify=NO_TLS
        ) as http:
            for path in ("/v1/claims", "/v1/events", "/v1/nothing", "/docs", "/", "/sign-in"):
                assert not http.get(path).is_server_error
                assert http.delete(path).is_client_error
        counted = scraped(env).text
    assert 'claim_ledger_requests_total{code="not_found"' in counted
    assert "Unexpected exit" not in (tmp_path / "log").read_text()
