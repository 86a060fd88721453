"""`claim-ledger dev` as its users meet it: a process that starts, tells, and stops."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from service.cli.dev.postgres.directory import lock
from service.cli.dev.state import PEOPLE
from tests.dev_process import PROGRAM, Dev, environment, no_orphans, run, until

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture(scope="module")
def used(tmp_path_factory) -> Path:
    """Return a directory that a dev has used and left: later starts are faster."""
    data_dir = tmp_path_factory.mktemp("dev") / "data"
    one = Dev(data_dir)
    (data_dir.parent / "facts.json").write_text(json.dumps(one.facts))
    (data_dir.parent / "first.out").write_text(one.printed)
    one.end()
    return data_dir


@pytest.fixture
def dev(used) -> Iterator[Dev]:
    """Return a running dev on the used directory."""
    one = Dev(used)
    yield one
    if one.process.poll() is None:
        one.end()


def one_line(answer: subprocess.CompletedProcess[str]) -> str:
    """Return the one line with which a start is refused."""
    assert (answer.returncode, answer.stdout) == (1, "")
    assert re.fullmatch(r"Error: [^\n]+\n", answer.stderr)
    return answer.stderr


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
    assert [one["entity_id"] for one in listed["claims"]] == [dev.facts["entity_id"]]


def test_a_person_is_told_everything(dev):
    """The text names the addresses, the keys, the entities and the mail directory."""
    facts = dev.facts
    told = [
        facts["base_url"],
        facts["public_url"] + "/docs",
        *(facts[name] for name in ("live_key", "test_key", "partner_id", "entity_id", "mail_dir")),
        *facts["sandbox"].values(),
        *PEOPLE.values(),
    ]
    assert [fact for fact in told if fact not in dev.printed] == []


def test_the_facts_for_programs(dev):
    """dev.json has exactly the documented keys, mode 0600, and what it says is so."""
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
        ).status_code
        for key, entity_id in cases
    ]
    assert codes == [200, 200, 200, 403]


@linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_everything(used, number):
    """An asked stop ends with 0, silently, in two seconds, and leaves neither process nor facts."""
    with no_orphans():
        code, said, seconds = Dev(used).end(number)
    assert (code, said) == (0, "")
    assert seconds < 2
    assert not (used / "dev.json").exists()


def test_a_second_start_keeps_data_and_keys(used, dev):
    """Keys, ids, the database's address and the claims made are those of the first start."""
    first = json.loads((used.parent / "facts.json").read_text())
    changed = {name for name, value in dev.facts.items() if first[name] != value}
    assert changed <= {"base_url", "public_url"}  # the port was a free one each time


@linux
def test_killed_and_started_again(used):
    """A kill -9 ends PostgreSQL a moment later; the next start and its end are clean."""
    with no_orphans():
        Dev(used).end(signal.SIGKILL)
        stale = (used / "dev.json").exists()
        starting = Dev(used, wait=False)
        until(lambda: not (used / "dev.json").exists())  # while starting nobody is misled
        starting.wait_until_up()
        code, said, _ = starting.end()
    assert (stale, code, said) == (True, 0, "")


@linux
@pytest.mark.parametrize("step", range(4))
def test_a_signal_during_the_first_start(tmp_path, step):
    """Whenever SIGTERM comes while a cluster, schema or service is made, the end is clean."""
    fresh = tmp_path / "data"
    milestones = [
        lambda: list(fresh.glob("postgres/cluster-new-*")),
        (fresh / "postgres" / "cluster").exists,
        lambda: (fresh / "service.log").exists() and (fresh / "service.log").stat().st_size,
        (fresh / "mail").exists,
    ]
    with no_orphans():
        starting = Dev(fresh, wait=False)
        until(milestones[step])
        code, said, seconds = starting.end()
    assert (code, said) == (0, "")
    assert seconds < 10  # a first initdb and migration under way, on a machine that tests too
    assert not (fresh / "dev.json").exists()


@linux
def test_killed_while_seeding(tmp_path):
    """A first start that is killed as soon as it has secrets does not spoil the next."""
    fresh = tmp_path / "data"
    with no_orphans():
        starting = Dev(fresh, wait=False)
        until((fresh / "secrets.json").exists)
        starting.end(signal.SIGKILL)
        again = Dev(fresh)
        facts = again.facts
        answer = httpx.get(
            f"{facts['base_url']}/claims",
            params={"entity_id": facts["entity_id"]},
            headers={"Authorization": f"Bearer {facts['live_key']}"},
        )
        code, _, _ = again.end()
    assert (answer.status_code, code) == (200, 0)


