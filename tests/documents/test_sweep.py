"""Sweeps that race with claims for the same uploads, and interrupted sweeps."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from inspect import unwrap
from typing import Any
from uuid import uuid4

import pytest

from service.cli.documents import sweep
from service.cli.documents import verify as verify_command
from service.cli.target import Target
from service.core.clock import system_clock
from service.documents.sweep import AnotherSweep, Orphan, StillLinked, Sweep, Swept
from service.documents.unknown import known_to_nobody
from service.documents.verify import verify
from service.ledger.following.parking import NOT_OURS
from service.ledger.scan import appended
from service.storage.port import ObjectStore, StorageUnavailable, StoredObject
from tests.document_store import CONTENT, PDF, Documents
from tests.ledger.raw_events import RawEvent, put_into_log
from tests.progress import Shown
from tests.world import STAFF


class Interposed:
    """A store that runs something else first."""

    def __init__(self, inner: ObjectStore, meanwhile: Callable[[str], Awaitable[object]]) -> None:
        self._inner, self._meanwhile = inner, meanwhile

    async def under(self, prefix: str, owner: str = "") -> Mapping[str, StoredObject]:
        """Return what was there before the interruption."""
        found = await self._inner.under(prefix, owner)
        await self._meanwhile("under")
        return found

    def each(self, prefix: str) -> AsyncIterator[StoredObject]:
        """Return the inner store's listing."""
        return self._inner.each(prefix)

    async def part(self, name: str, generation: int, start: int, size: int) -> bytes | None:
        """Read from the inner store."""
        return await self._inner.part(name, generation, start, size)

    async def delete(self, name: str, generation: int) -> bool:
        """Delete after the interruption."""
        await self._meanwhile("delete")
        return await self._inner.delete(name, generation)

    def close(self) -> None:
        """Close the inner store."""
        self._inner.close()


async def none_listed(_claims: Collection[str]) -> Collection[str]:
    """Return that no erasure is listed."""
    return ()


def sweep_of(documents: Documents, *, kind: type[Sweep] = Sweep, **more: Any) -> Sweep:
    """Return a sweep of every live upload, however young."""
    live = documents.world.service.modes["live"]
    before = documents.world.service.clock() + more.get("ahead", timedelta(seconds=1))
    store = more.get("store", live.storage.store)
    given = {"dry_run": False} | {
        name: more[name] for name in ("dry_run", "with_unknown") if name in more
    }
    return kind(live.ledger, store, before, none_listed, **given)


async def swept(documents: Documents, **more: Any) -> list[Swept]:
    """Sweep until nothing is left."""
    return await sweep_of(documents, **more).run(Shown())


async def objects(documents: Documents) -> list[str]:
    """Return the names of all live objects."""
    store = documents.world.service.modes["live"].storage.store
    return [one.name async for one in store.each("")]


async def uploads(documents: Documents) -> int:
    """Return how many live uploads have a row."""
    live = documents.world.service.modes["live"].ledger.database
    async with live.reads.connection() as connection:
        return await connection.fetchval("select count(*) from live.uploads")


async def faults(documents: Documents) -> list[str | None]:
    """Return an audit's verdict on each linked document."""
    live = documents.world.service.modes["live"]
    return [one.fault async for one in verify(live.claim_documents, live.storage.store)]


async def claims(partner: Any, entity: str) -> int:
    """Return how many claims the entity has."""
    listed = await partner.call("GET", "/claims", params={"entity_id": entity})
    return len(listed.json()["claims"])


async def test_a_sweep_between_check_and_claim_refuses_the_claim(documents):
    """A claim whose uploads vanish after its check is refused as a whole."""
    partner, entity, ref = await documents.uploading()
    counted = documents.counted["live"]
    counted.inner = Interposed(counted.inner, lambda _call: swept(documents))
    answer = await partner.claim(entity, document_refs=[ref])
    assert (answer.status_code, answer.json()["code"]) == (400, "document_not_uploaded")
    assert await objects(documents) == []
    assert (await uploads(documents), await claims(partner, entity)) == (0, 0)
    assert await faults(documents) == []


