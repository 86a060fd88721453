"""Erasing a claim: what is removed, what stays, and what still works."""

import asyncio
import json
import re
from datetime import timedelta
from functools import partial
from uuid import uuid4

import psycopg
import pytest
from msgspec.structs import replace

from service.app.storage import storage_for
from service.archive.port import ArchiveUnavailable
from service.core.errors import Refusal
from service.documents.sweep import Sweep
from service.documents.verify import verify
from service.privacy.documents import StoredDocuments
from service.privacy.erasure_list import subject_of
from service.privacy.erasures import Erasures, KeysRemain
from service.storage.port import NoBucket
from tests.document_store import Counted
from tests.progress import Shown
from tests.world import STAFF

CANARY = "canary-Zoë"
EMAIL = "Zoe.Canary@example.com"
DETAILS = {
    "message": f"{CANARY}, write to {EMAIL}.",
    "defendant": {"name": CANARY, "email": EMAIL},
}


async def claim_with_document(privacy):
    """Return a partner, its entity, and request and answer of a claim with canary data."""
    partner, entity_id, ref = await privacy.documents.uploading("case-1", filename=f"{CANARY}.pdf")
    made = await partner.claim(entity_id, "case-1", document_refs=[ref], **DETAILS)
    assert made.status_code == 201, made.text
    return partner, entity_id, ref, made.json()


async def test_a_claims_key_and_personal_data_are_gone(privacy, database_url):
    """The key's row is gone, the event stays, its details cannot be decrypted."""
    _, _, _, made = await claim_with_document(privacy)
    live = privacy.service.modes["live"].claims
    before = await live.show(made["claim_id"])
    done = await privacy.erase_claim(made["claim_id"], "case 7")
    after = await live.show(made["claim_id"])
    assert before.created.details["defendant"]["name"] == CANARY
    assert (after.created.details, after.message.text, after.attached.filenames) == (None,) * 3
    assert (after.erased, after.stage, after.version) == (True, "triage", before.version + 1)
    assert (done.erased.is_new, done.erased.keys, done.erased.reason) == (True, 1, "case 7")
    subject = await privacy.claim(made["claim_id"])
    with psycopg.connect(database_url) as owner:
        (event,) = owner.execute(
            "select convert_from(state, 'UTF8')::json -> 'data' from live.events"
            " where topic = 'PersonalDataErased'"
        ).fetchall()
        keys = owner.execute(
            "select 1 from live.data_keys where key_id = %s", [subject.stream_id]
        ).fetchall()
    assert event[0] == {
        "subject": made["claim_id"],
        "data_key": str(subject.stream_id),
        "reason": "case 7",
    }
    assert keys == []


KEEPING = {
    "before delete": "return null",
    "after delete": "insert into live.data_keys select old.*; return null",
    "deferred": "insert into live.data_keys select old.*; return null",
}
"""What a trigger of each kind does, so that a key stays or is there again."""


@pytest.mark.parametrize("kind", KEEPING)
async def test_a_key_that_the_database_keeps_is_no_erasure(privacy, owner, kind):
    """Nothing is written or told of it; once nothing keeps the key, the same command erases it."""
    _, _, _, made = await claim_with_document(privacy)
    live, store = (
        privacy.service.modes["live"].claims,
        privacy.service.modes["live"].storage.store,
    )
    body = f"begin {KEEPING[kind]}; end"
    owner.execute(f"create function live.keep() returns trigger language plpgsql as $${body}$$")
    trigger = {
        "deferred": "constraint trigger keep after delete on live.data_keys initially deferred"
    }.get(kind, f"trigger keep {kind} on live.data_keys")
    create = f"create {trigger} for each row execute function live.keep()"
    await asyncio.to_thread(owner.execute, create)
    for _ in range(2):
        with pytest.raises(KeysRemain, match="did not destroy 1 of 1 keys: a trigger"):
            await privacy.erase_claim(made["claim_id"])
        assert (await live.show(made["claim_id"])).message.text == DETAILS["message"]
    erased = "select count(*) from live.events where topic = 'PersonalDataErased'"
    assert owner.execute(erased).fetchone() == (0,)
    assert len(await store.under("entities/")) == 1
    await asyncio.to_thread(owner.execute, "drop function live.keep cascade")
    assert (await privacy.erase_claim(made["claim_id"])).erased.keys == 1


