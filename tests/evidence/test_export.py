"""Exports: their content, and that anyone can detect alterations."""

import base64
import json
import re
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from service.core.errors import Refusal
from service.evidence.authorisation import authorised
from service.evidence.checkpoint import Checkpoint
from service.evidence.export.export_verifier import verify_export
from service.evidence.export.export_writer import ExportScope, Signed
from service.evidence.export.format import EvidenceFault
from service.evidence.export.receipt_writer import make_receipt, numbered_stream
from service.facts.lineages import lineage_stream
from service.ledger.database import LedgerUnavailable
from service.ledger.merkle import leaf_hash, leaf_record
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from service.ledger.writing import Append
from tests.evidence.evidence_world import (
    KEY,
    OTHER,
    exported,
    later,
    make_files,
    signed,
)
from tests.ledger.merkle_tree import MerkleTree
from tests.world import STAFF

KEYS = [KEY]


@pytest.fixture(scope="module")
def files(module_database_url, tmp_path_factory):
    """Return the evidence files of one history."""
    return make_files(module_database_url, tmp_path_factory.mktemp("evidence"))


def lines(path):
    """Return the decoded lines of a file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def fault(path, older=None, keys=KEYS):
    """Return position and message of an export's fault."""
    verdict = verify_export(path, keys, older)
    assert not verdict.ok
    return verdict.position, verdict.fault


def test_every_kind_of_export_verifies(files):
    """Whole, from a position and of an entity, with and without an older checkpoint."""
    for path in files.exports:
        for older in (None, files.older):
            verdict = verify_export(path, KEYS, older)
            assert (verdict.ok, verdict.fault, verdict.size) == (True, None, files.size)
            assert verdict.checkpoints == (1 if older is None else 2)
            assert verdict.ledger == "live"


def test_a_whole_export_is_the_log(files, module_database_url):
    """It has every column of every event, the states byte for byte."""
    with psycopg.connect(module_database_url) as owner:
        rows = owner.execute(
            "select l.position, e.append_id, e.originator_id::text, e.originator_version, e.topic,"
            " convert_from(e.state, 'UTF8') from live.log as l join live.events as e"
            " using (append_id) order by l.position"
        ).fetchall()
    events = [tuple(line.values())[:6] for line in lines(files.whole)[1:-1]]
    assert events == rows
    assert len(rows) == files.size


def test_an_entity_export_has_what_concerns_it(files):
    """It has its streams, its mismatching replays and the lineage; nothing of others."""
    whole, chosen = lines(files.whole)[1:-1], lines(files.entity)[1:-1]
    claims = {
        data["claim_id"]
        for data in (json.loads(line["state"])["data"] for line in whole)
        if data.get("entity_id") == files.entity_id and "claim_id" in data
    }
    streams = {
        line["originator_id"]
        for line in whole
        if json.loads(line["state"])["data"].get("entity_id") == files.entity_id
    }
    expected = [
        line["position"]
        for line in whole
        if line["originator_id"] in streams
        or json.loads(line["state"])["data"].get("claim_id") in claims
        or line["topic"] == "LineageBegun"
    ]
    assert [line["position"] for line in chosen] == expected
    topics = {line["topic"] for line in chosen}
    assert {"EntityRegistered", "EntityConnected", "ConnectLinkIssued"} < topics
    assert {"ClaimReplayMismatched", "ClaimStageChanged", "EntityDisconnected"} < topics
    assert len(chosen) < len(whole)


def test_an_older_checkpoint_has_to_fit(files):
    """A checkpoint of another log, too large, or older than the export is a fault."""
    older = Checkpoint.open(files.older, KEYS)
    other = older._replace(root=bytes(32)).sign(KEY)
    longer = older._replace(size=files.size + 1).sign(KEY)
    early = older._replace(size=3).sign(KEY)
    elsewhere = older._replace(origin="example.com/claim-ledger/live/other").sign(KEY)
    for path in files.exports:
        assert fault(path, other)[0] == 1
        assert fault(path, longer)[0] == files.size + 1
        assert "links" in fault(path, elsewhere)[1]
        assert fault(path, older.sign(OTHER))[1].startswith("the older checkpoint: ")
    position, sentence = fault(files.later, early)
    assert position is None
    assert sentence.endswith("export from position 4 or before, or with --checkpoint")


