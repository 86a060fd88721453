"""What a running `claim-ledger dev` prints and writes is true."""

import json
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg

from service.cli.dev.state import PEOPLE
from service.facts.caller import LEDGERS
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, until


def test_printed_commands_work_when_pasted(dev):
    """Of the three curl commands the first answers 201, the second 200, the third the claim."""
    commands = [line for line in dev.printed.splitlines() if line.startswith("curl ")]
    codes = []
    for command in commands:
        pasted = f"{command} -o answer.json -w '%{{http_code}}'"
        done = subprocess.run(
            ["bash", "-c", pasted], capture_output=True, text=True, check=True, cwd=dev.data_dir
        )
        codes.append(done.stdout)
    listed = json.loads((dev.data_dir / "answer.json").read_text())
    assert codes == ["201", "200", "200"]
    assert {one["entity_id"] for one in listed["claims"]} == {dev.facts["entity_id"]}


def test_the_printed_text_is_complete(dev):
    """It names the addresses, keys, entities and the mail directory."""
    facts = dev.facts
    told = [
        facts["base_url"],
        facts["public_url"] + "/docs",
        *(facts[name] for name in ("live_key", "test_key", "partner_id", "entity_id", "mail_dir")),
        *facts["sandbox"].values(),
        *PEOPLE.values(),
    ]
    assert [fact for fact in told if fact not in dev.printed] == []


def test_the_service_of_a_dev_works_under_the_ledgers_logins(dev):
    """No session of it is the owner's."""
    with psycopg.connect(dev.facts["database_url"]) as owner:
        found = owner.execute(
            "select distinct usename from pg_stat_activity where datname = current_database()"
            " and pid <> pg_backend_pid() and usename is not null"
        ).fetchall()
    assert {name for (name,) in found} == {f"claim_ledger_{ledger}" for ledger in LEDGERS}


def test_dev_json_has_the_documented_keys(dev):
    """Its mode is 0600 and its values are true."""
    facts = dev.facts
    with psycopg.connect(facts["database_url"]) as connection:
        owns = connection.execute(
            "select pg_get_userbyid(datdba) = current_user from pg_database"
            " where datname = current_database()"
        ).fetchone()
    assert list(facts) == [
        *("base_url", "public_url", "partner_id", "live_key", "test_key", "entity_id"),
        *("sandbox", "mail_dir", "database_url"),
    ]
    assert list(facts["sandbox"]) == [
        f"{state}_entity_id" for state in ("connected", "disconnected", "unconnected")
    ]
    assert (dev.data_dir / "dev.json").stat().st_mode & 0o777 == 0o600
    assert list((dev.data_dir).glob("*.new")) == []
    assert Path(facts["mail_dir"]).is_dir()
    assert owns == (True,)


def test_every_fixture_answers_in_its_state(dev):
    """The entities of dev.json can be listed, or not, as their names say."""
    facts = dev.facts
    cases = [
        ("live_key", facts["entity_id"]),
        *(("test_key", e) for e in facts["sandbox"].values()),
    ]
    codes = [
        httpx.get(
            f"{facts['base_url']}/claims",
            params={"entity_id": entity_id},
            headers={"Authorization": f"Bearer {facts[key]}"},
            timeout=PATIENCE_SECONDS,
            verify=NO_TLS,
        ).status_code
        for key, entity_id in cases
    ]
    assert codes == [200, 200, 200, 403]


def test_silent_connections_keep_nobody_out(dev):
    """A hundred and more that say nothing, and the next request is answered."""
    url = httpx.URL(dev.facts["public_url"])
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection((url.host, url.port)))
        assert httpx.get(f"{url}/health/live", timeout=PATIENCE_SECONDS).status_code == 200


def test_a_page_elsewhere_cannot_reach_it(dev):
    """Whose name resolves to this machine; by loopback's own names it is reached."""
    url = httpx.URL(f"{dev.facts['public_url']}/v1/openapi.json")
    hosts = (f"127.0.0.1:{url.port}", f"localhost:{url.port}", "evil.example", "10.0.0.1")
    codes = [
        httpx.get(url, headers={"Host": host}, timeout=PATIENCE_SECONDS).status_code
        for host in hosts
    ]
    assert codes == [200, 200, 421, 421]


def test_the_log_is_private_json(dev):
    """service.log has one JSON object per line, is readable by its owner alone, and grows."""
    log = dev.data_dir / "service.log"
    before = log.stat().st_size
    httpx.get(f"{dev.facts['public_url']}/health/live", timeout=PATIENCE_SECONDS, verify=NO_TLS)
    until(lambda: log.stat().st_size > before)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"at", "level", "event"} <= set(lines[-1])
    assert log.stat().st_mode & 0o777 == 0o600
