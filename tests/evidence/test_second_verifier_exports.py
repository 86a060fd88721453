"""Exports of whoever has the signing key: both verifiers say the same of each."""

import json

import pytest

from service.core.ids import stream_id
from service.evidence.authorisation import authorised
from service.evidence.checkpoint import Checkpoint
from service.evidence.export import format as lines
from service.evidence.export.export_verifier import verify_export
from tests.evidence.altered_files import altered, settle, spelled
from tests.evidence.evidence_world import KEY
from tests.evidence.memory_log import (
    ENTITY,
    HOME,
    MemoryLog,
    later,
    of_entity,
    receipt,
    sample,
    text,
    whole,
)
from tests.evidence.second_verifier import HOLDS, PROGRAM, agreed, refused, second
from tests.tables import every_row

ELSEWHERE = HOME.replace("/live", "/test")
A_HASH = text(bytes(32))


def old(origin, size, root=bytes(32)):
    """Return an older checkpoint's note."""
    return Checkpoint(origin, size, root).sign(KEY)


def without(content, *parts):
    """Return a file without the lines that have one of these parts."""
    kept = content.splitlines(keepends=True)
    return b"".join(line for line in kept if not any(part in line for part in parts))


def log_of(*begun, events=0, **changed):
    """Return a log of lineages, given as `MemoryLog.begin` takes them, with events after the first.

    `changed` are members of the last but one, or of an only one.
    """
    log = MemoryLog()
    for number, one in enumerate(begun):
        log.begin(*one)
        for _ in range(0 if number else events):
            log.add(str(stream_id("memory", "x")), "EntityRegistered", {"entity_id": ENTITY})
    log.origin = f"{HOME}/{begun[-1][0]}"
    log.events[-2 if len(begun) > 2 else -1]["state"]["data"].update(changed)
    return log


def lineages():
    """Yield what is remarkable of the last lineages of a log, the log, and what both say of it."""
    one, two, last = ("lin_1",), ("lin_2", "lin_1", 3, 1), ("lin_9", "lin_8", 3, 1)
    yield "begins again", log_of(one, two, ("lin_1", "lin_2", 3, 1)), refused(3)
    yield (
        "begins after it was named",
        log_of(one, ("lin_2", "lin_9", 3, 1), ("lin_9", "lin_2", 3, 1)),
        refused(3),
    )
    yield "follows itself", log_of(one, ("lin_2", "lin_2", 3, 1)), refused(2)
    yield "follows itself at first", log_of(("lin_2", "lin_2", 3, 0)), refused(1)
    yield "of another ledger", log_of(one, two, last, origin=f"{ELSEWHERE}/lin_2"), refused(2)
    foreign = old(f"{ELSEWHERE}/lin_1", 3)
    yield "follows another ledger's", log_of(one, two, previous=foreign), refused(2)
    alone = {"authorisation": authorised(KEY, f"{HOME}/lin_1", "").authorisation}
    for name, half in ("previous", old(f"{HOME}/lin_8", 3)), ("shared_size", 0):
        yield f"{name} alone", log_of(one, **{name: half}), refused(1)
        yield f"{name} that was not authorised", log_of(one, **{name: half}, **alone), refused(1)
    yield "authorised as another", log_of(one, two, **alone), refused(2)
    yield "follows nothing", log_of(one, ("lin_2",)), refused(2)
    yield "follows what was followed", log_of(one, two, ("lin_3", "lin_1", 3, 1)), refused(3)
    yield "shares less than nothing", log_of(one, ("lin_2", "lin_1", 3, -1)), refused(2)
    yield "shares no number", log_of(one, two, shared_size=True), refused(2)
    yield "shares nothing", log_of(one, ("lin_2", "lin_1", 3, 0)), HOLDS
    yield "shares all", log_of(one, ("lin_2", "lin_1", 3, 3), events=2), HOLDS
    yield "shares more than there was", log_of(one, ("lin_2", "lin_1", 3, 4), events=6), refused(8)
    yield "shares itself", log_of(one, ("lin_2", "lin_1", 9, 8), events=6), refused(8)


def test_lineages(tmp_path):
    """Each was authorised as it stands: the rules that keep a log from branching are left."""
    with every_row() as row:
        for name, log, said in lineages():
            with row(name):
                assert agreed(tmp_path / "whole.ndjson", whole(log), None) == said


def test_an_origin_is_of_its_lineages(tmp_path):
    """A file from 1 on has them all, and another file those from one on."""
    log = sample()
    log.begin("lin_3", "lin_2", 7, 7)
    log.begin("lin_4", "lin_3", 8, 8)
    log.origin, log.header = f"{HOME}/lin_4", {"from": 2}
    since = without(of_entity(log), b'{"position":1,')
    nothing = MemoryLog(origin=f"{HOME}/lin_1")
    files = [
        ("none of them", without(of_entity(sample()), b"LineageBegun"), refused()),
        ("no events", whole(nothing), HOLDS),
        ("three of four", since, HOLDS),
        ("two of four", without(since, b'{"position":8,'), refused(9)),
    ]
    with every_row() as row:
        for name, content, said in files:
            with row(name):
                assert agreed(tmp_path / "export.ndjson", content, None) == said


def test_a_lineage_that_lost_nothing_sets_nothing_aside(tmp_path):
    """To neither verifier: what it follows is in the log to its end."""
    path = tmp_path / "whole.ndjson"
    for shared, aside in ((2, None), (1, 2)):
        path.write_bytes(whole(log_of(("lin_1",), ("lin_2", "lin_1", 2, shared), events=1)))
        ours, theirs = verify_export(path, [KEY], None), second(path)[1]
        assert (ours.ok, theirs["ok"]) == (True, True)
        assert theirs.get("set_aside_size") == ours.set_aside_size == aside


