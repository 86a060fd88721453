"""`document_refs` of `POST /claims`: contract 2.5, 2.6 and 4.4, and their readings."""

import asyncio

import pytest

from service.facts.claims import ClaimCreated, DocumentFlagged, DocumentsAttached
from tests.contract.event_feed import followed
from tests.contract.events import events_of, execute
from tests.contract.refusals import fields, refused
from tests.contract.rows import rows_as_text
from tests.document_store import CONTENT, PDF, reference_to
from tests.patience import eventually
from tests.tables import every_row
from tests.world import STAFF

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.followed]


async def test_from_an_upload_to_a_claim_with_documents(documents):
    """Mint a URL, PUT the bytes, create the claim, and list it."""
    partner, entity = await documents.world.connected()
    refs = [await documents.uploaded(partner, entity, filename=f"{n}.pdf") for n in range(3)]
    refs.reverse()
    made = await partner.claim(entity, document_refs=refs)
    body = made.json()

    assert made.status_code == 201, made.text
    assert list(body) == ["claim_id", "message_id", "document_ids", "already_existed"]
    names = [ref["storage_path"].rpartition("/")[2] for ref in refs]
    assert body["document_ids"] == [name.removesuffix(".pdf") for name in names]
    assert body["message_id"].startswith("msg_"), "documents alone make a first message"
    listed = await partner.call("GET", "/claims", params={"entity_id": entity})
    assert [one["claim_id"] for one in listed.json()["claims"]] == [body["claim_id"]]


async def test_a_disguised_upload_is_flagged_and_its_partner_told_by_an_event_alone(documents):
    """The claim is answered as ever; what was found stays with the team, who judges it."""
    partner, entity, ref = await documents.uploading(content=b"<html>not a PDF</html>")
    made = await partner.claim(entity, document_refs=[ref])
    assert made.status_code == 201, made.text

    async def flagged():
        events = await events_of(documents.world, "live", DocumentFlagged)
        return [one for one in events if one.claim_id == made.json()["claim_id"]]

    (flag,) = await eventually(flagged)
    assert (flag.document_id, flag.reason, flag.detail) == (
        made.json()["document_ids"][0],
        "type_mismatch",
        "text/html",
    )
    again = await partner.claim(entity, document_refs=[ref])
    assert again.json() == made.json() | {
        "message_id": None,
        "document_ids": [],
        "already_existed": True,
    }
    *_, told = await followed(partner, 4)
    about = {"claim_id": flag.claim_id, "document_id": flag.document_id, "stage": None}
    assert told["type"] == "claim.document_flagged"
    assert told["data"].items() >= about.items()


async def test_size_generation_and_checksum_are_recorded(documents):
    """They reveal later changes to the object."""
    partner, entity = await documents.world.connected()
    refs = [
        await documents.uploaded(partner, entity, filename="a/b.pdf"),
        await documents.uploaded(
            partner, entity, mime_type="image/png", filename="b.png", content=b"x" * 70_000
        ),
    ]
    claim_id = (await partner.claim(entity, document_refs=refs)).json()["claim_id"]
    attached = await attached_to(documents, "live", claim_id)

    assert attached.filenames == ["a_b.pdf", "b.png"]
    assert [one.storage_path for one in attached.documents] == [r["storage_path"] for r in refs]
    assert [one.mime_type for one in attached.documents] == [PDF, "image/png"]
    assert [one.size for one in attached.documents] == [len(CONTENT), 70_000]
    stored = await documents.counted["live"].inner.under(f"entities/{entity}/")
    for one in attached.documents:
        found = stored[one.storage_path]
        assert (one.generation, one.crc32c) == (found.generation, found.crc32c)
        assert one.generation > 0
        assert len(one.crc32c) == 8
    kept = await rows_of_claim(documents, claim_id)
    assert kept == {(one.document_id, one.generation) for one in attached.documents}


async def attached_to(documents, mode, claim_id) -> DocumentsAttached:
    """Return the event of a claim's documents."""
    events = await events_of(documents.world, mode, DocumentsAttached)
    (attached,) = [one for one in events if one.claim_id == claim_id]
    return attached


async def rows_of_claim(documents, claim_id):
    """Return the read model's rows of a claim's documents."""
    reader = documents.world.service.modes["live"].claim_documents
    return {
        (row["document_id"], row["generation"])
        async for page in reader.pages()
        for row in page
        if row["claim_id"] == claim_id
    }


