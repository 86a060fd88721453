"""The examples in `deploy/` agree with what they stand in front of."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from service.app.settings import Settings
from service.core.errors import Refusal
from service.facts.caller import LEDGERS
from service.http.bodies import BODY_SECONDS_MAX
from service.http.connections import CROWDED
from service.http.every_answer import every_answer
from service.http.server import CONNECTIONS_MAX, HEAD_SECONDS_MAX
from service.ledger.connection_limit import OTHERS_MIN
from service.ledger.database import BACKGROUND_SIZE
from service.ledger.limits import DEADLINE_SECONDS, Limits
from service.ledger.session import SESSION
from tests import runbook

DEPLOY = Path(__file__).parents[1] / "deploy"
PROXY = (DEPLOY / "haproxy.cfg").read_text()
POOLER = (DEPLOY / "pgbouncer.ini").read_text()
RESERVED = 3
"""What `superuser_reserved_connections` keeps by default."""
UNAVAILABLE = "service_unavailable"
OF_REQUESTS = {
    name: text
    for name, text in Limits.of_requests(DEADLINE_SECONDS).settings.items()
    if not name.startswith("tcp_")
} | {"enable_seqscan": "off", "jit": "off", **SESSION}
DEFAULTS = {one.name: one.default for one in vars(Settings).values() if hasattr(one, "default")}


def figure(pattern: str) -> int:
    """Return the number that a directive of the proxy has."""
    (found,) = re.findall(pattern, PROXY)
    return int(found)


def test_the_proxy_closes_connections_before_we_do():
    """Otherwise a request could meet the end of its connection."""
    # One that was used in the last interval but is idle now is closed within two of them.
    assert 2 * figure(r"pool-purge-delay (\d+)s") < HEAD_SECONDS_MAX


def test_the_proxy_limits_connections_by_address():
    """To a small part of one process's places; and it passes on the address."""
    assert figure(r"presetenv PROXY_CONNECTIONS_MAX (\d+)") * 10 < CONNECTIONS_MAX
    assert figure(r"check inter 2s maxconn (\d+)") < CONNECTIONS_MAX * CROWDED
    assert "http-request set-header X-Forwarded-For %[src]" in PROXY


def test_the_proxy_answers_as_the_service_does():
    """With the envelope of the code, and the headers of every answer."""
    answers = re.findall(r"status (\d+) content-type application/json .*?string '(.*?)'", PROXY)
    codes = dict.fromkeys(("502", "503", "504"), UNAVAILABLE)
    codes |= {"408": "request_timeout", "429": "rate_limited"}
    assert {status: json.loads(body) for status, body in answers} == {
        status: Refusal(code).envelope() for status, code in codes.items()
    }
    for name, text in every_answer("https://api.example.com").items():
        assert re.search(rf'http-after-response set-header {name} "?{re.escape(text)}', PROXY)


def test_the_proxy_waits_for_a_body_as_long_as_the_service_does():
    """Before it answers: over HTTP/2, it resets what it answers while the body still comes."""
    frontend = PROXY.partition("\nfrontend public\n")[2].partition("\nbackend ")[0]
    assert "    option http-buffer-request\n" in frontend
    assert figure(r"timeout http-request +(\d+)s") == BODY_SECONDS_MAX


@pytest.mark.server
def test_an_abandoned_file_does_not_stop_the_archive(tmp_path):
    """What pgBackRest has with another end is let go where a later timeline is; nothing else is."""
    program = tmp_path / "pgbackrest"
    program.write_text('#!/bin/sh\nexit "$CODE"\n')
    program.chmod(0o755)
    (tmp_path / "00000003.history").touch()
    old, current = "000000020000000000000005", "000000030000000000000005"
    said = {
        (old, 0): 0,
        (old, 45): 0,
        (old, 82): 82,
        (current, 45): 45,
        ("00000002.history", 45): 45,
    }
    for (name, code), expected in said.items():
        done = subprocess.run(
            [DEPLOY / "high_availability" / "pgbackrest_archive.sh", tmp_path / name, name],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "CODE": str(code)},
            capture_output=True,
            check=False,
        )
        assert done.returncode == expected, (name, code)


def test_logins_have_the_limits_of_requests():
    """Behind a pooler, what a connection would be given is the login's default."""
    script = (DEPLOY / "logins.sql").read_text()
    for ledger in LEDGERS:
        rows = re.findall(rf"alter role claim_ledger_{ledger} set (\w+) = '?([^';]+)", script)
        assert dict(rows) == OF_REQUESTS
    limits = {int(one) for one in re.findall(r"connection limit (\d+)", script)}
    places = int(re.findall(r"default_pool_size = (\d+)", POOLER)[0])
    assert limits == {places + 2}, "and two for a command of the team"


def test_connections_are_the_sum_of_their_parts():
    """Of an installation of the defaults, and of the one behind the pooler, as compose has it."""
    table = runbook.connections()
    of_a_process = 2 * int(DEFAULTS["POOL_SIZE"]) + BACKGROUND_SIZE
    assert f"| {of_a_process} each |" in runbook.PATH.read_text()
    assert table[""][0] == 4 * of_a_process + 2
    (limit,) = set(re.findall(r"connection limit (\d+)", (DEPLOY / "logins.sql").read_text()))
    assert table["deploy/logins.sql"][0] == int(limit) == 5 * of_a_process + 2
    for installation in ("", "deploy/logins.sql"):
        places, least = table[installation]
        assert least == len(LEDGERS) * places + OTHERS_MIN + RESERVED
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    (given,) = re.findall(r"max_connections=(\d+)", " ".join(compose["postgres"]["command"]))
    assert int(given) >= table["deploy/logins.sql"][1]


