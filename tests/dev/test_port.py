"""A dev keeps its port from when it begins to start."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn

import pytest

from service.cli.dev import run as starting
from service.cli.dev.faults import DevFault
from service.cli.dev.ports import free_port


class Meanwhile(Exception):
    """Ends a start where PostgreSQL would begin its own."""


def fail_if_announced(*_facts: object) -> NoReturn:
    """Nothing of this is served."""
    pytest.fail("served")


def test_of_two_devs_that_start_at_once_the_second_is_told(tmp_path, monkeypatch):
    """The first has its port while PostgreSQL starts, seconds before it listens there."""
    port, started = free_port(), list[Path]()

    class Starting(AbstractContextManager[Any]):
        def __init__(self, directory: Path) -> None:
            started.append(directory)

        def __enter__(self) -> NoReturn:
            with pytest.raises(DevFault, match=f"port {port} is taken"):
                starting.run(tmp_path / "second", port, {}, fail_if_announced)
            raise Meanwhile

        def __exit__(self, *_error: object) -> None:
            pass

    monkeypatch.setattr(starting, "EmbeddedPostgres", Starting)
    with pytest.raises(Meanwhile):
        starting.run(tmp_path / "first", port, {}, fail_if_announced)
    assert started == [tmp_path / "first" / "postgres"]
    assert free_port(port) == port
