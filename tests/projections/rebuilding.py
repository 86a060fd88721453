"""Rebuilding one read model, and people who write and read meanwhile."""

import asyncio
from itertools import count

from service.core.forked_processes import Spares
from service.ledger.rebuild.session import rebuild_session
from tests.world import STAFF


def model(world, name, ledger="live"):
    """Return one read model."""
    every = world.service.read_models
    (found,) = [one for one in every if (one.ledger.name, one.name) == (ledger, name)]
    return found


def quiet(_positions):
    """Show no progress."""


async def rebuild(url, one, *, if_equal=False, processes=1):
    """Rebuild one read model."""
    with Spares(processes - 1) as spares:
        async with rebuild_session(url, one.ledger.name, spares) as shop:
            return await shop.rebuild(one, quiet, if_equal=if_equal)


async def verify(url, one, *, processes=1):
    """Compare one read model with a replay."""
    with Spares(processes - 1) as spares:
        async with rebuild_session(url, one.ledger.name, spares) as shop:
            return (await shop.verify(one, quiet)).compared


async def rollback(url, one, live_made_at=None):
    """Go back to the rows that were replaced."""
    async with rebuild_session(url, one.ledger.name) as shop:
        return await shop.rollback(one, quiet, live_made_at)


class Hammering:
    """People who write and read as fast as they are answered; every answer has to be good."""

    def __init__(self, world, partner, entity_id, made):
        self._commands = world.service.modes["live"].claims
        self._partner = partner
        self._entity_id = entity_id
        self._numbers = count()
        self._over = asyncio.Event()
        self.answered = list(made)
        acts = (self._write, self._write, self._write, self._read, self._read, self._link)
        self._tasks = [asyncio.create_task(self._repeat(one)) for one in (*acts, self._move)]

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_error):
        """Stop, and raise what went wrong."""
        self._over.set()
        await asyncio.gather(*self._tasks)

    async def _repeat(self, act):
        while not self._over.is_set():
            await act()

    async def _write(self):
        reference = f"hammer-{next(self._numbers)}"
        answer = await self._partner.claim(self._entity_id, reference)
        assert answer.status_code == 201, answer.text
        self.answered.append(answer.json()["claim_id"])

    async def _move(self):
        await self._commands.move(self.answered[-1], "judgment", STAFF)
        await asyncio.sleep(0.005)

    async def _read(self):
        path = f"/claims?entity_id={self._entity_id}&limit=100"
        answer = await self._partner.call("GET", path)
        assert answer.status_code == 200, answer.text

    async def _link(self):
        body = {"partner_user_id": "u"}
        answer = await self._partner.call("POST", "/connect-requests", json=body)
        assert answer.status_code == 201, answer.text