async def test_an_upload_marked_between_check_and_claim_refuses_the_claim(documents, owner):
    """Its row is still there, and its object is about to go."""
    partner, entity, ref = await documents.uploading()
    counted = documents.counted["live"]

    async def mark(_call: str) -> None:
        owner.execute("update live.uploads set swept_at = now()")

    counted.inner = Interposed(counted.inner, mark)
    answer = await partner.claim(entity, document_refs=[ref])
    assert (answer.status_code, answer.json()["code"]) == (400, "document_not_uploaded")
    assert (await uploads(documents), await claims(partner, entity)) == (1, 0)


async def test_a_sweep_keeps_an_upload_claimed_meanwhile(documents):
    """An upload that a claim refers to by then is kept."""
    partner, entity, ref = await documents.uploading()

    class Late(Sweep):
        async def _forget(self, upload: Orphan) -> bool:
            assert (await partner.claim(entity, document_refs=[ref])).status_code == 201
            return await super()._forget(upload)

    assert await swept(documents, kind=Late) == [Swept(is_gone=False, found=None)]
    assert await objects(documents) == [ref["storage_path"]]
    assert await faults(documents) == [None]


async def test_concurrent_claims_and_sweeps_stay_consistent(documents):
    """Each claim either has its documents or is refused and has none."""
    partner, entity = await documents.world.connected()
    names = [f"case-{number}" for number in range(12)]
    refs = [await documents.uploaded(partner, entity, name) for name in names]

    async def claim(number: int) -> tuple[int, str]:
        await asyncio.sleep(number * 0.004)
        answer = await partner.claim(entity, names[number], document_refs=[refs[number]])
        return answer.status_code, answer.json().get("code", "")

    *answers, _ = await asyncio.gather(*map(claim, range(len(names))), swept(documents))
    await swept(documents)
    made = [ref["storage_path"] for ref, one in zip(refs, answers, strict=True) if one[0] == 201]
    refused = {one for one in answers if one[0] != 201}
    assert refused <= {(400, "document_not_uploaded")}
    assert await objects(documents) == sorted(made)
    assert await faults(documents) == [None] * len(made)
    assert (await uploads(documents), await claims(partner, entity)) == (len(made), len(made))


async def test_a_clock_that_is_ahead_sweeps_nothing(documents, monkeypatch):
    """By the database's clock, which all processes share, no upload is old."""
    partner = await documents.world.partner()
    ref = await documents.uploaded(partner, await partner.connected_entity())
    service = documents.world.service
    monkeypatch.setattr(service, "clock", lambda: system_clock() + timedelta(days=31))
    assert sweep.callback is not None
    target = Target(service, STAFF)
    answer = await unwrap(sweep.callback)(
        target, timedelta(days=7), with_unknown=True, dry_run=False
    )
    assert [one["uploads"] for one in answer["modes"]] == [0, 0]
    assert await objects(documents) == [ref["storage_path"]]


async def test_an_interrupted_sweep_is_finished_by_the_next(documents, owner):
    """A marked upload cannot be claimed; the next sweep deletes it once its URL has expired."""
    partner, entity = await documents.world.connected()
    for call in ("under", "delete"):
        ref = await documents.uploaded(partner, entity)

        async def away(asked: str, call: str = call) -> None:
            if asked == call:
                raise StorageUnavailable("away")

        store = Interposed(documents.counted["live"].inner, away)
        with pytest.raises(StorageUnavailable):
            await swept(documents, store=store)
        answer = await partner.claim(entity, document_refs=[ref])
        assert (answer.status_code, answer.json()["code"]) == (400, "document_not_uploaded"), call
        assert (len(await objects(documents)), await uploads(documents)) == (1, 1), call
        assert await swept(documents, ahead=timedelta(days=-7)) == [], call
        owner.execute("update live.uploads set minted_at = now() - interval '61 minutes'")
        (one,) = await swept(documents, ahead=timedelta(days=-7))
        left = (await objects(documents), await uploads(documents))
        assert (one.is_gone, *left) == (True, [], 0), call