async def test_a_replay_links_no_documents(documents):
    """Contract 4.4: empty document_ids, null message_id; its references are not even checked."""
    partner, entity = await documents.world.connected()
    refs = [await documents.uploaded(partner, entity)]
    first = await partner.claim(entity, document_refs=refs)
    asked = documents.asked()
    again = await partner.claim(entity, document_refs=refs)
    other = await partner.claim(entity, document_refs=[refs[0] | {"storage_path": "nowhere"}])

    for answer, matches in ((again, "true"), (other, "false")):
        assert answer.status_code == 200
        assert answer.json() == {
            "claim_id": first.json()["claim_id"],
            "message_id": None,
            "document_ids": [],
            "already_existed": True,
        }
        assert answer.headers["Idempotent-Payload-Match"] == matches
    assert documents.asked() == asked


async def test_a_claim_without_documents_asks_storage_for_nothing(documents):
    """Its creation depends on PostgreSQL alone."""
    partner, entity = await documents.world.connected()
    asked = documents.asked()
    assert (await partner.claim(entity, document_refs=[])).status_code == 201
    assert documents.asked() == asked


async def test_filenames_are_encrypted(documents, module_database_url):
    """They may name people: no row of any table has one unencrypted."""
    canary = "canary-of-a-filename.pdf"
    partner, entity = await documents.world.connected()
    refs = [await documents.uploaded(partner, entity, filename=canary)]
    claim_id = (await partner.claim(entity, document_refs=refs)).json()["claim_id"]
    rows = list(rows_as_text(module_database_url))

    assert (await attached_to(documents, "live", claim_id)).filenames == [canary]
    assert any(refs[0]["storage_path"] in row for row in rows)
    for form in (canary, canary.encode().hex()):
        assert not [row for row in rows if form in row]


TRICKS = {
    "a parent": lambda path: path.replace("documents/", "documents/../documents/"),
    "an escape": lambda path: path.replace("documents/", "documents/%2e%2e/documents/"),
    "two slashes": lambda path: path.replace("/documents", "//documents"),
    "a sibling": lambda path: path.replace("/documents", "0/documents"),
    "a newline after": lambda path: path + "\n",
    "upper case": lambda path: path.upper(),
    "a slash before": lambda path: "/" + path,
    "another root": lambda path: path.replace("entities/", "other/"),
    "not a path": lambda _path: "x",
}
UNKNOWN = {
    "another extension": lambda path: path.replace(".pdf", ".png"),
    "never minted": lambda path: path.replace(path[-10:-4], "zzzzzz"),
    "a space after": lambda path: path + " ",
}


async def test_unminted_paths_are_refused(documents):
    """Contract 4.4: by whether they are under the claim's prefix, before storage is asked."""
    partner, entity, ref = await documents.uploading()
    asked = documents.asked()
    with every_row() as row:
        for tricks, code in (
            (TRICKS, "document_path_invalid"),
            (UNKNOWN, "document_not_uploaded"),
        ):
            for name, trick in tricks.items():
                with row(name):
                    path = trick(ref["storage_path"])
                    refs = [ref | {"storage_path": path}]
                    refused(await partner.claim(entity, document_refs=refs), code)
    assert documents.asked() == asked
    assert await claims_of(documents, entity) == []


async def claims_of(documents, entity, mode="live"):
    """Return the claims that a ledger has for an entity."""
    events = await events_of(documents.world, mode, ClaimCreated)
    return [one.claim_id for one in events if one.entity_id == entity]


async def test_paths_minted_for_another_claim_are_refused(documents):
    """They are refused although they exist and have been uploaded."""
    partner, entity = await documents.world.connected()
    other = await documents.world.partner()
    second = await partner.connected_entity()
    await other.connect(entity)
    refs = {
        "another partner's": await documents.uploaded(other, entity),
        "another entity's": await documents.uploaded(partner, second),
        "another claim's": await documents.uploaded(partner, entity, "case-2"),
    }
    asked = documents.asked()
    with every_row() as row:
        for whose, ref in refs.items():
            with row(whose):
                answer = await partner.claim(entity, document_refs=[ref])
                refused(answer, "document_path_invalid")
    assert documents.asked() == asked
    assert await claims_of(documents, entity) == []


async def test_one_bad_path_refuses_all(documents):
    """A valid path beside it does not help."""
    partner, entity, good = await documents.uploading()
    bad = await documents.uploaded(partner, entity, "case-2")

    refused(await partner.claim(entity, document_refs=[good, bad]), "document_path_invalid")


