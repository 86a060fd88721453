"""A process that counts lives on where no byte is left for its metrics' files."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.core.errors import ERRORS
from service.operations.metrics import FILE_BYTES, SharedMetrics, reserve
from tests.endpoints import routed
from tests.patience import PATIENCE_SECONDS

COUNTING = """
import json, os, sys
from pathlib import Path
from service.operations.metrics import Metrics, reserve
from tests.small_disk import fill
directory, is_full = os.environ["PROMETHEUS_MULTIPROC_DIR"], sys.argv[1] == "full"
if is_full:
    fill(Path(directory))
reserve(directory)
metrics = Metrics()
if sys.argv[1] == "filled":
    fill(Path(directory))
for route, method, code in json.load(sys.stdin):
    metrics.request(route, method, 503, code, 0.1)
    metrics.connections_closed.inc()
kinds = sorted(file.stem.rpartition("_")[0] for file in Path(directory).glob("*.db"))
print(json.dumps([kinds, metrics.connections_closed._value.get()]))
"""


def counted(directory: Path, given: list[tuple[str, str, str]], how: str) -> list[object]:
    """Return the kinds of files that a process has, and what it counted, of requests like these."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTING, how],
        env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(directory)},
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("how", ["filled", "full"])
def test_a_full_disk_ends_no_process_that_counts(world, small_disk, how):
    """Of every route, some codes: nothing grows beyond what was reserved, or all is in memory."""
    few = ["", *list(ERRORS)[:4]]
    given = [(path, method, code) for _, method, path in routed(world) for code in few]
    assert len(given) > 500
    kinds = sorted(FILE_BYTES) if how == "filled" else []
    assert counted(small_disk, given, how) == [kinds, len(given)]
    sizes = {file.stem.rpartition("_")[0]: file.stat() for file in small_disk.glob("*.db")}
    assert {kind: one.st_size for kind, one in sizes.items()} == {k: FILE_BYTES[k] for k in kinds}
    assert all(one.st_blocks * 512 == one.st_size for one in sizes.values())


@pytest.mark.server
def test_what_ended_processes_did_not_use_is_given_back(tmp_path):
    """Else each restart would keep the whole of it, until no process had room."""
    given = [("/v1/claims", "POST", "")]
    for _ in range(3):
        counted(tmp_path, given, "started")
    reserved = [file for file in tmp_path.glob("counter_*") if file.stat().st_size > 4096]
    assert len(reserved) == 1  # of the last
    (requests,) = (
        one for one in SharedMetrics(tmp_path).collect() if one.name == "claim_ledger_requests"
    )
    assert [sample.value for sample in requests.samples] == [3]


def test_room_is_made_where_a_file_system_reserves_none(tmp_path, monkeypatch):
    """The C library writes it then, but not to a file that is only added to."""
    modes = list[int]()
    monkeypatch.setattr(os, "posix_fallocate", lambda file, *_: modes.append(file_flags(file)))
    reserve(str(tmp_path))
    assert len(modes) == len(FILE_BYTES)
    assert not any(mode & os.O_APPEND for mode in modes)


def test_no_file_is_read_before_it_is_whole(tmp_path, monkeypatch):
    """A process may be killed at any moment: a scrape failed at the file that it had begun."""
    left = tmp_path / "counter_999999999.new"
    left.touch()
    sizes = list[int]()

    def look(file: int, start: int, most: int) -> None:
        sizes.extend(one.stat().st_size for one in tmp_path.glob("*.db"))
        list(SharedMetrics(tmp_path).collect())
        os.truncate(file, start + most)

    monkeypatch.setattr(os, "posix_fallocate", look)
    reserve(str(tmp_path))
    assert 0 not in sizes
    assert len(sizes) == sum(range(len(FILE_BYTES)))
    assert not left.exists()
    assert len(list(tmp_path.iterdir())) == len(FILE_BYTES)


def file_flags(file: int) -> int:
    """Return what an open file was opened for."""
    return fcntl.fcntl(file, fcntl.F_GETFL)