@pytest.mark.parametrize(
    "alter",
    [
        "delete from live.claim_documents",
        "update live.claim_documents set erased = true",
        "update live.claim_documents set storage_path = storage_path || 'x'",
    ],
)
async def test_what_a_claims_event_names_is_not_swept(documents, owner, alter):
    """Whatever became of the rows, or is forged: the sweep is refused, and leaves no marks.

    A dry run takes back none, by which another sweep may be about to delete.
    """
    partner, entity, ref = await documents.uploading()
    assert (await partner.claim(entity, document_refs=[ref])).status_code == 201
    orphan = await documents.uploaded(partner, entity, "abandoned")
    owner.execute("create table kept as table live.claim_documents")
    owner.execute("update live.uploads set claim_stream = gen_random_uuid()")
    owner.execute(alter)
    (stream,) = owner.execute("select stream_id from live.claim_list").fetchone()
    put_into_log(owner, 1_000_000, RawEvent(stream, 1_000, "PersonalDataErased", b""))
    owner.execute("update live.uploads set swept_at = now()")  # by one that is under way
    unmarked = "select count(*) from live.uploads where swept_at is null"
    for dry_run, expected in ((True, 0), (False, 2)):
        with pytest.raises(StillLinked, match=ref["storage_path"]):
            await swept(documents, dry_run=dry_run)
        assert owner.execute(unmarked).fetchone() == (expected,)
    both = sorted(one["storage_path"] for one in (ref, orphan))
    assert await objects(documents) == both
    owner.execute("delete from live.claim_documents")
    owner.execute("insert into live.claim_documents table kept")
    await swept(documents)
    assert await objects(documents) == [ref["storage_path"]]


async def unknown_to_all(documents: Documents, **ahead: float) -> Collection[str]:
    """Return the names of live objects that nobody knows, and whose paths are old enough."""
    live = documents.world.service.modes["live"]
    before = documents.world.service.clock() + timedelta(**ahead)
    return await known_to_nobody(live.ledger, live.storage.store, before, none_listed, Shown())


async def test_objects_that_nobody_knows_are_found_and_swept_on_request(documents, owner):
    """A restore leaves them: they have no row, and no event names them."""
    partner, entity, linked = await documents.uploading()
    assert (await partner.claim(entity, document_refs=[linked])).status_code == 201
    known = await documents.uploaded(partner, entity, "with a row")
    lost = await documents.uploaded(partner, entity, "without a row")
    lost_path, linked_path = lost["storage_path"], linked["storage_path"]
    owner.execute("delete from live.uploads where storage_path <> %s", (known["storage_path"],))
    signer = documents.world.service.modes["live"].storage.signer
    elsewhere = lost_path.replace(entity, "ent_of_another_installation")
    for name in (elsewhere, "entities/a-file"):
        url, _, headers = await signer.sign(name, PDF, len(CONTENT))
        put = await documents.http.put(url, headers=dict(headers), content=CONTENT)
        assert put.status_code == 200, put.text
    found = sorted([lost_path, elsewhere, "entities/a-file"])
    assert await unknown_to_all(documents, seconds=1) == found
    assert await unknown_to_all(documents, hours=-1) == ["entities/a-file"]  # uploads under way
    await swept(documents, ahead=timedelta(hours=-1))
    assert sorted(await objects(documents)) == sorted([*found, linked_path, known["storage_path"]])
    sweeping = sweep_of(documents, with_unknown=True)
    done = await sweeping.run(Shown())
    assert ([one.is_gone for one in done], sweeping.unknown) == ([True, True], 2)
    assert sorted(await objects(documents)) == sorted([elsewhere, "entities/a-file", linked_path])


async def test_what_is_left_alone_hides_nothing_that_comes_after_it(documents, owner, monkeypatch):
    """Objects of another installation are as many as they like: those of this one are swept."""
    for module in ("unknown", "sweep"):
        monkeypatch.setattr(f"service.documents.{module}.FOUND_MAX", 1)
    await documents.uploading()
    owner.execute("delete from live.uploads")
    signer = documents.world.service.modes["live"].storage.signer
    url, _, headers = await signer.sign("entities/0", PDF, len(CONTENT))
    put = await documents.http.put(url, headers=dict(headers), content=CONTENT)
    assert put.status_code == 200, put.text
    sweeping = sweep_of(documents, with_unknown=True)
    assert [one.is_gone for one in await sweeping.run(Shown())] == [True]
    assert (sweeping.unknown, await objects(documents)) == (1, ["entities/0"])


async def test_without_a_bucket_nothing_is_unknown(world):
    """Where documents are not used, `documents verify` finds no fault."""
    assert verify_command.callback is not None
    answer = await unwrap(verify_command.callback)(Target(world.service, STAFF))
    assert answer == {"documents": 0, "erased": 0, "findings": []}


