"""The embedded server, with the real binaries: the wheel's 18 and, where installed, Debian's."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from service.cli.dev.postgres import (
    EmbeddedPostgres,
    debian_bin_dir,
    processes,
    wheel_bin_dir,
)
from service.cli.dev.postgres import server as running
from service.cli.dev.postgres.binaries import usable_binaries
from service.cli.dev.postgres.processes import OWN_USER, server_user, servers_tagged
from tests.dev.refusals import refused
from tests.patience import until

linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal")
root = pytest.mark.skipif(os.geteuid() != 0, reason="the unprivileged user is root's way")

PARENT = """
import sys
from pathlib import Path
from service.cli.dev.postgres import EmbeddedPostgres

server = EmbeddedPostgres(Path(sys.argv[1]), durable=False)
print(server.start(), server.postmaster_pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
    """Create a stopped cluster: a second start is 20 times faster."""
    path = tmp_path_factory.mktemp("embedded") / "data"
    with EmbeddedPostgres(path, durable=False):
        return path


@pytest.fixture
def server(data_dir) -> Iterator[EmbeddedPostgres]:
    """Return a server that the test starts; it is stopped afterwards."""
    server = EmbeddedPostgres(data_dir, durable=False)
    yield server
    server.stop()


def query(url: str, sql: str):
    """Return the first row, if the statement returns rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchone() if cursor.description else None


def tag(data_dir: Path) -> str:
    """Return the cluster_name that identifies the server's processes."""
    found = (data_dir / "cluster").stat()
    return f"claim-ledger[{found.st_dev:x}:{found.st_ino:x}]"


@contextmanager
def started_elsewhere(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """Start a server from another process; yield that process, the URL and the postmaster's pid."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, data_dir],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout
        url, pid = parent.stdout.readline().split()
        yield parent, url, int(pid)


def killed_parent(data_dir: Path) -> int:
    """Start a server from another process, kill -9 that process, return the postmaster's pid."""
    with started_elsewhere(data_dir) as (parent, url, pid):
        query(url, "CREATE TABLE IF NOT EXISTS kept (id int)")
        parent.kill()
    return pid


def log_of(data_dir: Path) -> str:
    """Return everything that PostgreSQL logged."""
    return (data_dir / "postgres.log").read_text()


@pytest.mark.parametrize("bin_dir", [wheel_bin_dir(), debian_bin_dir()], ids=["wheel", "debian"])
def test_a_second_start_keeps_data_password_and_port(tmp_path, bin_dir):
    """The owner may also use its roles."""
    if bin_dir is None:
        pytest.skip("Debian's PostgreSQL is not installed")
    with EmbeddedPostgres(tmp_path / "data", bin_dir=bin_dir, durable=False) as server:
        first = server.url
        query(first, "CREATE TABLE t AS SELECT 42 AS answer")
        query(first, "CREATE ROLE app; GRANT app TO CURRENT_USER; SET ROLE app")

    second = server.start()
    answer = query(second, "SELECT answer FROM t")
    rights = query(
        second,
        "SELECT rolsuper, rolcreaterole, pg_get_userbyid(datdba) "
        "FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()",
    )
    server.stop()

    assert first == second
    assert first.startswith("postgresql://claim_ledger:")
    assert answer == (42,)
    assert rights == (False, True, "claim_ledger")


def test_password_is_required(server):
    """A wrong password is refused, also on loopback; only the owner can read the file."""
    url = server.start()

    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        query(url.replace(url.split(":")[2].split("@")[0], "guess"), "SELECT 1")
    assert (server.data_dir / "password").stat().st_mode & 0o777 == 0o600


def test_durability_is_on_unless_declined(server, data_dir):
    """Without durable=False fsync is on; other settings are passed on to PostgreSQL."""
    settings = "SELECT current_setting('fsync'), current_setting('work_mem')"

    assert query(server.start(), settings) == ("off", "4MB")
    server.stop()
    with EmbeddedPostgres(data_dir, settings={"work_mem": "5MB"}) as durable:
        assert query(durable.url, settings) == ("on", "5MB")


@linux
def test_stop_leaves_nothing(server, data_dir):
    """Stopping ends every process although clients are connected; stopping twice is fine."""
    with psycopg.connect(server.start()):
        assert len(servers_tagged(tag(data_dir))) > 3
        server.stop()
        server.stop()

    assert servers_tagged(tag(data_dir)) == []
    assert log_of(data_dir).rstrip().endswith("database system is shut down")


@linux
def test_abrupt_shutdown_recovers(data_dir):
    """After kill -9 of everything the next start has what was committed, on the same port."""
    server = EmbeddedPostgres(data_dir)
    url = server.start()
    query(url, "DROP TABLE IF EXISTS survivors; CREATE TABLE survivors AS SELECT 1 AS n")
    server.shutdown_abruptly()

    assert servers_tagged(tag(data_dir)) == []
    assert url == server.start()
    assert query(url, "SELECT n FROM survivors") == (1,)
    server.stop()


@linux
@root
def test_closed_parents_stay_closed(tmp_path):
    """Under root the data stays in root's 0700 folder, and the server has a user of its own."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with EmbeddedPostgres(home / "a" / "data", durable=False) as server:
        owner = (home / "a" / "data" / "cluster").stat().st_uid
        runner = Path(f"/proc/{server.postmaster_pid}").stat().st_uid
        query(server.url, "SELECT 1")

    assert owner == runner == pwd.getpwnam(OWN_USER).pw_uid
    assert home.stat().st_mode & 0o777 == 0o700
    assert home.stat().st_uid == 0


@root
def test_a_user_that_cannot_be_made_is_one_line(tmp_path, monkeypatch):
    """It is named, with what to do, and the server does not run as anybody else."""
    monkeypatch.setattr(processes, "OWN_USER", "Not a name: of a user")
    line = refused(EmbeddedPostgres(tmp_path / "data", durable=False))
    assert "the user Not a name: of a user cannot be made (useradd: " in line


@linux
@root
def test_closed_binaries_are_copied(tmp_path):
    """Binaries that the server's user cannot reach are copied once to where it can run them."""
    wheel = wheel_bin_dir().parents[1]
    site = tmp_path / "site"
    shutil.copytree(wheel / "pginstall18", site / wheel.name / "pginstall18")
    shutil.copytree(wheel.with_suffix(".libs"), site / f"{wheel.name}.libs")
    bin_dir = site / wheel.name / "pginstall18" / "bin"
    tmp_path.chmod(0o700)
    cache = Path(tempfile.mkdtemp())
    try:
        user = server_user(tmp_path / "none")
        first = usable_binaries(bin_dir, user, cache=cache)
        second = usable_binaries(bin_dir, user, cache=cache)
        shutil.rmtree(site)
        with EmbeddedPostgres(tmp_path / "data", bin_dir=first.bin_dir, durable=False) as server:
            assert query(server.url, "SELECT 1") == (1,)
        assert first == second
        assert len(list(cache.iterdir())) == 1
        assert first.major == 18
    finally:
        shutil.rmtree(cache)


@linux
def test_server_dies_with_its_parent(server, data_dir):
    """A kill -9 of the parent stops the server; the next start works and its stop is clean."""
    killed_parent(data_dir)
    until(lambda: not servers_tagged(tag(data_dir)))

    assert query(server.start(), "SELECT count(*) FROM kept") == (0,)
    server.stop()
    assert log_of(data_dir).rstrip().endswith("database system is shut down")


@linux
def test_start_right_after_the_parent_was_killed(server, data_dir):
    """The start waits for the old server, which is still shutting down."""
    for _ in range(3):
        killed_parent(data_dir)
        assert query(server.start(), "SELECT count(*) FROM kept") == (0,)
        server.stop()


def gone_unless_hung(tag: str, _seconds_max: float) -> bool:
    """Wait for the end of a server's processes in place of the adapter, without its deadline.

    For those that are stopped, as the test knows, nobody has to wait.
    """

    def is_hung(pid: int) -> bool:
        with suppress(FileNotFoundError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("T")
        return False

    until(lambda: any(map(is_hung, left := servers_tagged(tag))) or not left)
    return servers_tagged(tag) == []


@linux
def test_hung_leftovers_are_killed(server, data_dir, monkeypatch):
    """A hung postmaster, or children without one, do not block a start."""
    monkeypatch.setattr(processes, "wait_until_gone", gone_unless_hung)
    monkeypatch.setattr(running, "wait_until_gone", gone_unless_hung)
    with started_elsewhere(data_dir) as (parent, _, pid):
        os.kill(pid, signal.SIGSTOP)
        parent.kill()
    server.start()
    assert pid not in servers_tagged(tag(data_dir))
    child = next(p for p in servers_tagged(tag(data_dir)) if p != server.postmaster_pid)
    os.kill(child, signal.SIGSTOP)
    os.kill(server.postmaster_pid, signal.SIGKILL)
    again = EmbeddedPostgres(data_dir, durable=False)

    server.stop()
    again.start()
    again.stop()
    assert servers_tagged(tag(data_dir)) == []


@linux
def test_a_recycled_pid_does_not_block_a_start(server, data_dir):
    """The pid in the pid file now belongs to another program of the same user."""
    owner = (data_dir / "cluster").stat()
    server.start()
    lines = (data_dir / "cluster" / "postmaster.pid").read_text().splitlines()
    server.shutdown_abruptly()
    as_owner = {"user": owner.st_uid, "group": owner.st_gid} if os.geteuid() == 0 else {}
    with subprocess.Popen(["sleep", "60"], **as_owner) as other:
        pid_file = data_dir / "cluster" / "postmaster.pid"
        pid_file.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")

        assert query(server.start(), "SELECT 1") == (1,)
        other.kill()


def test_a_locked_directory_is_refused(server, data_dir):
    """The refusal names who holds the directory; afterwards a second server may start."""
    server.start()
    other = EmbeddedPostgres(data_dir, durable=False)

    line = refused(other)

    assert f"{data_dir} is in use by another claim-ledger (pid {os.getpid()})" == line
    server.stop()
    other.start()
    other.stop()


def test_a_taken_port_is_refused(data_dir):
    """The refusal names the port, and nothing is left behind."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        line = refused(EmbeddedPostgres(data_dir, port=port, durable=False))

    assert f"port {port} on 127.0.0.1 is taken" == line
    assert servers_tagged(tag(data_dir)) == []


def test_recorded_port_is_given_up_when_taken(server, data_dir):
    """Unless a port was requested, a free one replaces the recorded one."""
    server.start()
    server.stop()
    recorded = int((data_dir / "port").read_text())
    with socket.create_server(("127.0.0.1", recorded)):
        assert query(server.start(), "SELECT 1") == (1,)

    assert recorded != int((data_dir / "port").read_text())


def test_a_lost_password_file_is_refused(data_dir, tmp_path):
    """The cluster is refused instead of being opened to everybody."""
    (data_dir / "password").rename(tmp_path / "password")
    try:
        line = refused(EmbeddedPostgres(data_dir))
    finally:
        (tmp_path / "password").rename(data_dir / "password")

    assert f"{data_dir}/password is missing, and its cluster cannot be opened" == line


def test_a_refused_setting_is_reported(server, data_dir):
    """The line has PostgreSQL's last FATAL message and the log's path."""
    line = refused(EmbeddedPostgres(data_dir, settings={"nonsense": "1"}))

    assert 'unrecognized configuration parameter "nonsense"' in line
    assert f"{data_dir}/postgres.log" in line
    server.start()  # the refused one let go of the directory