def test_a_rewritten_event_is_in_doubt_from_the_older_checkpoint_on(files, tmp_path):
    """With recomputed hashes only the root reveals it; the first doubtful position is named."""
    content = lines(files.whole)
    event = content[files.size]  # the last one
    event["state"] = event["state"].replace("entity", "Entity", 1)
    columns = (event[name] for name in ("position", "append_id"))
    record = leaf_record(
        *columns,
        UUID(event["originator_id"]),
        event["originator_version"],
        event["topic"],
        event["state"].encode(),
    )
    path = tmp_path / "altered"

    def write():
        text = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in content]
        path.write_text("".join(f"{one}\n" for one in text))

    write()
    assert fault(path)[0] == files.size
    event["leaf_hash"] = spelled(leaf_hash(record))
    write()
    assert fault(path)[0] == 1
    assert fault(path, files.older)[0] == files.older_size + 1


async def test_erasure_changes_no_proof(keyed, database_url, tmp_path):
    """Exports made before and after a data key is destroyed are equal and verify."""
    ledger, checkpoint = keyed.service.modes["live"].ledger, await signed(keyed.service)
    await exported(ledger, checkpoint, tmp_path / "before")
    with psycopg.connect(database_url, autocommit=True) as owner:
        assert owner.execute("delete from live.data_keys").rowcount
    await exported(ledger, checkpoint, tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()
    assert verify_export(tmp_path / "after", KEYS, None).ok


async def test_an_export_ends_at_its_checkpoint(keyed, tmp_path):
    """It has nothing written since; any position of the log can be its first."""
    checkpoint = await signed(keyed.service)
    await later(keyed, *keyed.about)
    await signed(keyed.service)
    ledger, size = keyed.service.modes["live"].ledger, checkpoint.checkpoint.size
    for first in range(1, size + 2):
        path = tmp_path / str(first)
        assert await exported(ledger, checkpoint, path, ExportScope(first)) == size + 1 - first
        verdict = verify_export(path, KEYS, checkpoint.note)
        assert (verdict.ok, verdict.size) == (True, size), verdict
    with pytest.raises(EvidenceFault, match="beyond the checkpoint"):
        await exported(ledger, checkpoint, tmp_path / "x", ExportScope(size + 2))
    with pytest.raises(Refusal, match="entity_not_found"):
        await exported(ledger, checkpoint, tmp_path / "x", ExportScope(1, "ent_none"))


async def test_an_unsound_log_is_not_exported(keyed, database_url, tmp_path):
    """An altered event, or one that is not UTF-8, is named by its position."""
    ledger, checkpoint = keyed.service.modes["live"].ledger, await signed(keyed.service)
    alter = (
        "update live.events set state = {} where append_id ="
        " (select append_id from live.log where position = {})"
    )
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("alter table live.events disable trigger append_only")
        owner.execute(alter.format("state || '\\x20'", 4))
        with pytest.raises(EvidenceFault, match="does not have the hash") as altered:
            await exported(ledger, checkpoint, tmp_path / "x")
        owner.execute(alter.format("'\\xff'", 2))
        with pytest.raises(EvidenceFault, match="not UTF-8") as broken:
            await exported(ledger, checkpoint, tmp_path / "x")
    assert (altered.value.position, broken.value.position) == (4, 2)


async def test_an_older_lineage_binds_as_far_as_it_is_shared(keyed, tmp_path):
    """Its checkpoints of shared events hold; one that covers lost events is a fault."""
    ledger, old = keyed.service.modes["live"].ledger, await signed(keyed.service)
    size = old.checkpoint.size
    lost = old.checkpoint._replace(size=size + 2, root=bytes(32))
    origin = "example.com/claim-ledger/live/lin_2"
    event = authorised(KEY, origin, "restored", lost.sign(KEY), size)
    async with ledger.transaction() as transaction:
        stream = lineage_stream("live")
        version = len(await transaction.read(stream))
        await transaction.append(Append(stream, version, [event], STAFF))
    await Sequencer(ledger).step()
    async with ledger.database.reads.connection() as connection:
        rows = await connection.fetch("select leaf_hash from live.log order by position")
    tree = MerkleTree(row["leaf_hash"] for row in rows)
    now = Checkpoint(origin, tree.size, tree.root())
    for name, scope in (
        ("whole", ExportScope()),
        ("one", ExportScope(1, keyed.about[0], old.checkpoint)),
    ):
        path = tmp_path / name
        await exported(ledger, Signed(now, now.sign(KEY)), path, scope)
        assert verify_export(path, KEYS, old.note).ok
        assert fault(path, lost.sign(KEY))[0] == size + 1
    begins, signed_now = tree.size, Signed(now, now.sign(KEY))
    for entity_id in (None, keyed.about[0]):
        scope = ExportScope(begins, entity_id, old.checkpoint)
        await exported(ledger, signed_now, tmp_path / "from", scope)
        linked = verify_export(tmp_path / "from", KEYS, old.note)
        assert (linked.ok, linked.fault, linked.events) == (True, None, 1)
        beyond = scope._replace(first=begins + 1)
        with pytest.raises(Refusal) as refused:
            await exported(ledger, signed_now, tmp_path / "from", beyond)
        assert f"export from position {begins}" in str(refused.value.envelope())
    unknown = old.checkpoint._replace(origin="example.com/claim-ledger/live/lin_9")
    with pytest.raises(Refusal) as refused:
        await exported(ledger, signed_now, tmp_path / "from", ExportScope(1, None, unknown))
    assert "is not linked" in str(refused.value.envelope())
    with pytest.raises(Refusal, match="entity_not_found"):
        await exported(ledger, signed_now, tmp_path / "from", ExportScope(begins, "ent_x"))


def test_the_worked_example_of_the_document():
    """The document's record has the hash that the document states."""
    text = Path("docs/ledger-format.md").read_text()
    cells = dict(re.findall(r"^\| (.+?) \| `(.+)` \|$", text, re.MULTILINE))
    state = cells["`state`"].encode()
    record = leaf_record(
        int(cells["`position`"]),
        int(cells["`append_id`"]),
        UUID(cells["`originator_id`"]),
        int(cells["`originator_version`"]),
        cells["`topic`"],
        state,
    )
    assert cells["SHA-256 of `state`, hexadecimal"] == sha256(state).hexdigest()
    assert cells["length of the record in bytes"] == str(len(record))
    assert cells["leaf, hexadecimal"] == leaf_hash(record).hex()
    assert cells["leaf, base64"] == spelled(leaf_hash(record))


def spelled(raw):
    """Return a hash as files encode it."""
    return base64.b64encode(raw).decode()


async def test_a_batch_may_take_longer_than_a_request(keyed, tmp_path, monkeypatch):
    """Exports and receipts have deadlines of their own, as their events may be large."""
    live, (entity_id, claim_id) = keyed.service.modes["live"], keyed.about
    database, checkpoint = live.ledger.database, await signed(keyed.service)
    claim = await live.claim_list.by_id(claim_id)
    monkeypatch.setattr(database.reads, "deadline_seconds", 1e-6)
    with pytest.raises(LedgerUnavailable):
        await database.reads.fetch(queries("service.evidence.replay").size)
    for scope in (ExportScope(), ExportScope(2), ExportScope(1, entity_id)):
        assert await exported(live.ledger, checkpoint, tmp_path / "export", scope)
    rows = await numbered_stream(live.ledger, claim["stream_id"])
    assert await make_receipt(live.ledger, claim_id, rows, checkpoint)