async def test_a_nul_in_a_path_is_a_fault_of_the_body(documents):
    """NUL is refused as in every string."""
    partner, entity = await documents.world.connected()
    ref = {"storage_path": "a\0b", "mime_type": PDF, "filename": "a.pdf"}

    assert fields(await partner.claim(entity, document_refs=[ref])) == ["document_refs"]


async def test_a_missing_upload_is_refused(documents):
    """Contract 4.4: document_not_uploaded, no claim; after the upload a retry succeeds."""
    partner, entity = await documents.world.connected()
    minted = await documents.mint(partner, entity)
    refs = [await documents.uploaded(partner, entity), reference_to(minted)]
    refused(await partner.claim(entity, document_refs=refs), "document_not_uploaded")
    assert await claims_of(documents, entity) == []
    await documents.put(minted)
    made = await partner.claim(entity, document_refs=refs)

    assert (made.status_code, len(made.json()["document_ids"])) == (201, 2)


@pytest.mark.in_process("looks at what storage is asked for")
async def test_uploads_that_a_claim_does_not_name_are_not_listed(documents):
    """However many there are of it: otherwise one request could keep storage busy for seconds."""
    partner, entity = await documents.world.connected()
    one, other = [await documents.uploaded(partner, entity) for _ in range(2)]
    missing = reference_to(await documents.mint(partner, entity))
    asked = documents.counted["live"].asked
    asked.clear()
    refused(await partner.claim(entity, document_refs=[missing]), "document_not_uploaded")
    made = await partner.claim(entity, document_refs=[one])
    assert made.status_code == 201
    assert asked == [missing["storage_path"], one["storage_path"]]
    assert other["storage_path"] not in await documents.counted["live"].under(asked[1])


async def test_a_differing_mime_type_is_refused(documents):
    """Readings: validation_failed names the entry."""
    partner, entity = await documents.world.connected()
    refs = [
        await documents.uploaded(partner, entity),
        await documents.uploaded(partner, entity) | {"mime_type": "image/png"},
    ]
    answer = await partner.claim(entity, document_refs=refs)

    errors = refused(answer, "validation_failed")["details"]["fieldErrors"]
    assert errors == {
        "document_refs": [f"[1].mime_type: the file was uploaded as {PDF}"],
    }
    assert await claims_of(documents, entity) == []


async def test_a_repeated_reference_is_refused(documents):
    """Readings: validation_failed, before storage is asked."""
    partner, entity, ref = await documents.uploading()
    asked = documents.asked()
    answer = await partner.claim(entity, document_refs=[ref, ref | {"filename": "b.pdf"}])

    errors = refused(answer, "validation_failed")["details"]["fieldErrors"]
    assert errors == {"document_refs": ["[1].storage_path: given more than once"]}
    assert documents.asked() == asked


async def test_at_most_a_hundred_references(documents):
    """101 are a fault of the body; 100 are linked with a single listing."""
    partner, entity = await documents.world.connected()
    refs = []
    for _ in range(10):
        refs += await asyncio.gather(*(documents.uploaded(partner, entity) for _ in range(10)))
    asked = documents.asked()

    assert fields(await partner.claim(entity, document_refs=[*refs, refs[0]])) == ["document_refs"]
    assert documents.asked() == asked
    made = await partner.claim(entity, document_refs=refs)
    assert (made.status_code, len(made.json()["document_ids"])) == (201, 100)
    assert documents.asked() == asked + 1


async def test_documents_are_checked_in_order(documents):
    """Entity, connection, replay, path, upload: the first failure is the answer."""
    partner, entity = await documents.world.connected()
    nowhere = {"storage_path": "nowhere", "mime_type": PDF, "filename": "a.pdf"}
    missing = reference_to(await documents.mint(partner, entity, "case-2"))
    unconnected = await documents.world.entity()

    refused(await partner.claim("ent_unknown", document_refs=[nowhere]), "entity_not_found")
    refused(await partner.claim(unconnected, document_refs=[nowhere]), "entity_not_owned")
    answer = await partner.claim(entity, "case-2", document_refs=[missing, nowhere])
    refused(answer, "document_path_invalid")
    answer = await partner.claim(entity, "case-2", document_refs=[missing])
    refused(answer, "document_not_uploaded")
    assert (await partner.claim(entity, "case-2")).status_code == 201
    replay = await partner.claim(entity, "case-2", document_refs=[nowhere])
    assert replay.status_code == 200
    await partner.disconnect(entity)
    for reference in ("case-2", "case-3"):
        answer = await partner.claim(entity, reference, document_refs=[nowhere])
        refused(answer, "partner_disconnected")


