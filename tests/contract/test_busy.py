"""A process that is given more than it can do: early refusals, and bounded bodies."""

import asyncio
import json
from collections import Counter
from contextlib import asynccontextmanager

import psycopg
import pytest

from service.core.errors import Refusal
from service.http.admission import (
    BODY_BYTES_OF_ONE_MAX,
    IN_FLIGHT_MIN,
    LATE_OF_ONE_MAX,
    PER_SECOND_FIRST,
    SLOW,
)
from tests.memory_ledger import memory_world
from tests.patience import eventually
from tests.world import claim_body, settings_for, world_on

pytestmark = pytest.mark.in_process("holds the places of the process that answers")

LARGE_BYTES = 900 * 1024
WAIT_SECONDS = 0.5
SENT = 400
ADMITTED_MAX = int(PER_SECOND_FIRST * WAIT_SECONDS)


@asynccontextmanager
async def appends_wait(url):
    """Keep every append waiting meanwhile."""

    def lock():
        owner.execute("lock table live.events in share mode")

    with psycopg.connect(url) as owner:
        await asyncio.to_thread(lock)
        yield


class Sender:
    """Large claims whose bodies are read from here; `begun` counts those that are asked for."""

    def __init__(self, partner, entity_id):
        self.begun = 0
        self._partner = partner
        self._entity_id = entity_id

    async def claim(self, number):
        """Send a claim."""
        claim = claim_body(self._entity_id, f"large-{number}", message="")
        text = "x" * (LARGE_BYTES - len(json.dumps(claim)))
        body = json.dumps(claim_body(self._entity_id, f"large-{number}", unknown=text)).encode()

        async def read():
            self.begun += 1
            yield body

        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        return await self._partner.call("POST", "/claims", content=read(), headers=headers)


async def test_large_bodies_stay_with_their_senders(database_url, tmp_path):
    """Claims that wait hold half of the room for a partner; small ones and others pass them by."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        partner, other = await world.partner(), await world.partner()
        ours = Sender(partner, await partner.connected_entity())
        theirs = Sender(other, await other.connected_entity())
        small_entity = await partner.connected_entity()
        async with appends_wait(database_url):
            large = [asyncio.create_task(ours.claim(number)) for number in range(12)]
            await eventually(lambda: ours.begun)
            more = asyncio.create_task(theirs.claim(0))
            small = asyncio.create_task(partner.claim(small_entity, "small"))
            await eventually(lambda: theirs.begun)
            writes = world.admitted.admission.writes
            await eventually(lambda: writes.in_flight == len(large) + 2)
            begun = ours.begun
        answers = await asyncio.gather(*large, more, small)

    assert begun == BODY_BYTES_OF_ONE_MAX // LARGE_BYTES
    assert {answer.status_code for answer in answers} == {201}
    assert world.admitted.admission.room.held == {}


async def test_bodies_that_do_not_come_hold_no_places(database_url, tmp_path):
    """Of two partners who announce 150 bodies, few are awaited, and others write meanwhile."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        partners = [await world.partner() for _ in range(3)]
        entities = [await partner.connected_entity() for partner in partners]
        admission, sent = world.admitted.admission, asyncio.Event()
        admission.writes.per_second = 0.0  # as measured where nothing is answered

        async def late(number):
            body = json.dumps(claim_body(entities[number % 2], f"late-{number}")).encode()

            async def read():
                await sent.wait()
                yield body

            headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
            return await partners[number % 2].call(
                "POST", "/claims", content=read(), headers=headers
            )

        waiting = [asyncio.create_task(late(number)) for number in range(150)]
        await eventually(lambda: sum(not one.done() for one in waiting) == 2 * LATE_OF_ONE_MAX)
        claims = [partners[2].claim(entities[2], f"case-{number}") for number in range(20)]
        others = await asyncio.gather(*claims)
        assert admission.writes.in_flight == 0
        sent.set()
        answers = await asyncio.gather(*waiting)

    assert {answer.status_code for answer in others} == {201}
    codes = Counter(answer.json().get("code", "created") for answer in answers)
    assert codes.keys() <= {"created", "request_timeout", "service_unavailable"}
    assert codes["created"] == 2 * LATE_OF_ONE_MAX
    assert (admission.late, admission.writes.in_flight) == ({}, 0)