async def test_the_list_outside_is_written_and_holds_nothing_personal(privacy):
    """An entry has ledger, subject, keys, reason, time, a digest and a MAC; repeating adds none."""
    _, _, _, made = await claim_with_document(privacy)
    subject = await privacy.claim(made["claim_id"])
    await privacy.erase_claim(made["claim_id"])
    again = await privacy.erase_claim(made["claim_id"], "another reason")
    (path,) = (privacy.published / "erasures" / "live").iterdir()
    entry = json.loads(path.read_text())
    assert path.name.endswith(f"-{made['claim_id']}.json")
    assert len(path.name.partition("-")[0]) == 15
    assert entry.pop("at").endswith("Z")
    assert re.fullmatch("[0-9a-f]{64}", entry.pop("began"))
    assert re.fullmatch("[0-9a-f]{64}", entry.pop("mac"))
    assert entry == {
        "ledger": "live",
        "kind": "claim",
        "subject": made["claim_id"],
        "data_keys": [str(subject.stream_id)],
        "reason": "case 1",
    }
    assert (again.erased.is_new, again.erased.reason, again.erased.keys) == (False, "case 1", 0)


async def test_documents_are_removed_and_reported_as_erased(privacy):
    """Linked and unlinked objects are deleted; an audit counts the link as erased."""
    partner, entity_id, _, made = await claim_with_document(privacy)
    await privacy.documents.uploaded(partner, entity_id)  # minted for the same claim, never linked
    done = await privacy.erase_claim(made["claim_id"])
    live = privacy.service.modes["live"]
    checked = [one async for one in verify(live.claim_documents, live.storage.store)]
    assert (done.objects.objects, done.objects.left) == (2, 0)
    assert [(one.fault, one.document["erased"]) for one in checked] == [(None, True)]
    assert await live.storage.store.under("entities/") == {}


@pytest.mark.parametrize(
    "alter",
    [
        "delete from live.uploads",
        "update live.uploads set claim_stream = gen_random_uuid(), minted_at = 'infinity'",
    ],
)
async def test_no_row_hides_documents_from_an_erasure(privacy, owner, alter):
    """Storage is asked what a claim has, once: rows of uploads may be gone or wrong."""
    partner, entity_id, _, made = await claim_with_document(privacy)
    await privacy.documents.uploaded(partner, entity_id)
    live = privacy.service.modes["live"]
    store = Counted(live.storage.store)
    await asyncio.to_thread(owner.execute, "set role claim_ledger_live")
    await asyncio.to_thread(owner.execute, alter)
    await privacy.parts().erasures.erase(await privacy.claim(made["claim_id"]), "case 1", STAFF)
    removed = await StoredDocuments(live.ledger, store).remove(
        await privacy.claim(made["claim_id"])
    )
    assert (removed, len(store.asked)) == ((2, 0), 1)
    assert await store.under("entities/") == {}


async def test_only_a_claim_without_documents_is_erased_without_a_bucket(privacy, owner):
    """An installation without buckets has none. A command without the setting is told of it."""
    partner, entity_id, _, made = await claim_with_document(privacy)
    bare = (await partner.claim(entity_id, "case-2")).json()
    minted = (await partner.claim(entity_id, "case-3")).json()
    await privacy.documents.mint(partner, entity_id, "case-3")
    owner.execute(
        "delete from live.uploads where claim_stream in"
        " (select stream_id from live.claim_list where claim_id = %s)",
        [made["claim_id"]],
    )
    nowhere = storage_for(privacy.service.settings, None).store
    documents = StoredDocuments(privacy.service.modes["live"].ledger, nowhere)
    for claim in (made, minted):
        with pytest.raises(NoBucket, match="no bucket is set"):
            await documents.remove(await privacy.claim(claim["claim_id"]))
    assert await documents.remove(await privacy.claim(bare["claim_id"])) == (0, 0)