async def test_sixteen_at_once_make_one_claim(documents):
    """One 201 with the documents, fifteen 200 without, one set of events."""
    partner, entity = await documents.world.connected()
    refs = [await documents.uploaded(partner, entity) for _ in range(2)]
    answers = await asyncio.gather(*(partner.claim(entity, document_refs=refs) for _ in range(16)))
    bodies = [answer.json() for answer in answers]

    assert sorted(answer.status_code for answer in answers) == [200] * 15 + [201]
    assert len({body["claim_id"] for body in bodies}) == 1
    assert sorted(len(body["document_ids"]) for body in bodies) == [0] * 15 + [2]
    await attached_to(documents, "live", bodies[0]["claim_id"])


async def test_an_upload_that_was_swept_meanwhile_is_not_linked(documents):
    """Without its row the path no longer counts as minted."""
    partner, entity, ref = await documents.uploading()
    await execute(
        documents.world,
        "live",
        "delete from live.uploads where storage_path = $1",
        ref["storage_path"],
    )

    refused(await partner.claim(entity, document_refs=[ref]), "document_not_uploaded")


async def test_an_upload_from_before_a_reset_of_the_sandbox_is_not_linked(documents):
    """Nor is one whose URL is: its prefix is the same, but it was for another claim."""
    partner = await documents.world.partner()
    entity = (await partner.sandbox()).connected_entity_id
    ref = await documents.uploaded(partner, entity, mode="test")
    minted = await documents.mint(partner, entity, mode="test")
    await documents.world.service.partners.reset_sandbox(partner.partner_id, 1, STAFF)
    assert (await documents.put(minted)).status_code == 200
    for early in (ref, reference_to(minted)):
        answer = await partner.claim(entity, document_refs=[early], mode="test")
        refused(answer, "document_not_uploaded")
        assert "No upload for this claim" in answer.json()["message"]
    again = await documents.uploaded(partner, entity, mode="test")
    made = await partner.claim(entity, document_refs=[again], mode="test")

    assert (made.status_code, len(made.json()["document_ids"])) == (201, 1)


@pytest.mark.in_process("sweeps in the middle of a request")
async def test_an_upload_that_is_swept_during_the_check_is_not_linked(documents, monkeypatch):
    """Storage still had the object, but the claim's transaction sees that its row is gone."""
    partner, entity, ref = await documents.uploading()
    counted = documents.counted["live"]
    listed = counted.under

    async def sweeping(prefix, owner):
        found = await listed(prefix, owner)
        await execute(
            documents.world,
            "live",
            "delete from live.uploads where storage_path = $1",
            ref["storage_path"],
        )
        return found

    monkeypatch.setattr(counted, "under", sweeping)
    refused(await partner.claim(entity, document_refs=[ref]), "document_not_uploaded")
    assert await claims_of(documents, entity) == []


async def test_sandbox_documents_stay_in_the_sandbox(documents):
    """Test mode works alike in its own ledger; live mode does not see its documents."""
    partner, live = await documents.world.connected()
    test = (await partner.sandbox()).connected_entity_id
    ref = await documents.uploaded(partner, test, mode="test")
    refused(await partner.claim(live, document_refs=[ref]), "document_path_invalid")
    made = await partner.claim(test, document_refs=[ref], mode="test")
    body = made.json()

    assert (made.status_code, len(body["document_ids"])) == (201, 1)
    assert (await attached_to(documents, "test", body["claim_id"])).filenames == ["invoice.pdf"]
    kept = {one.claim_id for one in await events_of(documents.world, "live", DocumentsAttached)}
    assert body["claim_id"] not in kept
    again = await partner.claim(test, document_refs=[ref], mode="test")
    assert (again.status_code, again.json()["document_ids"]) == (200, [])


async def test_a_sandbox_trigger_fails_the_document_check(documents):
    """The trigger answers after the documents were found, as a real failure would."""
    partner = await documents.world.partner()
    test = (await partner.sandbox()).connected_entity_id
    reference = "trigger_document_verification_failed"
    ref = await documents.uploaded(partner, test, reference, mode="test")
    answer = await partner.claim(test, reference, document_refs=[ref], mode="test")

    refused(answer, "document_verification_failed")
    assert int(answer.headers["Retry-After"]) >= 1
