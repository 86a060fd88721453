"""Receipts of whoever has the signing key: both verifiers say the same of each."""

import json

from service.core.ids import stream_id
from tests.evidence.altered_files import altered, settle, spelled
from tests.evidence.memory_log import receipt, sample, text
from tests.evidence.second_verifier import HOLDS, agreed, refused
from tests.tables import every_row

A_HASH = text(bytes(32))


def receipts():
    """Yield receipts of whose events something was altered before all was signed."""

    def made(number, change):
        log = sample()
        change(log.events[number])
        return receipt(log)

    def meta(**members):
        return made(5, lambda event: event["state"]["meta"].update(members))

    yield "as it is", receipt(sample()), HOLDS
    yield "no meta", made(5, lambda event: event["state"].pop("meta")), refused(6)
    yield "no data", made(5, lambda event: event.update(state=_WITHOUT_DATA)), refused(6)
    yield "no such day", meta(at="2026-02-30T10:15:30.123Z"), refused(6)
    yield "no zone", meta(at="2026-02-20T10:15:30.123"), refused(6)
    yield "another zone", meta(at="2026-02-20T10:15:30.123+00:00"), refused(6)
    yield "no text for a time", meta(at=7), refused(6)
    yield "no text for an actor", meta(actor=7), refused(6)
    begins = made(2, lambda event: event.update(topic="PayloadMismatchNoted"))
    yield "begins with another event", begins, refused(3)
    claim = made(2, lambda event: event["state"]["data"].update(entity_id="clm_1", claim_id="c"))
    yield "begins another claim", claim, refused(3)
    for name in ("entity_id", "partner_id"):
        absent = made(2, lambda event, name=name: event["state"]["data"].pop(name))
        yield f"no {name}", absent, refused(3)
    longer = altered(receipt(sample()), 0, lambda it: it["events"][0]["proof"].insert(0, A_HASH))
    yield "a hash too many", longer, refused(3)
    line = json.loads(receipt(sample()))
    first, last = line["events"]
    for name, events, said in (
        ("in another order", [last, first], refused(3)),
        ("an event twice", [first, first, last], refused(3)),
        ("without its first", [last], refused(6)),
        ("without a proof", [first, {n: v for n, v in last.items() if n != "proof"}], refused(6)),
        ("without events", [], refused()),
    ):
        yield name, spelled(line | {"events": events}), said
    rejected = altered(receipt(sample()), 0, lambda it: settle(it["events"][1]))
    yield "an altered event", rejected, refused(6)
    yield "another ledger's", spelled(line | {"ledger": "test"}), refused()
    other = stream_id("memory", "b")
    moved = made(5, lambda event: event.update(originator_id=str(other), originator_version=2))
    yield "an event of another stream", moved, refused(6)
    skipped = made(5, lambda event: event.update(originator_version=3))
    yield "without an event between", skipped, refused(6)
    log = sample()
    log.events.pop()
    log.events[-1]["position"] = 7  # its proof is that of position 6, the last one
    yield "a position beyond the checkpoint", receipt(log), refused(7)
    for name, drawn, said in (("first", 5, refused(6)), ("after", 6, HOLDS)):
        drawn_at = made(5, lambda event, drawn=drawn: event.update(append_id=drawn))
        yield f"an append id {name}", drawn_at, said


_WITHOUT_DATA = '{"meta":{"at":"2026-03-01T10:15:30.123Z","actor":"system:dev"},"claim_id":"clm_1"}'


def test_receipts(tmp_path):
    """Each event is one of that claim, or there is a fault where it is."""
    with every_row() as row:
        for name, content, said in receipts():
            with row(name):
                assert agreed(tmp_path / "receipt.json", content, None) == said
