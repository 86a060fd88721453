"""The order of events within their streams, of which only so many are kept in memory."""

import random
import sqlite3
import tempfile
from contextlib import closing
from uuid import UUID, uuid4

import pytest

from service.evidence.verify.streams import Streams
from tests.small_files import files_of_at_most

FILE_BYTES_MAX = 1_100_000
"""Room for the streams that are put away first, and not for the next ones beside them."""


@pytest.fixture
def little_room():
    """Let this process write no larger file: as on a disk that is full by then."""
    with files_of_at_most(FILE_BYTES_MAX):
        yield


def test_the_order_within_a_stream_is_checked():
    """Versions count up from 1 without a gap, and append_ids rise within each stream."""
    streams, one, other = Streams(), uuid4(), uuid4()
    assert streams.take(one, 1, 7) is None
    assert streams.take(other, 1, 3) is None
    assert streams.take(one, 2, 8) is None
    assert streams.take(one, 2, 9) == "it is version 2 of its stream, where version 3 is due"
    assert streams.take(one, 4, 9) == "it is version 4 of its stream, where version 3 is due"
    assert (
        streams.take(one, 3, 8) == "it was appended before the event that it follows in its stream"
    )
    assert streams.take(uuid4(), 1, 0) == "its append_id is 0"


@pytest.mark.parametrize("in_memory_max", [1, 2, 7])
def test_streams_on_disk_are_known_as_those_in_memory(in_memory_max):
    """Whatever is where: what is said of each event is the same."""
    drawn = random.Random(7)  # noqa: S311 - the same events each time
    ids = [UUID(int=drawn.getrandbits(128)) for _ in range(12)]
    with closing(Streams()) as all_in_memory, closing(Streams(in_memory_max)) as some_on_disk:
        for append_id in range(1, 600):
            event = (drawn.choice(ids), drawn.randrange(1, 60), append_id - drawn.randrange(9))
            assert some_on_disk.take(*event) == all_in_memory.take(*event)
            asked = drawn.choice(ids)
            assert some_on_disk.has_begun(asked) == all_in_memory.has_begun(asked)


def test_without_a_place_on_disk_all_streams_stay_in_memory(monkeypatch):
    """A verification needs no disk; it takes more memory then."""

    def refuse(_path):
        raise sqlite3.OperationalError

    monkeypatch.setattr("service.evidence.verify.streams.sqlite3.connect", refuse)
    with closing(Streams(2)) as streams:
        begun = [uuid4() for _ in range(9)]
        for nr, stream in enumerate(begun, 1):
            assert streams.take(stream, 1, nr) is None
        assert all(map(streams.has_begun, begun))


@pytest.mark.usefixtures("little_room")
def test_a_disk_that_is_full_in_the_middle_loses_no_stream():
    """What was put away before is still read; the rest stays in memory."""
    drawn = random.Random(7)  # noqa: S311 - the same streams each time
    begun = [UUID(int=drawn.getrandbits(128)) for _ in range(50_000)]
    with closing(Streams(20_000)) as streams:
        for nr, stream in enumerate(begun, 1):
            assert streams.take(stream, 1, nr) is None
        assert all(map(streams.has_begun, begun))
        assert {streams.take(stream, 2, nr) for nr, stream in enumerate(begun, 60_000)} == {None}


def test_what_is_on_disk_has_no_name(tmp_path, monkeypatch):
    """A process that is killed leaves nothing; without a directory, all stay in memory."""
    for directory in (tmp_path, tmp_path / "missing"):
        monkeypatch.setattr(tempfile, "tempdir", str(directory))
        with closing(Streams(2)) as streams:
            for nr in range(1, 9):
                assert streams.take(uuid4(), 1, nr) is None
            assert not list(tmp_path.iterdir())