def compared():
    """Yield files, an older checkpoint's note for each, and what both say."""
    log = sample()
    files = {"whole": whole(log), "later": later(log), "entity": of_entity(log)}
    for name, content in files.items():
        yield f"{name}, of what was lost", content, old(f"{HOME}/lin_1", 6), refused(4)
        yield f"{name}, of more events", content, old(log.origin, 9), refused(8)
    since = files["later"]
    yield "before the first event", since, log.note(2), HOLDS
    yield "another one before the first event", since, old(log.origin, 2), refused(1)
    yield "too early", since, log.note(1), refused()
    yield "of another size than is proven", files["entity"], log.note(5), refused()
    changed = altered(files["whole"], 6, settle)
    yield "altered after it", changed, log.note(4), refused(5)
    yield "altered before it", changed, log.note(6), refused(1)
    yield "altered", changed, None, refused(1)


def test_an_export_against_an_older_checkpoint(tmp_path):
    """A log that lost events is told from one that was altered, and by both at one position."""
    with every_row() as row:
        for name, content, note, said in compared():
            with row(name):
                assert agreed(tmp_path / "export.ndjson", content, note) == said


def headers():
    """Yield exports whose header, or an event of which, says more or less than it should."""

    def first(content, **members):
        header, rest = content.split(b"\n", 1)
        given = json.loads(header) | members
        return spelled({name: one for name, one in given.items() if one is not None}) + rest

    def longer(proof):
        proof.insert(0, A_HASH)

    one, since, all_ = (write(sample()) for write in (of_entity, later, whole))
    end = without(one, b'{"position":')
    yield "an entity's from the end", first(end, **{"from": 8, "consistency": None}), HOLDS
    yield "an entity's from beyond", first(end, **{"from": 9, "consistency": None}), refused()
    tree = {"entity": ENTITY, "tree": [A_HASH]}
    yield "an entity's with a tree", first(one, consistency=None, **tree), refused()
    yield "an entity's from 3 with a tree", first(since, **tree), refused()
    yield "a tree of no events", first(all_, tree=[]), refused()
    yield "a tree of too many hashes", first(since, tree=[A_HASH] * 2), refused()
    yield "more events than its size", first(all_, size=6), refused(7)
    yield "something behind", all_ + all_, refused()
    yield "no end", without(all_, b'{"checkpoint"'), refused(8)
    yield "no end of an entity's", without(one, b'{"checkpoint"'), refused()
    yield "no last event", without(all_, b'{"position":7'), refused(7)
    yield "no first event", without(all_, b'{"position":1'), refused(1)
    yield "another ledger's", first(all_, ledger="test", size=0), refused(1)
    yield "another root", first(all_, root=A_HASH), refused()
    yield "another root, an entity's", first(end, root=A_HASH, consistency=None), refused()
    yield "of more events", first(end, size=8, consistency=None), refused()
    yield "no tree", first(since, tree=None), refused()
    yield "a proof in a whole export", altered(all_, 1, lambda it: it.update(proof=[])), refused(1)
    yield "no proof in an entity's", altered(one, 1, lambda it: it.pop("proof")), refused(1)
    yield "a hash too many", altered(one, 1, lambda it: longer(it["proof"])), refused(1)
    longer_consistency = altered(one, 0, lambda it: longer(it["consistency"]["proof"]))
    yield "a hash too many for consistency", longer_consistency, refused()
    forged = altered(one, 0, lambda it: it["consistency"].update(root=A_HASH))
    yield "another root for consistency", forged, refused()
    log = sample()
    log.older_size = 7
    yield "consistency with itself", of_entity(log), HOLDS
    beyond = altered(one, 0, lambda it: it["consistency"].update(size=8))
    yield "consistency with more", beyond, refused()


def test_headers_and_proofs(tmp_path):
    """A file says everything once: no hash is passed over, and a part is no other part."""
    with every_row() as row:
        for name, content, said in headers():
            with row(name):
                assert agreed(tmp_path / "export.ndjson", content, None) == said


def test_a_checkpoint_has_one_spelling(tmp_path):
    """Size and root are signed as they are written, and read in no other way."""
    log = sample()
    whole(log)
    root = text(log.tree.root())
    assert root[-2] in "AEIMQUYcgkosw048"
    spellings = [{"size": one} for one in ("07", "+7", " 7", "7 ", "7.0", "\u0667", "-7", "")]
    spellings += [{"root": one} for one in (f"{root[:-2]}{chr(ord(root[-2]) + 1)}=", root[:-1])]
    spellings += [{"root": f"{root} "}, {"origin": ""}]
    with every_row() as row:
        for stated in spellings:
            with row(stated):
                log.checkpoint = stated
                assert agreed(tmp_path / "export.ndjson", whole(log), None) == refused()
                assert agreed(tmp_path / "receipt.json", receipt(log), None) == refused()


@pytest.mark.parametrize("write", [whole, of_entity])
def test_a_state_is_bounded(tmp_path, monkeypatch, write):
    """Both have the same bound: a longer one is a fault at its position."""
    assert lines.STATE_BYTES_MAX == PROGRAM.STATE_BYTES_MAX == 2**24
    log = sample()
    longest = max(log.lines(1), key=lambda one: len(one["state"].encode()))
    size, place = len(longest["state"].encode()), longest["position"]
    for bound, said in ((size, HOLDS), (size - 1, refused(place))):
        monkeypatch.setattr(lines, "STATE_BYTES_MAX", bound)
        monkeypatch.setattr(PROGRAM, "STATE_BYTES_MAX", bound)
        assert agreed(tmp_path / "export.ndjson", write(log), None) == said
