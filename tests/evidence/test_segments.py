"""Streams of a log that is read in parts: each begins once, and goes on where it was."""

import tempfile
from contextlib import closing
from uuid import UUID, uuid4

import pytest

from service.evidence.verify import segments
from service.evidence.verify.segments import Acted, JoinedStreams, PartStreams, Whole
from tests.small_files import files_of_at_most

ONE, OTHER = uuid4(), uuid4()
FIRST, SECOND, THIRD = (1, 10), (2, 11), (3, 12)


def joined(*parts, wanted=()):
    """Return what is known of streams; a part is turns, a turn the events of streams in order."""
    with closing(JoinedStreams(len(parts))) as streams:
        for number, turns in enumerate(parts):
            part = PartStreams(lambda sent, number=number: streams.put(number, sent))
            for turn in turns:
                for stream, events in turn.items():
                    (version, append_id), (last, last_append_id) = events[0], events[-1]
                    part.last[stream.bytes] = last << 64 | last_append_id
                    if version > 1:
                        part.continued[stream.bytes] = version << 64 | append_id
                part.put_away()
        return streams.whole([stream.bytes for stream in wanted])


@pytest.mark.parametrize("spooled", [segments.SPOOLED_BYTES_MAX, 1])
def test_streams_go_on_from_turn_to_turn_and_from_part_to_part(monkeypatch, spooled):
    """In memory and on disk; of those that are wanted it is known where they begin and end."""
    monkeypatch.setattr(segments, "SPOOLED_BYTES_MAX", spooled)
    parts = [[{ONE: [FIRST]}, {ONE: [SECOND]}], [{OTHER: [FIRST]}], [{ONE: [THIRD]}]]
    found = joined(*parts, wanted=(ONE, OTHER, uuid4()))
    assert found == {ONE.bytes: Whole((0, 0), *THIRD), OTHER.bytes: Whole((1, 0), *FIRST)}


@pytest.mark.parametrize(
    "parts",
    [
        [[{ONE: [SECOND]}]],
        [[{ONE: [FIRST]}, {ONE: [FIRST]}]],
        [[{ONE: [FIRST]}], [{ONE: [FIRST, SECOND]}]],
        [[{ONE: [FIRST]}], [{ONE: [THIRD]}]],
        [[{ONE: [SECOND]}], [{ONE: [FIRST]}]],
        [[{ONE: [FIRST]}], [{ONE: [(2, 10)]}]],
        [[{ONE: [FIRST]}], [{ONE: [SECOND]}], [{ONE: [(3, 11)]}]],
    ],
)
def test_a_stream_that_does_not_go_on_is_noticed(parts):
    """It has no beginning, begins twice, has a gap, or was appended before what it follows."""
    assert joined(*parts) is None


def test_a_stream_that_is_not_here_began_before():
    """It is remembered in which turn and where it was asked for first, and how often it was."""
    part = PartStreams(lambda _sent: None)
    part.last[ONE.bytes] = 1 << 64 | 1
    assert [part.has_begun(one, 7) for one in (ONE, OTHER)] == [True, True]
    part.put_away()
    assert [part.has_begun(one, 8) for one in (ONE, OTHER)] == [True, True]
    acted = {stream: Acted.of(packed) for stream, packed in part.acted}
    assert acted == {OTHER.bytes: Acted(0, 2, 7), ONE.bytes: Acted(1, 1, 8)}


def test_what_a_part_has_sent_can_be_taken_back():
    """A part whose process has gone is read again, and sends all anew."""
    with closing(JoinedStreams(1)) as streams:
        for _ in range(2):
            streams.forget(0)
            part = PartStreams(lambda sent: streams.put(0, sent))
            part.last[UUID(int=1).bytes] = 1 << 64 | 1
            part.put_away()
        assert streams.whole([UUID(int=1).bytes]) == {UUID(int=1).bytes: Whole((0, 0), 1, 1)}


@pytest.mark.parametrize("bytes_max", [0, 100], ids=["none at all", "for some of them"])
def test_without_a_place_on_disk_nothing_is_known(monkeypatch, bytes_max):
    """Nor does anything fail, then or at the end: the log is walked through instead."""
    monkeypatch.setattr(segments, "SPOOLED_BYTES_MAX", 1)
    monkeypatch.setattr(tempfile, "tempdir", tempfile.gettempdir())  # found while it had a place
    parts = [[{ONE: [FIRST]}, {ONE: [SECOND]}], [{OTHER: [FIRST]}], [{ONE: [THIRD]}]]
    with files_of_at_most(bytes_max):
        assert joined(*parts, wanted=(ONE,)) is None