async def test_an_object_that_comes_back_is_a_finding_until_it_is_erased_again(privacy):
    """An upload URL lives for 15 minutes; a late object is found and deleted by repeating."""
    partner, entity_id = await privacy.documents.world.connected()
    minted = await privacy.documents.mint(partner, entity_id)
    await privacy.documents.put(minted)
    ref = {
        "storage_path": minted.json()["storage_path"],
        "mime_type": "application/pdf",
        "filename": "a.pdf",
    }
    made = (await partner.claim(entity_id, document_refs=[ref])).json()
    live = privacy.service.modes["live"]
    await privacy.erase_claim(made["claim_id"])
    assert (await privacy.documents.put(minted)).status_code == 200
    found = [one.fault async for one in verify(live.claim_documents, live.storage.store)]
    again = await privacy.erase_claim(made["claim_id"])
    after = [one.fault async for one in verify(live.claim_documents, live.storage.store)]
    assert (found, again.objects.objects, after) == (["remains"], 1, [None])


async def test_a_replay_still_answers_200(privacy):
    """With any body it returns the same claim; nothing is compared."""
    partner, entity_id, ref, made = await claim_with_document(privacy)
    await privacy.erase_claim(made["claim_id"])
    same = await partner.claim(entity_id, document_refs=[ref], **DETAILS)
    other = await partner.claim(entity_id, defendant={"name": "Another"})
    listed = await partner.call("GET", f"/claims?entity_id={entity_id}")
    assert [one.status_code for one in (same, other, listed)] == [200] * 3
    assert {one.json()["claim_id"] for one in (same, other)} == {made["claim_id"]}
    assert [one["claim_id"] for one in listed.json()["claims"]] == [made["claim_id"]]
    assert CANARY not in listed.text


async def test_an_erased_claim_goes_on_through_its_stages(privacy):
    """Stages contain no personal data: moving works, and the claim stays erased."""
    partner, _, _, made = await claim_with_document(privacy)
    await privacy.erase_claim(made["claim_id"])
    moved = await privacy.service.modes["live"].claims.move(made["claim_id"], "closed", STAFF)
    assert (moved.stage, moved.erased) == ("closed", True)
    shown = (await partner.call("GET", f"/claims/{made['claim_id']}")).json()
    assert [one["stage"] for one in shown["history"]] == ["triage", "closed"]


async def test_a_sandbox_claim_is_erased_in_its_ledger(privacy):
    """The live ledger does not know the claim."""
    partner = await privacy.documents.world.partner()
    ids = await partner.sandbox()
    made = await partner.claim(ids.connected_entity_id, mode="test", **DETAILS)
    claim_id = made.json()["claim_id"]
    assert await privacy.parts("live").subjects.claim(claim_id) is None
    done = await privacy.erase_claim(claim_id, mode="test")
    assert (done.erased.is_new, done.erased.keys) == (True, 1)
    shown = await privacy.service.modes["test"].claims.show(claim_id)
    assert shown.created.details is None


async def test_nothing_is_erased_without_a_list_entry(privacy):
    """If the list cannot be written, the claim stays whole."""
    _, _, _, made = await claim_with_document(privacy)
    privacy.published.rename(privacy.published.with_name("before"))  # with notes of sent mails
    privacy.published.write_text("no directory")
    with pytest.raises(ArchiveUnavailable):
        await privacy.erase_claim(made["claim_id"])
    shown = await privacy.service.modes["live"].claims.show(made["claim_id"])
    assert shown.created.details["defendant"]["name"] == CANARY
    assert not shown.erased