async def test_large_bodies_that_do_not_come_give_way(database_url, tmp_path):
    """Two partners announce as much as there is room for, and send nothing; a third writes."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        partners = [await world.partner() for _ in range(3)]
        entities = [await partner.connected_entity() for partner in partners]
        room, sent = world.admitted.admission.room, asyncio.Event()

        async def unsent(number):
            async def read():
                await sent.wait()
                yield b""

            headers = {"Content-Type": "application/json", "Content-Length": str(2**20)}
            return await partners[number % 2].call(
                "POST", "/claims", content=read(), headers=headers
            )

        waiting = [asyncio.create_task(unsent(number)) for number in range(4)]
        await eventually(lambda: len(room.arriving) == len(waiting))
        room.patience_seconds, room.wait_seconds_max = 0.0, 60.0
        claim = await Sender(partners[2], entities[2]).claim(0)
        given_way = [one.result() for one in waiting if one.done()]
        sent.set()
        await asyncio.gather(*waiting)

    assert claim.status_code == 201
    assert [(answer.status_code, answer.json()["message"]) for answer in given_way] == [(503, SLOW)]
    assert (room.held, room.arriving) == ({}, [])
    # No alert takes for an outage what two partners bring about.
    assert "'code': 'busy'" in str(list(world.metrics.registry.collect()))


class StorageHangs:
    """A check of documents that lasts until it is told to end."""

    def __init__(self):
        self.waiting = 0
        self.ends = asyncio.Event()

    async def check(self, _caller, _request):
        """Wait, and refuse as for a storage that did not answer in time."""
        self.waiting += 1
        await self.ends.wait()
        raise Refusal("document_verification_failed")


async def test_small_bodies_in_chunks_keep_no_room_while_storage_hangs(tmp_path):
    """Claims of two partners wait for storage; a third partner's is read at once."""
    world, storage = memory_world(tmp_path), StorageHangs()
    world.service.modes["live"].claims.documents = storage
    partners = [await world.partner() for _ in range(3)]
    entities = [await partner.connected_entity() for partner in partners]
    room = world.admitted.admission.room
    room.wait_seconds_max = 0.0

    async def in_chunks(number, **more):
        body = json.dumps(claim_body(entities[number % 3], f"case-{number}", **more)).encode()

        async def read():
            yield body

        headers = {"Content-Type": "application/json"}
        return await partners[number % 3].call("POST", "/claims", content=read(), headers=headers)

    ref = {"storage_path": "entities/a", "mime_type": "application/pdf", "filename": "a.pdf"}
    waiting = [asyncio.create_task(in_chunks(nr, document_refs=[ref])) for nr in (0, 1, 3, 4)]
    await eventually(lambda: storage.waiting + sum(one.done() for one in waiting) == 4)
    other = await in_chunks(2)
    storage.ends.set()
    answers = await asyncio.gather(*waiting)

    assert other.status_code == 201
    assert {one.json()["code"] for one in answers} == {"document_verification_failed"}
    assert room.held == {}


async def test_what_cannot_be_answered_in_time_is_refused_at_once(database_url, tmp_path):
    """While writes wait, more than are answered in time are refused; reads are answered."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        partner, entity_id = await world.connected()
        world.admitted.admission.writes.wait_seconds_max = WAIT_SECONDS
        async with appends_wait(database_url):
            claims = [
                asyncio.create_task(partner.claim(entity_id, f"case-{number}"))
                for number in range(SENT)
            ]
            await eventually(lambda: sum(claim.done() for claim in claims) >= SENT - ADMITTED_MAX)
            refused = [claim.result() for claim in claims if claim.done()]
            listed = await partner.call("GET", "/claims", params={"entity_id": entity_id})
        answers = await asyncio.gather(*claims)
        again = await partner.claim(entity_id, "once more")

    written = [answer for answer in answers if answer.status_code == 201]
    assert IN_FLIGHT_MIN <= len(written) == SENT - len(refused)
    for answer in refused:
        assert (answer.status_code, answer.json()["code"]) == (503, "service_unavailable")
        assert answer.headers["Retry-After"] == "1"
        assert answer.headers["X-Request-Id"].startswith("req_")
        # By which clients know that nothing was done (`x-retry` in the OpenAPI document).
        assert "X-RateLimit-Limit" not in answer.headers
    assert (listed.status_code, again.status_code) == (200, 201)
