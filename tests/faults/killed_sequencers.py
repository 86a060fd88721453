"""Sequencers as separate processes, killed at random.

The parent never touches the database: it forks a sequencer into each slot, kills it with SIGKILL
at a random time, and forks the next, so that hundreds of deaths take seconds. It prints
`{"kills": […], "mid_batch": …}`: the deaths of each slot, and how many met a batch half done; it
ends when both are as many as was asked for. Run as
`python -m tests.faults.killed_sequencers DATABASE_URL LEDGER MASTER_KEY KILLS_EACH MID_BATCH`.
"""

import asyncio
import base64
import gc
import json
import mmap
import os
import random
import signal
import sys
import time
from dataclasses import dataclass

from service.core.clock import system_clock
from service.ledger.database import Connection, Database, LedgerError, Row
from service.ledger.encryption import MasterKeys
from service.ledger.ledger import Ledger
from service.ledger.sequencer import Sequencer
from service.ledger.service_keys import ServiceKeyStore
from tests.patience import PATIENCE_SECONDS
from tests.processes import die_with_parent

SLOTS = 3
LIFE_SECONDS_MAX = 0.1
"""A sequencer that is up lives for a random part of this, …"""
AIM_SECONDS_MAX = 0.3
"""… every other one then until it holds a batch, if it comes to that, and …"""
BATCH_SECONDS = 0.004
"""… a random part of this in the middle of it."""
UNBORN, UP, IN_BATCH = range(3)


class Marking(Sequencer):
    """A sequencer that shows its parent when it is up and when it is inside a batch."""

    def __init__(self, ledger: Ledger, shared: mmap.mmap, slot: int) -> None:
        super().__init__(ledger)
        self._shared = shared
        self._slot = slot

    async def step(self) -> int:
        """Number a batch; change the mark once it is committed."""
        try:
            return await super().step()
        finally:
            self._shared[self._slot] = UP

    async def _number(self, connection: Connection, head: Row | None, floor: int) -> int:
        """Number a batch, which begins once the head is held."""
        if head is not None:
            self._shared[self._slot] = IN_BATCH
        return await super()._number(connection, head, floor)


async def number_for_ever(
    url: str, schema: str, master_key: str, shared: mmap.mmap, slot: int
) -> None:
    """Number whatever arrives, as a worker does."""
    database = Database(url, schema, pool_size=1, deadline=PATIENCE_SECONDS)
    await database.open()
    master_keys = MasterKeys([base64.b64decode(master_key)])
    secrets = ServiceKeyStore(database, master_keys).get  # the ledger is that of accounts
    ledger = Ledger(database, {}, [], master_keys, system_clock, secrets)
    await ledger.event_keys()
    sequencer = Marking(ledger, shared, slot)
    while True:
        try:
            done = await sequencer.step()
        except LedgerError as error:
            sys.stderr.write(f"{type(error).__name__} {error}\n")
            done = 0
        if not done:
            await asyncio.sleep(0.004)


@dataclass
class Slot:
    """A slot in which one sequencer succeeds another."""

    number: int
    where: tuple[str, str, str]
    """The database's URL, the schema, and the master key."""
    shared: mmap.mmap
    pid: int = 0
    kills: int = 0
    mid_batch: int = 0
    ends: float | None = None
    """When it is to be killed; None while it is not up."""
    aimed: bool = False

    def fork(self) -> None:
        """Fork a new sequencer."""
        self.shared[self.number] = UNBORN
        self.ends = None
        self.aimed = bool(self.kills % 2)
        self.pid = os.fork()
        if self.pid == 0:
            die_with_parent()
            try:
                asyncio.run(number_for_ever(*self.where, self.shared, self.number))
            finally:
                os._exit(1)

    def look(self, now: float) -> None:
        """Kill it once its time has come."""
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            raise SystemExit(f"a sequencer ended by itself, after {self.kills} kills of its slot")
        state = self.shared[self.number]
        if self.ends is None and state != UNBORN:
            self.ends = now + random.uniform(0, LIFE_SECONDS_MAX)  # noqa: S311 - no secret
        if self.ends is None or now < self.ends:
            return
        if self.aimed and (state == IN_BATCH or now > self.ends + AIM_SECONDS_MAX):
            self.aimed = False
            self.ends = now + random.uniform(0, BATCH_SECONDS)  # noqa: S311 - no secret
        elif not self.aimed:
            self.kill()
            self.fork()

    def kill(self) -> None:
        """Kill it, whatever it is doing."""
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        if not os.WIFSIGNALED(status):
            raise SystemExit(f"a sequencer ended by itself: {status}")
        self.kills += 1
        self.mid_batch += self.shared[self.number] == IN_BATCH


def main(where: tuple[str, str, str], kills_each: int, mid_batch: int) -> dict[str, object]:
    """Kill every slot's sequencer at least so many times; return what happened."""
    shared = mmap.mmap(-1, SLOTS)
    slots = [Slot(number, where, shared) for number in range(SLOTS)]
    gc.freeze()  # a fork's collector would touch, and so copy, every page
    for slot in slots:
        slot.fork()
    while (
        min(slot.kills for slot in slots) < kills_each
        or sum(slot.mid_batch for slot in slots) < mid_batch
    ):
        for slot in slots:
            slot.look(time.monotonic())
        time.sleep(0.001)
    for slot in slots:
        slot.kill()
    return {
        "kills": [slot.kills for slot in slots],
        "mid_batch": sum(slot.mid_batch for slot in slots),
    }


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(main((sys.argv[1], sys.argv[2], sys.argv[3]), *map(int, sys.argv[4:])))
    )