async def test_nothing_is_erased_where_something_else_has_the_entrys_name(privacy):
    """It would stand in for the entry.

    The entry itself may be there, as after a lost answer, or another request's of that millisecond.
    """
    _, _, _, made = await claim_with_document(privacy)
    claim, at = await privacy.claim(made["claim_id"]), privacy.service.clock()
    ledger = privacy.service.modes["live"].ledger
    erasures = Erasures(ledger, privacy.listed, lambda: at)
    await erasures.erase(claim, "case 1", STAFF)
    (name,) = await privacy.listed.names()
    entry = await privacy.listed.read(name)
    await privacy.listed.put(entry)
    await privacy.listed.put(replace(entry, reason="case 2"))
    with pytest.raises(ArchiveUnavailable, match="is there already"):
        await privacy.listed.put(replace(entry, data_keys=[*entry.data_keys, uuid4()]))
    assert await privacy.listed.read(name) == entry
    _, _, _, made = await claim_with_document(privacy)
    claim = await privacy.claim(made["claim_id"])
    path = privacy.published / name.replace(subject_of(name), claim.subject_id)
    for put in (lambda: path.write_text("{}"), path.mkdir):
        put()
        with pytest.raises(ArchiveUnavailable, match=f"{path.name} is there already"):
            await erasures.erase(claim, "case 1", STAFF)
        path.unlink(missing_ok=True) if path.is_file() else path.rmdir()
    assert not (await privacy.service.modes["live"].claims.show(made["claim_id"])).erased
    assert (await erasures.erase(claim, "case 1", STAFF)).is_new


async def test_a_claim_whose_row_was_altered_is_found_in_the_log(privacy, owner):
    """Whoever can write to read models hides no claim from its erasure."""
    _, _, _, made = await claim_with_document(privacy)
    claim = await privacy.claim(made["claim_id"])
    owner.execute("update live.claim_list set claim_id = 'clm_another'")
    subjects = privacy.parts().subjects
    assert await subjects.claim(made["claim_id"]) is None
    assert await subjects.claim_by_log(made["claim_id"], Shown()) == claim
    assert await subjects.claim_by_log("clm_another", Shown()) is None


async def test_an_unknown_claim_is_not_found(privacy):
    """The team's commands report claim_not_found."""
    assert await privacy.parts().subjects.claim("clm_none") is None
    assert await privacy.parts().subjects.claim_by_log("clm_none", Shown()) is None
    assert await privacy.parts().subjects.entity("ent_none") is None
    with pytest.raises(Refusal):
        await privacy.service.modes["live"].claims.show("clm_none")


async def test_a_sweep_takes_what_an_erased_claim_left(privacy, database_url):
    """Rows of recent uploads stay until their URLs expire; then a sweep deletes them."""
    _, _, ref, made = await claim_with_document(privacy)
    live = privacy.service.modes["live"]
    subject = await privacy.claim(made["claim_id"])
    await privacy.parts().erasures.erase(subject, "case 1", STAFF)  # cut off before storage
    later = privacy.service.clock() + timedelta(hours=1)
    swept = await Sweep(
        live.ledger,
        live.storage.store,
        later,
        partial(privacy.listed.those_of, "live"),
        dry_run=False,
    ).run(Shown())
    with psycopg.connect(database_url) as owner:
        left = owner.execute("select count(*) from live.uploads").fetchone()
    assert [(one.is_gone, one.found.name) for one in swept] == [(True, ref["storage_path"])]
    assert (left, await live.storage.store.under("entities/")) == ((0,), {})


async def test_old_uploads_are_forgotten_and_young_ones_kept(privacy, database_url):
    """A row is deleted with its object once its URL has expired."""
    partner, entity_id, _, made = await claim_with_document(privacy)
    await privacy.documents.uploaded(partner, entity_id)
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(
            "update live.uploads set minted_at = minted_at - interval '2 hours'"
            " where storage_path in (select storage_path from live.claim_documents)"
        )
        await privacy.erase_claim(made["claim_id"])
        left = owner.execute(
            "select storage_path in (select storage_path from live.claim_documents)"
            " from live.uploads"
        ).fetchall()
    assert left == [(False,)]
