"""Models of the protocols that rest on PostgreSQL's locks, explored in every interleaving.

spin makes a program of each model that visits every state which its processes can reach. The model
of the code holds all its invariants. A mutant takes one step away from the code and has to violate
the invariant that this step is there for: so the model would notice if the code lost it.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

MODELS = Path(__file__).parent
SPIN, COMPILER = shutil.which("spin"), shutil.which("gcc")
FAST = ["tcc", "-w"] if shutil.which("tcc") else ["gcc", "-w", "-O0"]
"""What compiles fastest: `tcc` takes 0.02 s, where it is installed; `gcc` takes 0.3 s, and makes a
program that is as slow."""
LONG = {"failover", "sequencer"}
"""Models of more than a million states: their search takes longer than `gcc -O1`, which takes a
second and makes it half as long."""
MEMORY_MIB_MAX = 1024
DEPTH_MAX = 100_000
"""Steps on one path. A search that meets this limit is not complete, and says so."""

HOLDS = {
    "floor": ["", "ON_TIME"],
    "sequencer": [""],
    "set_aside": [""],
    "subscriber": [""],
    "swap": [""],
    "swap_catch_up": [""],
    "failover": ["", "LATE", "SYNCHRONOUS"],
    "write": [""],
}
"""For each model the defines with which it holds: none, or an assumption that its text explains."""
VIOLATED_BY = {
    ("failover", "ARCHIVE_NOT_ASKED_AHEAD LINK_WRITTEN_TWICE"): "origin_is_consistent",
    ("failover", "BEGUN_BESIDE_ANOTHER_LOG"): "shared_size_is_true",
    ("failover", "EARLIER_LINEAGES_NOT_HELD"): "difference_is_declared",
    ("failover", "LATE LINK_WRITTEN_TWICE"): "difference_is_declared",
    ("failover", "LATE ORIGIN_NOT_CLOSED"): "difference_is_declared",
    ("failover", "LINEAGE_NOT_READ_AGAIN"): "difference_is_declared",
    ("failover", "SHARED_SIZE_OVERSTATED"): "shared_size_is_true",
    ("failover", "STORED_AFTER_ANOTHER_ONE"): "difference_is_declared",
    ("failover", "STORED_BESIDE_ANOTHER_LOG"): "loss_is_no_alteration",
    ("failover", "SYNCHRONOUS STORING_NOT_AWAITED"): "difference_is_declared",
    ("failover", "UNKNOWN_ORIGIN_TAKEN_FOR_KEPT"): "loss_can_be_declared",
    ("failover", "UNKNOWN_ORIGINS_PASSED_OVER"): "difference_is_declared",
    ("floor", "GAP_TAKEN_FOR_FOREIGN"): "nothing_is_set_aside",
    ("floor", "NEVER_LOOKED_BACK"): "nothing_is_lost",
    ("floor", "ON_TIME BEGUN_READ_WITH_THE_MARK"): "floor_not_passed",
    ("floor", "ON_TIME OPEN_TRANSACTIONS_PASSED_OVER"): "floor_not_passed",
    ("floor", "ON_TIME WAITING_PASSED_OVER"): "floor_not_passed",
    ("floor", "PREDECESSOR_NOT_LOOKED_AT"): "stream_order_holds",
    ("sequencer", "DRAWN_BEFORE_READ"): "stream_order_holds",
    ("sequencer", "HEAD_NOT_LOCKED"): "position_is_free",
    ("sequencer", "HEAD_READ_BEFORE_LOCK"): "position_is_free",
    ("sequencer", "INSERTED_OUT_OF_ORDER"): "stream_order_holds",
    ("sequencer", "LARGE_EVENT_PASSED_OVER"): "stream_order_holds",
    ("sequencer", "NUMBERED_OUT_OF_ORDER"): "stream_order_holds",
    ("sequencer", "PLACE_READ_APART"): "everything_is_read",
    ("sequencer", "POSITION_DRAWN_BEFORE_COMMIT"): "reader_not_passed",
    ("sequencer", "POSITION_IS_APPEND_ID"): "no_gap",
    ("sequencer", "QUEUE_EMPTIED_FIRST"): "nothing_is_lost",
    ("sequencer", "SIZE_ADVANCED_APART"): "position_is_free",
    ("set_aside", "HEAD_NOT_WAITED_FOR"): "event_is_there",
    ("set_aside", "LOG_NOT_LOOKED_AT"): "numbered_stays",
    ("set_aside", "MAC_NOT_LOOKED_AT"): "only_ours_numbered",
    ("set_aside", "PREDECESSOR_NOT_LOOKED_AT"): "no_version_missing",
    ("subscriber", "CHECKPOINT_MOVED_FIRST"): "everything_is_handled",
    ("subscriber", "CHECKPOINT_NOT_LOCKED"): "handled_once",
    ("subscriber", "LOSS_NOT_LOOKED_AT_AGAIN"): "no_false_loss",
    ("subscriber", "MOVED_TO_THE_HEAD"): "everything_is_handled",
    ("swap", "LOCKED_AFTER_NUMBERING"): "kept_rows_hold",
    ("swap", "MOVED_IN_TWO_TRANSACTIONS"): "table_is_there",
    ("swap", "NAME_LOOKED_UP_ONCE"): "rows_are_entire",
    ("swap", "NOTHING_NUMBERED"): "kept_rows_hold",
    ("swap", "ONE_BATCH_NUMBERED"): "kept_rows_hold",
    ("swap", "PROGRESS_KEPT_AFTER_A_FAILED_TRY"): "new_rows_hold",
    ("swap", "READER_KEEPS_AN_OLDER_SNAPSHOT"): "rows_are_entire",
    ("swap_catch_up", "CHECKPOINT_MOVED_TO_THE_HEAD"): "new_rows_hold",
    ("swap_catch_up", "CHECKPOINT_NOT_HELD"): "kept_rows_hold",
    ("swap_catch_up", "HEAD_READ_BEFORE_THE_WAIT"): "kept_rows_hold",
    ("swap_catch_up", "PROGRESS_KEPT_AFTER_A_FAILED_TRY"): "new_rows_hold",
    ("write", "CONNECTION_NOT_LOCKED"): "nothing_follows_the_end",
    ("write", "CONNECTION_NOT_LOOKED_AT"): "nothing_follows_the_end",
    ("write", "DRAWN_BEFORE_LOCK"): "nothing_follows_the_end",
    ("write", "LOCKED_TAKEN_FOR_WRITTEN"): "acknowledged_is_there",
    ("write", "LOCKS_LET_GO_WITH_THE_FUNCTION"): "nothing_follows_the_end",
    ("write", "LOOKED_BEFORE_LOCK"): "nothing_follows_the_end",
    ("write", "OWN_STREAM_NOT_LOCKED"): "key_is_free",
    ("write", "OWN_STREAM_NOT_LOOKED_AT"): "key_is_free",
    ("write", "REPLAY_DECIDED_WITHOUT_THE_CONNECTION"): "end_is_kept_to",
    ("write", "UPLOADS_NOT_LOOKED_AT"): "upload_is_there",
    ("write", "VERSION_NOT_EXPECTED"): "created_once",
}
"""The invariant that each mutant of a model violates."""

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(
        SPIN is None or COMPILER is None,
        reason="spin or its C compiler is not installed (apt-get install spin gcc libc6-dev)",
    ),
]


class Search(NamedTuple):
    """The result of a search: the invariant that a path violates, if one does, and the report."""

    violated: str | None
    report: str

    def unreached(self) -> list[str]:
        """Return the steps that no path reaches; a process that repeats never reaches its end."""
        steps = re.findall(r"^\t\S+\.pml:\d+, state \d+, (.*)$", self.report, re.MULTILINE)
        return [step for step in steps if step != '"-end-"']


def explore(model: str, defines: str, folder: Path) -> Search:
    """Search the states of a model; a search that is not complete fails, unless it found a path."""
    given = [f"-D{define}" for define in defines.split()]
    _run(folder, "spin", "-a", *given, str(MODELS / f"{model}.pml"))
    # States are kept as they are: half a gigabyte at most; to compress them takes a fifth longer.
    options = ["-DSAFETY", "-DNOFAIR", f"-DMEMLIM={MEMORY_MIB_MAX}"]
    # What ends soon is compiled soon, and begins with room for a million states, not for sixteen.
    is_long = model in LONG and not defines
    compiler, room = (["gcc", "-w", "-O1"], "-w24") if is_long else (FAST, "-w20")
    _run(folder, *compiler, *options, "-o", "pan", "pan.c")
    report = _run(folder, "./pan", f"-m{DEPTH_MAX}", room)
    found = re.search(r"^pan:1: (?:assertion violated )?(.*) \(at depth", report, re.MULTILINE)
    if found is None:
        assert "errors: 0" in report, report
        assert "max search depth too small" not in report, report
        assert "Search not completed" not in report, report
    return Search(found and found[1], report)


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("model", "assumption"), [(model, one) for model, these in HOLDS.items() for one in these]
)
def test_no_interleaving_violates_an_invariant(model, assumption, tmp_path):
    """Every state is visited; every step of every process is reached, if nothing is assumed."""
    search = explore(model, assumption, tmp_path)
    assert search.violated is None
    assert assumption or search.unreached() == []


@pytest.mark.parametrize(("model", "mutant"), VIOLATED_BY)
def test_a_mutant_is_caught(model, mutant, tmp_path):
    """Without the step that it takes away, the invariant does not hold."""
    assert explore(model, mutant, tmp_path).violated == VIOLATED_BY[model, mutant]


def test_every_mutant_is_run():
    """The list above has each name that a model asks for."""
    asked = {
        (path.stem, name)
        for path in MODELS.glob("*.pml")
        for name in re.findall(r"^#if(?:n?def) (\w+)$", path.read_text(), re.MULTILINE)
    }
    given = [*VIOLATED_BY, *((model, one) for model, these in HOLDS.items() for one in these)]
    assert asked == {(model, define) for model, defines in given for define in defines.split()}