async def test_what_only_an_event_knows_is_not_unknown(documents, owner):
    """Rows that were lost make no document one that nobody knows: it is neither told nor swept."""
    partner, entity, ref = await documents.uploading()
    assert (await partner.claim(entity, document_refs=[ref])).status_code == 201
    owner.execute("delete from live.uploads")
    owner.execute("delete from live.claim_documents")
    assert await unknown_to_all(documents, seconds=1) == []
    with pytest.raises(StillLinked, match=ref["storage_path"]):
        await swept(documents, with_unknown=True)
    assert await objects(documents) == [ref["storage_path"]]


async def test_what_a_foreign_event_names_stops_no_sweep(documents, owner, monkeypatch):
    """It is kept, without a mark, and reported; the rest goes, and the log is read once for all."""
    partner, entity = await documents.world.connected()
    kept, *rest = [await documents.uploaded(partner, entity, name) for name in "abc"]
    live, shown = documents.world.service.modes["live"].ledger, Shown()
    monkeypatch.setattr("service.documents.sweep.PAGE", 1)
    sweeping = sweep_of(documents)
    state = json.dumps({"data": {"documents": [{"storage_path": kept["storage_path"]}]}})
    event = RawEvent(uuid4(), 1, "DocumentsAttached", state.encode())
    append_id = put_into_log(owner, 1_000_000, event)
    put_into_log(owner, 1_000_001, RawEvent(uuid4(), 1, "PersonalDataErased", b""))
    done = await sweeping.run(shown)
    (left,) = sweeping.unread
    assert (left.append_id, left.position, left.fault) == (append_id, 1_000_000, NOT_OURS)
    assert ([one.is_gone for one in done], len(rest)) == ([False, True, True], 2)
    assert await objects(documents) == [kept["storage_path"]]
    marks = "select storage_path, swept_at from live.uploads"
    assert owner.execute(marks).fetchall() == [(kept["storage_path"], None)]
    size = await appended(live)
    assert shown.stages == {
        "marking uploads of live": (3, 3),
        "reading live (events)": (size, size),
        "sweeping live": (2, 2),
    }


async def test_an_object_that_was_replaced_meanwhile_is_left_to_the_next_sweep(documents):
    """It stays in the bucket, and so does the row by which it is found. Nor is it read."""
    partner = await documents.world.partner()
    await documents.uploaded(partner, await partner.connected_entity())
    store = documents.counted["live"].inner
    (found,) = [one async for one in store.each("")]
    parts = [await store.part(found.name, found.generation + at, 0, 4) for at in (0, 1)]
    assert parts == [b"%PDF", None]

    class Replaced(Interposed):
        async def delete(self, name: str, generation: int) -> bool:
            """Find another generation than the one that is asked for."""
            return await super().delete(name, generation + 1)

    async def nothing(_call: str) -> None: ...

    (one,) = await swept(documents, store=Replaced(documents.counted["live"].inner, nothing))
    left = (len(await objects(documents)), await uploads(documents))
    assert (one.is_gone, *left) == (False, 1, 1)
    (one,) = await swept(documents)
    assert (one.is_gone, await uploads(documents)) == (True, 0)


async def test_one_sweep_at_a_time(documents):
    """A second one is refused: it could take back marks by which the first deletes."""
    partner = await documents.world.partner()
    await documents.uploaded(partner, await partner.connected_entity())

    async def another(_call: str) -> None:
        with pytest.raises(AnotherSweep, match="another sweep is running"):
            await swept(documents)

    store = Interposed(documents.counted["live"].inner, another)
    assert [one.is_gone for one in await swept(documents, store=store)] == [True]


async def test_an_audit_tolerates_concurrent_links(documents):
    """A listing page older than a link is no finding."""
    partner, entity, ref = await documents.uploading()
    live = documents.world.service.modes["live"]
    assert (await partner.claim(entity, document_refs=[ref])).status_code == 201

    class Old(Interposed):
        async def each(self, prefix: str) -> AsyncIterator[StoredObject]:
            """Return a listing from before the upload."""
            assert prefix == "entities/"
            for one in ():
                yield one

    async def nothing(_call: str) -> None: ...

    store = Old(live.storage.store, nothing)
    assert [one.fault async for one in verify(live.claim_documents, store)] == [None]
