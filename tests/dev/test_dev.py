"""`claim-ledger dev` starts and stops whatever happens, and refuses in one line."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from service.app.bootstrap import Service
from service.cli.dev.postgres.directory import lock
from service.cli.dev.state import DevState
from tests.dev.uploads import mint, put
from tests.dev_process import PROGRAM, Dev, environment, no_orphans, run
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, until
from tests.world import STAFF

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def one_line(answer: subprocess.CompletedProcess[str]) -> str:
    """Return the one line that a refused start prints."""
    assert (answer.returncode, answer.stdout) == (1, "")
    assert re.fullmatch(r"Error: [^\n]+\n", answer.stderr)
    return answer.stderr


@linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_everything(used, number):
    """A requested stop exits with 0, with a word of goodbye, and leaves no process or dev.json."""
    with no_orphans():
        dev = Dev(used)
        ended = dev.end(number)
    assert ended == (0, "")
    assert f"\nStopped. What you made is kept in {used}: " in dev.printed
    assert not (used / "dev.json").exists()


@linux
def test_dev_starts_again_after_kill_9(used):
    """PostgreSQL ends a moment after the kill; the next start and stop are clean."""
    with no_orphans():
        Dev(used).end(signal.SIGKILL)
        stale = (used / "dev.json").exists()
        starting = Dev(used, wait=False)
        until(lambda: not (used / "dev.json").exists())  # while starting nobody is misled
        starting.wait_until_up()
        ended = starting.end()
    assert (stale, *ended) == (True, 0, "")


@linux
@pytest.mark.parametrize("step", range(4))
def test_a_signal_during_the_first_start(tmp_path, step):
    """Whenever SIGTERM arrives during setup, the exit is clean."""
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
        ended = starting.end()
    assert ended == (0, "")
    assert not (fresh / "dev.json").exists()


@linux
def test_dev_starts_again_after_a_kill_while_seeding(tmp_path):
    """A first start killed as soon as it has secrets does not break the next."""
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
            timeout=PATIENCE_SECONDS,
            verify=NO_TLS,
        )
        code, _ = again.end()
    assert (answer.status_code, code) == (200, 0)


async def reset_sandbox(data_dir, partner_id):
    """Reset it as a member does in the console of the dev that runs there."""
    settings = DevState.of_running(data_dir).settings()
    service = Service(settings, deadline_seconds=PATIENCE_SECONDS)
    async with service.opened():
        await service.partners.reset_sandbox(partner_id, 1, STAFF)


def test_a_restart_keeps_ids_keys_and_addresses(used):
    """Keys, ids and the database's address stay; earlier upload URLs go on working.

    The sandbox's are those that `keys issue` has, also after a reset. Only where something else
    has taken the store's port is another one chosen.
    """
    first = json.loads((used.parent / "facts.json").read_text())
    dev = Dev(used)
    upload = mint(dev, "restart")
    port = int((used / "storage" / "port").read_text())
    changed = {name for name, value in dev.facts.items() if first[name] != value}
    assert changed <= {"base_url", "public_url"}  # the port was a free one each time
    asyncio.run(reset_sandbox(used, first["partner_id"]))
    key = ("keys", "issue", first["partner_id"], "--mode", "test")
    issued = run(*key, "--json", "--data-dir", used)
    dev.end()
    again = Dev(used)
    changed = {name for name, value in again.facts.items() if first[name] != value}
    assert {"sandbox"} <= changed <= {"sandbox", "base_url", "public_url"}
    assert again.facts["sandbox"] == json.loads(issued.stdout)["sandbox"]
    assert again.facts["sandbox"]["connected_entity_id"] in again.printed
    assert int((used / "storage" / "port").read_text()) == port
    assert put(upload["upload_url"], upload["required_headers"], "%PDF") == ("200", "")
    assert put(upload["upload_url"], upload["required_headers"], "%PDF")[0] == "403"
    assert again.end() == (0, "")
    with socket.create_server(("127.0.0.1", port)):
        elsewhere = Dev(used)
        other = mint(elsewhere, "elsewhere")["upload_url"]
        audit = run("documents", "verify", "--json", "--data-dir", used)
        elsewhere.end()
    assert not other.startswith(f"http://127.0.0.1:{port}/")
    assert json.loads(audit.stdout)["findings"] == []


def test_unfinished_requests_do_not_delay_the_stop(used):
    """Idle and half-sent connections are closed; nothing of them is stored."""
    dev = Dev(used)
    upload = httpx.URL(mint(dev, "half")["upload_url"])
    incoming = used / "storage" / "objects" / "incoming"
    with (
        socket.create_connection(("127.0.0.1", httpx.URL(dev.facts["base_url"]).port)) as half,
        socket.create_connection(("127.0.0.1", upload.port)) as half_upload,
        httpx.Client(timeout=PATIENCE_SECONDS, verify=NO_TLS) as kept,
    ):
        half.sendall(b"POST /v1/claims HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        half_upload.sendall(
            b"PUT %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/pdf\r\n"
            b"x-goog-content-length-range: 0,100\r\nContent-Length: 50\r\n\r\n%%PDF"
            % (upload.raw_path, upload.port)
        )
        kept.get(f"{dev.facts['public_url']}/health/live")
        until(lambda: list(incoming.iterdir()) != [])
        assert dev.end() == (0, "")
    assert list(incoming.iterdir()) == []


def test_a_closed_stdout_does_not_stop_dev(used):
    """A closed pipe on stdout is no reason to exit."""
    reading, writing = os.pipe()
    os.close(reading)
    one = Dev(used, stdout=writing)
    os.close(writing)
    answer = httpx.get(
        f"{one.facts['public_url']}/health/ready", timeout=PATIENCE_SECONDS, verify=NO_TLS
    )
    assert answer.status_code == 200
    assert one.end() == (0, "")


@pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")
@linux
def test_killing_uv_run_ends_its_dev(used):
    """`uv run` cannot forward SIGKILL, so the dev that it started notices and exits."""
    with no_orphans():
        outer = subprocess.Popen(
            ["uv", "run", "--no-sync", "claim-ledger", "dev", "--port", "0", "--data-dir", used],
            stdout=subprocess.DEVNULL,
            env=environment(),
        )
        try:
            until(lambda: (used / "dev.json").exists() or outer.poll() is not None)
            assert outer.poll() is None
        finally:
            outer.kill()
            outer.wait()
        until(lambda: not (used / "dev.json").exists())


def test_a_taken_port_is_one_line(used):
    """The port in use is named, with what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = one_line(run("dev", "--port", port, "--data-dir", used))
    assert said == f"Error: port {port} is taken: choose another with --port\n"


