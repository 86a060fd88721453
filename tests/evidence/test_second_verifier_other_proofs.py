"""Proofs of consistency, absence and histories of whoever has the key: both say the same."""

import json
from uuid import UUID

from service.evidence.checkpoint import Checkpoint
from service.evidence.streams_note import StreamsNote
from service.facts.claims import claim_stream
from service.ledger.merkle import EMPTY_ROOT
from tests.evidence.altered_files import altered, hash_of, settle, spelled
from tests.evidence.evidence_world import KEY
from tests.evidence.memory_log import CLAIM, ENTITY, HOME, MemoryLog, of_entity, sample, text
from tests.evidence.memory_proofs import PROOFS, absence, continued, history, linked, signed
from tests.evidence.second_verifier import HOLDS, agreed
from tests.tables import every_row

REFUSED = False, None
ELSEWHERE = HOME.replace("/live", "/test")
A_HASH = text(bytes(32))


def case_where(is_there, epochs=(0,), cases=tuple(f"case-{number}" for number in range(9999))):
    """Return an epoch and a partner's id of a claim whose stream is where it should be."""
    names = ((epoch, case) for epoch in epochs for case in cases)
    return next(
        {"epoch": epoch, "partner_claim_id": case}
        for epoch, case in names
        if is_there(claim_stream("live", epoch, "ptn_1", ENTITY, case))
    )


def moved():
    """Yield what is put together from genuine proofs that a claim is absent."""
    log = sample()
    genuine = json.loads(absence(log))
    low, high = (UUID(genuine[name]["stream"]) for name in ("before", "after"))
    yield "a claim before its neighbours", genuine | case_where(lambda one: one < low)
    yield "a claim after its neighbours", genuine | case_where(lambda one: one > high)
    anew = case_where(lambda one: low < one < high, range(1, 999), ("case-5",))
    yield "an epoch", genuine | anew
    for absent in (["before"], ["after"], ["before", "after"]):
        less = {name: value for name, value in genuine.items() if name not in absent}
        yield f"no {absent}", less
    yield "a place beyond the index", less | {"index": 99}
    checkpoint = Checkpoint.open(genuine["checkpoint"], [KEY])
    nothing = StreamsNote(checkpoint, 0, bytes(32)).sign(KEY)
    yield "an empty index with a root", less | {"index": 0, "streams": nothing}
    elsewhere = json.loads(absence(log))
    elsewhere["before"]["position"] += 1
    yield "a neighbour that begins elsewhere", elsewhere
    longer = json.loads(absence(log))
    longer["before"]["proof"].insert(0, A_HASH)
    yield "a hash too many", longer
    body = genuine["streams"].partition("\n\n")[0] + "\n"
    for name, before, after in (
        ("another heading", "streams v1", "stream v1"),
        ("a seventh line", body, f"{body}x\n"),
        ("a count of two digits", "\n4\n", "\n04\n"),
        ("a count with a sign", "\n4\n", "\n+4\n"),
        ("a size with a zero", "\n7\n", "\n07\n"),
        ("no origin", log.origin, ""),
    ):
        assert before in body
        yield name, genuine | {"streams": signed(body.replace(before, after))}
    log.events.pop()
    later = json.loads(absence(log))["checkpoint"]
    yield "another checkpoint", genuine | {"checkpoint": later}


def test_both_refuse_a_proof_of_the_absence_of_another_claim(tmp_path):
    """Or at another place or checkpoint, although all that is signed or proved in it holds."""
    with every_row() as row:
        for name, line in moved():
            with row(name):
                assert agreed(tmp_path / "absence.json", spelled(line), None) == REFUSED


