"""Where `serve` keeps its metrics: in memory if there is room, where nothing is left for long."""

import os
import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from service.app import metrics_directory as places
from service.app.metrics_directory import metrics_directory
from tests.tables import every_row


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """Return a directory that stands for memory."""
    path = tmp_path / "memory"
    path.mkdir()
    monkeypatch.setattr(places, "SHARED_MEMORY", path)
    monkeypatch.setattr(places, "ROOM_BYTES_MIN", 0)
    return path


def test_what_was_left_is_removed_and_what_is_in_use_is_not(memory):
    """A lock says which is which; other names are others'."""
    left, others = memory / "claim-ledger-metrics-left", memory / "others"
    for path in (left, others):
        path.mkdir()
        (path / "counter_1.db").touch()
    link = memory / "claim-ledger-metrics-link"
    link.symlink_to(others)
    with metrics_directory() as first, metrics_directory() as second:
        assert {*memory.iterdir()} == {Path(first), Path(second), others, link}
    assert {*memory.iterdir()} == {others, link}
    assert (others / "counter_1.db").exists()


def test_a_directory_that_another_start_removed_is_not_used(memory, monkeypatch):
    """It was made, and not locked yet."""
    monkeypatch.setattr(places.fcntl, "flock", lambda *_: [one.rmdir() for one in memory.iterdir()])
    with metrics_directory() as directory:
        assert Path(directory).is_dir()
        assert memory not in Path(directory).parents


def test_what_another_start_is_removing_does_not_keep_metrics_out_of_memory(memory, monkeypatch):
    """It was listed, and is gone when it is looked at."""
    left, listed = memory / "claim-ledger-metrics-left", os.scandir

    def removing(path):
        if path != memory:
            return listed(path)
        left.mkdir()
        entries = [*listed(path)]
        left.rmdir()
        return entries

    monkeypatch.setattr(places.os, "scandir", removing)
    with metrics_directory() as directory:
        assert memory in Path(directory).parents


def test_nobody_elses_directory_is_removed(memory, monkeypatch):
    """Whoever may write to memory can make one of that name."""
    theirs = memory / "claim-ledger-metrics-theirs"
    theirs.mkdir()
    (theirs / "counter_1.db").touch()
    monkeypatch.setattr(places.os, "geteuid", lambda: theirs.stat().st_uid + 1)
    with metrics_directory():
        pass
    assert (theirs / "counter_1.db").exists()


def test_without_room_in_memory_they_are_among_temporary_files(memory, monkeypatch):
    """Where it is not there, no directory, or full; one line says so."""
    makes = {
        "full": lambda: monkeypatch.setattr(places, "ROOM_BYTES_MIN", 1 << 62),
        "refused": lambda: (shutil.rmtree(memory), memory.touch()),
        "absent": memory.unlink,
    }
    with every_row() as row:
        for name, make in makes.items():
            make()
            with row(name), capture_logs() as lines:
                with metrics_directory() as directory:
                    assert Path(directory).is_dir()
                    assert memory not in Path(directory).parents
                assert not Path(directory).exists()
                assert [line["event"] for line in lines] == ["metrics are kept on disk"]
