"""What an answered request leaves in memory: nothing, without the collector of cycles."""

import gc
from functools import partial

import pytest
from litestar import Request

from service.ledger.database import LedgerUnavailable
from tests.pages.visitor import Visitor

JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def requests(world, monkeypatch):
    """Return requests of every kind, each to be made by a call, with the status of its answer."""
    partner, visitor = await world.partner(), Visitor(world)
    entity_id = await partner.connected_entity()
    post = partial(partner.call, "POST", "/claims")
    batcher = world.service.modes["live"].claims._batcher  # noqa: SLF001 - what runs commands

    async def failing(error):
        async def run(_commands):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(batcher, "_run", run)
            return await partner.claim(entity_id, "case-2")

    return [
        (201, lambda: partner.claim(entity_id)),
        (200, lambda: partner.claim(entity_id)),
        (200, lambda: partner.call("GET", f"/claims?entity_id={entity_id}")),
        (400, lambda: partner.call("GET", "/claims")),
        (400, lambda: post(json={"entity_id": "x" * 900_000})),
        (400, lambda: post(content=b"{" + b"x" * 900_000, headers=JSON)),
        (413, lambda: post(content=b"x" * 1_100_000, headers=JSON)),
        (404, lambda: partner.claim("ent_00000000000000000000000000")),
        (404, lambda: partner.call("GET", "/nowhere")),
        (405, lambda: partner.call("DELETE", "/claims")),
        (401, lambda: world.client.get("/v1/claims")),
        (200, lambda: visitor.get("/sign-in")),
        (404, lambda: visitor.get("/nowhere")),
        (400, lambda: visitor.post("/sign-in", email="x")),
        (503, lambda: failing(LedgerUnavailable("away"))),
        (500, lambda: failing(RuntimeError("ours"))),
    ]


async def test_no_request_is_kept(requests):
    """A refused one would stay with its body: a hundred of 1 MiB, from one partner in a minute."""
    gc.collect()
    gc.disable()
    try:
        for status, request in requests:
            answer = await request()
            kept = [one for one in gc.get_objects() if isinstance(one, Request)]
            assert (answer.status_code, kept) == (status, [])
    finally:
        gc.enable()