def places():
    """Yield proofs that a claim is absent, each at the place that its own index has for it."""
    log = sample()
    lowest, *_, highest = sorted({UUID(event["originator_id"]) for event in log.events})
    case = case_where(lambda one: one < lowest)["partner_claim_id"]
    yield "before all streams", absence(log, case), HOLDS
    last = absence(log, case_where(lambda one: one > highest)["partner_claim_id"])
    yield "after all streams", last, HOLDS
    line = json.loads(last)
    yield "beyond all streams", spelled(line | {"index": line["index"] + 1}), REFUSED
    yield "of no events", absence(MemoryLog()), HOLDS
    of_none = json.loads(absence(MemoryLog()))
    checkpoint = Checkpoint.open(of_none["checkpoint"], [KEY])
    assert StreamsNote.open(of_none["streams"], [KEY]) == (checkpoint, 0, EMPTY_ROOT)

    for position, said in ((8, HOLDS), (9, REFUSED)):
        at_end = sample()
        neighbour = UUID(int=claim_stream("live", 0, "ptn_1", ENTITY, "case-9").int + 1)
        at_end.add(str(neighbour), "EntityRegistered", {"entity_id": "ent_3"})
        at_end.events[-1]["position"] = position
        yield f"a neighbour that begins at {position} of 8", absence(at_end), said

    there = sample()
    names = {"claim_id": "clm_9", "entity_id": ENTITY, "partner_id": "ptn_1"}
    stream = str(claim_stream("live", 0, "ptn_1", ENTITY, "case-9"))
    there.add(stream, "ClaimCreated", names)
    for beyond, name in enumerate(("after", "before")):
        content = absence(there, beyond=beyond)
        assert json.loads(content)[name]["stream"] == stream
        yield f"the claim is the one {name}", content, REFUSED

    sandbox = sample()
    sandbox.origin = f"{ELSEWHERE}/lin_2"
    yield "a sandbox that began anew", absence(sandbox, ledger="test", epoch=3), HOLDS
    yield "another ledger's checkpoint", absence(sandbox, epoch=0), REFUSED
    yield "an epoch in live", absence(sample(), epoch=3), REFUSED


def test_a_claim_is_absent_where_it_would_be(tmp_path):
    """At either end of the index, too, and not if it is its own neighbour."""
    with every_row() as row:
        for name, content, said in places():
            with row(name):
                assert agreed(tmp_path / "absence.json", content, None) == said


def consistencies():
    """Yield proofs that one log continues another, and what both say of each."""
    log = sample()
    line, links = json.loads(continued(log)), json.loads(linked(log))
    yield "a hash too many", line | {"proof": [A_HASH, *line["proof"]]}, REFUSED
    yield "a hash too few", line | {"proof": line["proof"][1:]}, REFUSED
    nothing = Checkpoint(log.origin, 0, EMPTY_ROOT).sign(KEY)
    yield "from nothing", line | {"older": nothing, "proof": []}, HOLDS
    yield "from nothing, with a hash", line | {"older": nothing, "proof": [A_HASH]}, REFUSED
    other = Checkpoint(log.origin, 0, bytes(32)).sign(KEY)
    yield "from another nothing", line | {"older": other, "proof": []}, REFUSED
    same = line | {"older": log.note(), "proof": []}
    yield "from itself", same, HOLDS
    yield "from another one of its size", same | {"older": _of(7)}, REFUSED
    yield "from more", same | {"older": _of(8)}, (False, 8)
    yield "from what was lost", links | {"older": _of(4, "lin_1")}, (False, 4)
    yield "two origins without lineages", line | {"older": _of(3, "lin_1")}, REFUSED
    middle = links["lineages"]
    yield "without the first lineage", links | {"lineages": middle[1:]}, (False, 5)
    yield "without the last lineage", links | {"lineages": middle[:1]}, REFUSED
    other_event = next(
        event for event in log.lines(1, with_proofs=True) if event["topic"] == "EntityRegistered"
    )
    among = sorted([*middle, other_event], key=lambda event: event["position"])
    yield "another event among lineages", links | {"lineages": among}, (False, 2)
    middle[0] |= {"state": middle[0]["state"].replace("lost", "kept")}
    middle[0] |= {"leaf_hash": text(hash_of(middle[0]))}
    yield "an altered lineage", links | {"lineages": middle}, (False, 1)
    same_origin = links | {"older": log.note(3)}
    yield "one origin with lineages", same_origin, REFUSED
    more = sample()
    more.add(middle[0]["originator_id"], "LineageRemarked", {"remark": "another topic"})
    yield "an event of another topic among lineages", json.loads(linked(more)), HOLDS
    yield "of another ledger's name", line | {"ledger": "test"}, REFUSED
    foreign = Checkpoint(f"{ELSEWHERE}/lin_1", 3, log.tree.root(3)).sign(KEY)
    yield "of another ledger", links | {"older": foreign}, REFUSED