def test_half_a_request_does_not_hold_up_the_stop(dev):
    """A client that is silent in mid-request, and one that stays connected, are cut off."""
    port = httpx.URL(dev.facts["base_url"]).port
    with (
        socket.create_connection(("127.0.0.1", port)) as half,
        httpx.Client() as kept,
    ):
        half.sendall(b"POST /v1/claims HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
        kept.get(f"{dev.facts['public_url']}/health/live")
        time.sleep(0.1)
        code, said, seconds = dev.end()
    assert (code, said) == (0, "")
    assert seconds < 3


def test_the_log_is_private_json(dev):
    """service.log has a JSON object a line, can be read by its owner alone, and grows."""
    log = dev.data_dir / "service.log"
    before = log.stat().st_size
    httpx.get(f"{dev.facts['public_url']}/health/live")
    until(lambda: log.stat().st_size > before)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"at", "level", "event"} <= set(lines[-1])
    assert log.stat().st_mode & 0o777 == 0o600


def test_nobody_reads_what_is_printed(used):
    """A closed pipe on stdout is no reason to end."""
    reading, writing = os.pipe()
    os.close(reading)
    one = Dev(used, stdout=writing)
    os.close(writing)
    answer = httpx.get(f"{one.facts['public_url']}/health/ready")
    assert answer.status_code == 200
    assert one.end()[:2] == (0, "")


@pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")
@linux
def test_killing_uv_run_ends_its_dev(used):
    """`uv run` cannot pass kill -9 on: the dev that it started notices and ends."""
    with no_orphans():
        outer = subprocess.Popen(
            ["uv", "run", "--no-sync", "claim-ledger", "dev", "--port", "0", "--data-dir", used],
            stdout=subprocess.DEVNULL,
            env=environment(),
        )
        until(lambda: (used / "dev.json").exists() or outer.poll() is not None)
        assert outer.poll() is None
        outer.kill()
        outer.wait()
        until(lambda: not (used / "dev.json").exists())


def test_a_taken_port_is_one_line(used):
    """A port that somebody listens on is named, with what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = one_line(run("dev", "--port", port, "--data-dir", used))
    assert said == f"Error: port {port} is taken: choose another with --port\n"


def test_a_locked_directory_is_one_line(used):
    """A directory in use is refused after a moment, with who uses it; its facts stay."""
    with lock(used):
        (used / "dev.json").write_text("{}")
        said = one_line(run("dev", "--port", "0", "--data-dir", used))
        kept = (used / "dev.json").exists()
    assert said == f"Error: {used} is in use by another claim-ledger (pid {os.getpid()})\n"
    assert kept


def test_a_file_for_a_directory_is_one_line(tmp_path):
    """A data directory that is a file is refused."""
    (tmp_path / "file").write_text("")
    for name in ("file", "file/below"):
        assert "is not a directory" in one_line(
            run("dev", "--port", "0", "--data-dir", tmp_path / name)
        )


@linux
def test_an_unwritable_directory_is_one_line():
    """A directory that cannot be made, not even by root, is refused."""
    said = one_line(run("dev", "--port", "0", "--data-dir", "/sys/claim-ledger"))
    assert said.startswith("Error: /sys/claim-ledger is not writable: ")


@linux
def test_a_missing_library_is_one_line(tmp_path, used):
    """A shared library that the machine lacks is named, with the package that has it."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    script = bin_dir / "postgres"
    script.write_text(
        "#!/bin/sh\necho 'postgres: error while loading shared libraries: libxml2.so.2: "
        "cannot open shared object file: No such file or directory'\nexit 127\n"
    )
    for path in (tmp_path, *tmp_path.parents[:3], bin_dir, script):
        path.chmod(0o755)
    lacking = (
        "from pathlib import Path; from service.cli.dev.postgres import server as postgres;"
        f"postgres.wheel_bin_dir = lambda: Path({str(bin_dir)!r});"
        "from service.cli import main; main()"
    )
    answer = subprocess.run(
        [sys.executable, "-c", lacking, "dev", "--port", "0", "--data-dir", used],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert one_line(answer) == (
        "Error: PostgreSQL cannot load the shared library libxml2.so.2 (cannot open shared object "
        "file: No such file or directory); on Debian: apt-get install libxml2\n"
    )


def test_wrong_usage_names_the_option():
    """A port that is none is refused before anything starts."""
    answer = run("dev", "--port", "70000")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "--port" in answer.stderr
    assert PROGRAM.exists()
