"""The abstract recorder tests of the `eventsourcing` package hold for our ledger (issue: replay).

The package's cases are not changed. `DIFFERENCES` has each one that does not hold, or not as it
stands, with the reason; a test holds that table against the package, so that none is left out.
"""

from contextlib import suppress
from uuid import uuid4

import pytest
from eventsourcing.tests import persistence as cases

from service.ledger.sequencer import Sequencer
from tests.ledger.raw_events import RawEvent, append_raw
from tests.ledger.recorder_adapter import (
    LedgerAggregateRecorder,
    LedgerApplicationRecorder,
    LoopThread,
)
from tests.world import settings_for

NO_TRACKING = (
    "The ledger has no tracking recorder: a subscriber's checkpoint moves in the transaction of its"
    " writes, under a row lock that lets one process through (service/ledger/following),"
    " and is tested in tests/projections/test_runner.py."
)
NO_FACTORY = "The ledger is made by service/app/bootstrap.py, and no recorder is made from a topic."
NO_TRANSCODER = "The ledger's codec has no part in recording; it is tested in test_codec.py."

DIFFERENCES = {
    "NonInterleavingNotificationIDsBaseCase.test": (
        "Appends do not wait for each other: two that run at once may share a stretch of the log."
        " TestInterleaving asserts what holds instead: no gap, none missing, each stream in order."
    ),
    "TrackingRecorderTestCase": NO_TRACKING,
    "ProcessRecorderTestCase": NO_TRACKING,
    "InfrastructureFactoryTestCase": NO_FACTORY,
    "TranscoderTestCase": NO_TRANSCODER,
}
"""Cases, or whole classes of them, that are not run here."""


class OnLedger:
    """A ledger of accounts of the test's own, in a thread."""

    @pytest.fixture(autouse=True)
    def _ledger(self, database_url, tmp_path):
        self.thread = LoopThread(settings_for(database_url, tmp_path))
        yield
        self.thread.close()


class TestAggregateRecorder(OnLedger, cases.AggregateRecorderTestCase):
    """Streams: append all or nothing, read a part, each version once."""

    def create_recorder(self):
        """Return the recorder of this test's ledger."""
        return LedgerAggregateRecorder(self.thread)


class TestApplicationRecorder(OnLedger, cases.ApplicationRecorderTestCase):
    """The log: contiguous positions, with writers and readers at once."""

    def create_recorder(self):
        """Return the recorder of this test's ledger."""
        return LedgerApplicationRecorder(self.thread)

    def test_insert_subscribe(self):
        """The case that the package leaves to recorders which can be subscribed to."""
        self.optional_test_insert_subscribe()


class TestInterleaving(OnLedger, cases.NonInterleavingNotificationIDsBaseCase):
    """The package's race of two large inserts, and what holds after it."""

    def create_recorder(self):
        """Return the recorder of this test's ledger, to be kept for what follows."""
        self.recorder = LedgerApplicationRecorder(self.thread)
        return self.recorder

    def test(self):
        """Whether they interleave or not: positions without a gap, each stream in its order."""
        with suppress(AssertionError):  # its last assertion is the difference, and left to chance
            super().test()
        found = self.recorder.select_notifications(1, 3 * self.insert_num)
        streams = {one.originator_id: [] for one in found}
        for one in found:
            streams[one.originator_id].append(one.originator_version)
        assert [one.id for one in found] == list(range(1, 2 * self.insert_num + 1))
        assert list(streams.values()) == [list(range(self.insert_num))] * 2


def test_interleaving_is_possible(database_url, tmp_path):
    """What is listed as a difference is one: of two appends at once, both are in each other's way.

    The first transaction draws its ids around those of the second; numbering follows the ids.
    """
    thread = LoopThread(settings_for(database_url, tmp_path))
    try:
        recorder = LedgerApplicationRecorder(thread)
        one, other = uuid4(), uuid4()
        thread.run(_around(recorder, one, other))
        thread.run(Sequencer(thread.ledger).step())
        found = recorder.select_notifications(1, 10)
        assert [note.originator_id for note in found] == [one, other, one]
        assert [note.id for note in found] == [1, 2, 3]
    finally:
        thread.close()


def test_every_case_of_the_package_is_run_or_listed():
    """Each test method of each class of the package: run by a class here, or in DIFFERENCES."""
    here = [TestAggregateRecorder, TestApplicationRecorder]
    run = {
        f"{base.__name__}.{name}"
        for cls in here
        for base in cls.__mro__
        if base.__module__ == cases.__name__
        for name in vars(base)
        if name.startswith("test") and vars(cls).get(name) is None
    }
    listed = {
        name for name in _methods() if name in DIFFERENCES or name.partition(".")[0] in DIFFERENCES
    }
    assert run | listed == _methods()
    assert run & listed == set()
    assert {name.partition(".")[0] for name in DIFFERENCES} <= {
        name.partition(".")[0] for name in _methods()
    }
    assert all(len(reason) > 40 for reason in DIFFERENCES.values())


def _methods() -> set[str]:
    return {
        f"{cls.__name__}.{name}"
        for cls in vars(cases).values()
        if isinstance(cls, type) and cls.__module__ == cases.__name__ and "TestCase" in _bases(cls)
        for name in vars(cls)
        if name.startswith("test")
    }


def _bases(cls: type) -> set[str]:
    return {base.__name__ for base in cls.__mro__}


async def _around(recorder, one, other):
    """Append to `one`; to `other`, in a transaction that commits first; and to `one` again."""
    ledger = recorder.ledger

    async def event(transaction, stream, version):
        await append_raw(ledger, transaction, RawEvent(stream, version, "topic", b"state"))

    async with ledger.transaction() as first:
        await event(first, one, 1)
        async with ledger.transaction() as second:
            await event(second, other, 1)
        await event(first, one, 2)