def _of(size, lineage="lin_2"):
    """Return a checkpoint's note whose root is none of the log's."""
    return Checkpoint(f"{HOME}/{lineage}", size, bytes(32)).sign(KEY)


def test_proofs_of_consistency(tmp_path):
    """No hash is passed over, and what links two origins is all of one stream."""
    with every_row() as row:
        for name, line, said in consistencies():
            with row(name):
                assert agreed(tmp_path / "consistency.json", spelled(line), None) == said


def test_a_proof_of_consistency_is_checked_before_it_is_believed(tmp_path):
    """It is not signed: whoever kept another checkpoint would find their own root in it."""
    log = sample()
    header, *rest = of_entity(log).splitlines(keepends=True)
    line, kept = json.loads(header), Checkpoint(log.origin, log.older_size, bytes(32)).sign(KEY)
    line["consistency"]["root"] = A_HASH
    content = spelled(line) + b"".join(rest)
    assert agreed(tmp_path / "entity.ndjson", content, kept) == REFUSED


def test_a_linked_proof_ends_with_the_lineage_of_its_newer_checkpoint(tmp_path):
    """With a later one among its lineages, it is of a log that has been given up."""
    log = sample()
    log.begin("lin_3", "lin_2", 7, 7)
    content = PROOFS["linked.json"](log)
    assert agreed(tmp_path / "linked.json", content, None) == REFUSED
    log.origin = f"{HOME}/lin_3"
    content = PROOFS["linked.json"](log)
    assert agreed(tmp_path / "linked.json", content, None) == HOLDS


def histories():
    """Yield proofs of histories, an older checkpoint for each, and what both say."""
    log, sandbox = sample(), sample()
    sandbox.origin = f"{ELSEWHERE}/lin_2"
    line, other = json.loads(history(log)), json.loads(history(sandbox))
    (part,), (beside,) = line["ledgers"], other["ledgers"]
    both = line | {"ledgers": [part, beside | {"ledger": "test"}]}
    yield "two ledgers", both, None, HOLDS
    for name, kept in (("first", log), ("second", sandbox)):
        yield f"the {name} ledger's checkpoint", both, kept.note(), HOLDS
        another = Checkpoint(kept.origin, 7, bytes(32)).sign(KEY)
        yield f"another one of the {name}", both, another, (False, 1)
    yield "a checkpoint of another size", line, log.note(4), REFUSED
    yield "a checkpoint of neither", line, sandbox.note(), REFUSED
    yield "a ledger twice", line | {"ledgers": [part, part]}, None, REFUSED
    yield "no ledger", line | {"ledgers": []}, None, REFUSED
    yield "no event", line | {"ledgers": [part | {"events": []}]}, None, REFUSED
    yield "another ledger's checkpoint", line | {"ledgers": [beside]}, None, REFUSED
    first, second = part["events"]
    for name, events in ("an event twice", [first, first]), ("another order", [second, first]):
        yield name, line | {"ledgers": [part | {"events": events}]}, None, (False, 3)
    changed = json.loads(altered(history(log), 0, lambda it: settle(it["ledgers"][0]["events"][1])))
    yield "an altered event", changed, None, (False, 6)
    yield "an event of others", line | {"subject": CLAIM + "1"}, None, (False, 3)
    yield "a part of an id", line | {"subject": CLAIM[:-1]}, None, (False, 3)


def test_histories(tmp_path):
    """Each ledger is there once, with a checkpoint of its own."""
    with every_row() as row:
        for name, line, kept, said in histories():
            with row(name):
                assert agreed(tmp_path / "history.json", spelled(line), kept) == said