def test_a_locked_directory_is_one_line(used):
    """A directory in use is refused soon, naming its user; the dev.json in it stays."""
    with lock(used):
        (used / "dev.json").write_text("{}")
        said = one_line(run("dev", "--port", "0", "--data-dir", used))
        kept = (used / "dev.json").exists()
    assert said == f"Error: {used} is in use by another claim-ledger (pid {os.getpid()})\n"
    assert kept


def test_a_file_for_a_directory_is_one_line(tmp_path):
    """A file in place of the data directory is refused."""
    (tmp_path / "file").write_text("")
    for name in ("file", "file/below"):
        assert "is not a directory" in one_line(
            run("dev", "--port", "0", "--data-dir", tmp_path / name)
        )


@linux
def test_an_unwritable_directory_is_one_line():
    """A directory that not even root can create is refused."""
    said = one_line(run("dev", "--port", "0", "--data-dir", "/sys/claim-ledger"))
    assert said.startswith("Error: /sys/claim-ledger is not writable: ")


@linux
def test_a_missing_library_is_one_line(tmp_path, used):
    """The missing shared library is named, with the package that contains it."""
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
    """An invalid port is refused before anything starts."""
    answer = run("dev", "--port", "70000")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "--port" in answer.stderr
    assert PROGRAM.exists()