def test_the_ports_are_the_defaults():
    """The proxy leads to the API's, and Prometheus to the operations listener's."""
    assert figure(r"PROXY_SERVER_ONE 127\.0\.0\.1:(\d+)") == int(DEFAULTS["PORT"])
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    job = scraped[0]
    assert [one["job_name"] for one in scraped] == ["claim-ledger", "node", "proxy"]
    assert job["static_configs"] == [{"targets": [f"127.0.0.1:{DEFAULTS['OPERATIONS_PORT']}"]}]
    (address,) = re.findall(r"presetenv PROXY_METRICS_BIND (\S+)", PROXY)
    assert scraped[-1]["static_configs"] == [{"targets": [address]}]


def test_machines_speak_to_each_other_over_tls_alone():
    """Each file of the topology asks for it, and verifies; a URL names no loopback there."""
    folder = DEPLOY / "high_availability"
    given = yaml.safe_load((folder / "patroni.yml").read_text())
    local, hosts = given["postgresql"], [line.split() for line in given["postgresql"]["pg_hba"]]
    assert {line[0] for line in hosts} == {"local", "hostssl"}
    assert local["parameters"]["ssl"] == "on"
    assert {one["sslmode"] for one in local["authentication"].values()} == {"verify-full"}
    assert local["authentication"].keys() == {"superuser", "replication", "rewind"}
    assert given["restapi"]["verify_client"] == "optional"
    assert given["etcd3"]["protocol"] == "https"
    etcd = (folder / "etcd.env").read_text()
    assert "ETCD_CLIENT_CERT_AUTH=true" in etcd
    assert "ETCD_PEER_CLIENT_CERT_AUTH=true" in etcd
    for name in ("redis.conf", "sentinel.conf"):
        lines = (folder / name).read_text().splitlines()
        assert {"port 0", "tls-replication yes"} <= {*lines}
    proxy = (folder / "haproxy.cfg").read_text()
    assert proxy.count("check-ssl verify required verifyhost") == proxy.count("\nlisten ")
    assert "\nserver_tls_sslmode = verify-full\n" in POOLER


@pytest.mark.server
def test_a_certificate_that_cannot_be_made_costs_no_key(tmp_path):
    """Neither the machine's, which has its certificate, nor that of the authority, for good."""
    assert certificates(tmp_path, "one", "postgresql.internal", "10.0.0.7") == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert before.keys() == {"authority.crt", "authority.key", "one.crt", "one.key"}
    assert certificates(tmp_path, "one") != 0
    assert certificates(tmp_path, "authority", "authority.internal") != 0
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert certificates(tmp_path, "one", "postgresql.internal", "10.0.0.7") == 0
    assert (tmp_path / "one.key").read_bytes() != before["one.key"]
    verified = ["openssl", "verify", "-CAfile", tmp_path / "authority.crt", tmp_path / "one.crt"]
    subprocess.run(verified, check=True)


@pytest.mark.server
def test_when_certificates_end_is_written_for_an_alert(tmp_path):
    """A year from now; what was written stays where a later run fails."""
    assert certificates(tmp_path, "one", "postgresql.internal") == 0
    script, told = DEPLOY / "high_availability" / "certificate_ends.sh", tmp_path / "ends.prom"
    subprocess.run([script, told, tmp_path / "one.crt", tmp_path / "authority.crt"], check=True)
    before = told.read_text()
    found = re.findall(r'^(\w+){certificate="(\S+).crt"} (\d+)$', before, re.MULTILINE)
    made_at = (tmp_path / "one.crt").stat().st_mtime
    days = {name: round((int(at) - made_at) / 86400) for _, name, at in found}
    assert days == {f"{tmp_path}/one": 365, f"{tmp_path}/authority": 3650}
    assert {metric for metric, *_ in found} == {"claim_ledger_certificate_ends_seconds"}
    (tmp_path / "date").write_text("#!/bin/sh\nexit 1\n")  # one that reads no openssl's
    (tmp_path / "date").chmod(0o755)
    other = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for given, env in ([], None), (["gone.crt"], None), (["one.crt"], other):
        told_of = [tmp_path / name for name in given]
        assert subprocess.run([script, told, *told_of], env=env, check=False).returncode != 0
        assert told.read_text() == before
    assert [one.name for one in tmp_path.glob("ends*")] == [told.name]


def certificates(folder: Path, *words: str) -> int:
    """Return what the script that makes the machines' certificates exits with."""
    script = DEPLOY / "high_availability" / "certificates.sh"
    return subprocess.run([script, folder, *words], check=False).returncode


def test_a_lost_primary_is_replaced_in_time():
    """Its lease ends in time for writes to go on within thirty seconds, and renewing it fits in."""
    given = yaml.safe_load((DEPLOY / "high_availability" / "patroni.yml").read_text())
    dcs = given["bootstrap"]["dcs"]
    assert dcs["loop_wait"] + 2 * dcs["retry_timeout"] <= dcs["ttl"] <= 20
    assert dcs["synchronous_mode"] is True
    assert dcs["synchronous_node_count"] == 2
    assert dcs["synchronous_mode_strict"]
    assert not dcs["primary_start_timeout"]
    assert given["postgresql"]["remove_data_directory_on_rewind_failure"] is True
    command = dcs["postgresql"]["parameters"]["archive_command"]
    assert "pgbackrest" in command, "pgBackRest backs up nothing otherwise"
    assert "\nserver_login_retry = 1\n" in POOLER, "the default of 15 seconds comes on top"
