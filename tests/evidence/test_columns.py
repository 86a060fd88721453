"""Columns that no ledger's events have: neither verifier takes them, and no export has them."""

import pytest

from service.cli.audit.checked import checked
from service.evidence.checkpoint import Checkpoint
from service.evidence.demands import NO_DEMANDS
from service.evidence.export import format as lines
from service.evidence.export.export_verifier import verify_export
from service.evidence.export.format import EvidenceFault, event_line
from service.evidence.export.standard_proofs import TLOG_PROOF_BEGINS
from service.ledger.merkle import leaf_hash, leaf_record
from tests.evidence.evidence_world import KEY
from tests.evidence.memory_log import FILES, sample
from tests.evidence.second_verifier import PROGRAM, first, judged
from tests.evidence.standard_files import ORIGIN, STREAM
from tests.tables import every_row

CHANGED = 6
"""The position of a claim's second event, which is in files of every kind."""
HELD = [{"topic": "C" * 200}, {"topic": "_1"}, {"append_id": 2**63 - 1}]
NOT_HELD = [
    *({"topic": topic} for topic in ("", "a\nb", "a\x00", "a\x7f", "a b", "\u00e9", "C" * 201)),
    *({"append_id": append_id} for append_id in (0, -1, 2**63)),
]


def verdicts(folder, name, content):
    """Return both verdicts on a file."""
    path = folder / name
    path.write_bytes(content)
    return first(path, None, [KEY]), judged(path)


def test_both_refuse_columns_that_no_event_has(tmp_path):
    """Also where they are hashed and signed; a file of lines names the position."""
    with every_row() as row:
        for change, is_held in [(one, True) for one in HELD] + [(one, False) for one in NOT_HELD]:
            for name, write in FILES.items():
                log = sample()
                log.events[CHANGED - 1] |= change
                position = None if is_held or name in {"entity.ndjson", "receipt.json"} else CHANGED
                with row(name, change):
                    said = is_held, position
                    assert verdicts(tmp_path, name, write(log)) == (said, said)


def test_the_fault_names_the_column(tmp_path):
    """In the words in which any other line that cannot be one is refused."""
    with every_row() as row:
        for name, change in ("topic", {"topic": "a\nb"}), ("append_id", {"append_id": 0}):
            log, path = sample(), tmp_path / "whole.ndjson"
            log.events[CHANGED - 1] |= change
            path.write_bytes(FILES[path.name](log))
            with row(name):
                said = verify_export(path, [KEY], None).fault
                assert said.startswith("not a line of this format: ")
                assert said.endswith(f"at `$.{name}`")


def test_a_state_has_the_bytes_that_a_ledger_can_hold(tmp_path, monkeypatch):
    """At most: both count what UTF-8 takes, not characters."""
    assert lines.STATE_BYTES_MAX == PROGRAM.STATE_BYTES_MAX
    for module in lines, PROGRAM:
        monkeypatch.setattr(module, "STATE_BYTES_MAX", 4096)
    with every_row() as row:
        for state, said in (("\u00e9" * 2048, (True, None)), ("\u00e9" * 2048 + "x", (False, 6))):
            log = sample()
            log.events[CHANGED - 1]["state"] = state
            with row(len(state)):
                assert verdicts(tmp_path, "whole.ndjson", FILES["whole.ndjson"](log)) == (said,) * 2


def test_the_events_of_a_receipt_were_appended_in_their_order(tmp_path):
    """As the ledger draws the ids: both name the one that came too early."""
    log = sample()
    created, changed = log.events[2], log.events[CHANGED - 1]
    for append_id in created["append_id"], created["append_id"] - 1:
        changed["append_id"] = append_id
        said = False, CHANGED
        assert verdicts(tmp_path, "receipt.json", FILES["receipt.json"](log)) == (said, said)


def test_an_entry_has_the_same_columns(tmp_path):
    """Beside a proof in a format of others, whose leaf it is."""
    columns = {"append_id": 1, "originator_id": STREAM, "originator_version": 1, "topic": "Made"}
    path = tmp_path / "1.tlog-proof"
    bad = [*NOT_HELD, {"originator_version": 0}, {"originator_version": 2**63}]
    with every_row() as row:
        for change, is_held in [(one, True) for one in HELD] + [(one, False) for one in bad]:
            entry = leaf_record(1, **columns | change, state=b"{}")
            note = Checkpoint(ORIGIN, 1, leaf_hash(entry)).sign(KEY)
            path.write_bytes(TLOG_PROOF_BEGINS + b"index 0\n\n" + note.encode())
            path.with_suffix(".entry").write_bytes(entry)
            with row(change):
                assert (of_others(path), judged(path)) == ((is_held, 1),) * 2


def of_others(path):
    """Return whether the service takes a proof in a format of others, and of which position."""
    try:
        answer = checked(path, [KEY], None, NO_DEMANDS)
    except EvidenceFault as fault:
        return False, fault.position
    return answer["ok"], answer["position"]


def test_what_no_verifier_takes_is_not_exported(monkeypatch):
    """The event is named instead, as one is whose state is not UTF-8."""
    monkeypatch.setattr(lines, "STATE_BYTES_MAX", 4096)
    columns = {"append_id": 1, "originator_id": STREAM, "originator_version": 1, "topic": "Made"}
    columns |= {"state": b"{}"}
    stored = [one for one in NOT_HELD if one.get("append_id") != 2**63]  # which no column has
    with every_row() as row:
        for change in ({"state": b"x" * 4097}, *stored):
            event = columns | change
            with row(change), pytest.raises(EvidenceFault, match="no ledger's events") as refused:
                event_line(event | {"leaf_hash": leaf_hash(leaf_record(7, **event))}, 7)
            assert refused.value.position == 7
        for change in ({"state": b"x" * 4096}, *HELD):
            event = columns | change
            with row(change):
                event_line(event | {"leaf_hash": leaf_hash(leaf_record(7, **event))}, 7)
