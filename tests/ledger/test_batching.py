import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from service.ledger.batching import BATCH_BYTES_MAX, COMMAND_BYTES, Batcher, BatchLimit
from service.ledger.database import LedgerUnavailable
from service.ledger.ledger import ATTEMPTS_MAX
from service.ledger.transaction import AppendConflict, PublicIdTaken, StreamLocked
from tests.patience import PATIENCE_SECONDS, waiting


class Command(NamedTuple):
    """A command of a test: its stream, its number, its size in bytes."""

    key: str
    number: int = 0
    size: int = 0


@dataclass
class Runs:
    """A made-up database: remembers its batches, answers numbers, and fails when it is told to."""

    fail: object = None
    batches: list[list[Command]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    at_once: int = 0
    at_once_max: int = 0

    async def __call__(self, commands):
        """Run a batch when the gate is open."""
        self.batches.append(list(commands))
        self.at_once += 1
        self.at_once_max = max(self.at_once_max, self.at_once)
        try:
            await self.gate.wait()
            if callable(self.fail):
                self.fail(commands)
            return [command.number for command in commands]
        finally:
            self.at_once -= 1

    @property
    def sizes(self):
        """Return how large the batches were."""
        return [len(batch) for batch in self.batches]


async def submitted(batcher, commands):
    """Submit commands in their order and let the first batches begin."""
    tasks = [asyncio.create_task(batcher.submit(command)) for command in commands]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


def batcher_of(runs, **more):
    """Return a batcher with one transaction at a time, unless said otherwise."""
    return Batcher(runs, **{"batch_max": 4, "concurrency": 1, "deadline": PATIENCE_SECONDS} | more)


def raise_for(error, *, times=10**6, when=lambda _commands: True):
    """Return a fault that strikes the first `times` matching batches."""
    left = [times]

    def fail(commands):
        if left[0] and when(commands):
            left[0] -= 1
            raise error

    return fail


async def test_a_command_alone_runs_at_once():
    """Where there is no load, batching adds nothing."""
    runs = Runs()
    runs.gate.set()
    assert await batcher_of(runs).submit(Command("a", 7)) == 7
    assert runs.sizes == [1]


async def test_commands_that_wait_share_a_batch_in_their_order():
    """What came while a batch was under way goes together, oldest first, up to the maximum."""
    runs = Runs()
    tasks = await submitted(batcher_of(runs), [Command(f"s{n}", n) for n in range(7)])
    runs.gate.set()
    assert await asyncio.gather(*tasks) == list(range(7))
    assert [[one.number for one in batch] for batch in runs.batches] == [[0, 1, 2, 3], [4, 5, 6]]


async def test_a_batch_holds_no_stream_twice():
    """A second command of one stream waits for the next batch, before whatever came after it."""
    runs = Runs()
    commands = [Command("a", 0), Command("a", 1), Command("b", 2), Command("a", 3)]
    tasks = await submitted(batcher_of(runs), commands)
    runs.gate.set()
    assert await asyncio.gather(*tasks) == [0, 1, 2, 3]
    assert [[one.number for one in batch] for batch in runs.batches] == [[0, 2], [1], [3]]


async def test_a_stream_is_in_one_batch_at_a_time():
    """What follows in it would decide on what the other batch is about to write."""
    runs = Runs()
    batcher = batcher_of(runs, concurrency=2)
    tasks = await submitted(batcher, [Command("a", 1)])
    tasks += await submitted(batcher, [Command("a", 2), Command("b", 3)])
    assert runs.batches == [[Command("a", 1)], [Command("b", 3)]]
    runs.gate.set()
    assert await asyncio.gather(*tasks) == [1, 2, 3]
    assert runs.batches[2:] == [[Command("a", 2)]]


async def test_no_more_transactions_at_once_than_allowed():
    """However many commands wait, only `concurrency` batches are under way."""
    runs = Runs()
    batcher = batcher_of(runs, concurrency=2, batch_max=1)
    tasks = await submitted(batcher, [Command(f"s{n}", n) for n in range(20)])
    assert len(runs.batches) == 2
    runs.gate.set()
    assert await asyncio.gather(*tasks) == list(range(20))
    assert runs.at_once_max == 2


@pytest.mark.parametrize("error", [AppendConflict("x"), PublicIdTaken("x")])
async def test_a_batch_that_conflicts_is_taken_apart(error):
    """Each command is then tried alone, so that one conflict costs the others nothing."""
    runs = Runs(raise_for(error, when=lambda commands: len(commands) > 1))
    tasks = await submitted(batcher_of(runs), [Command(f"s{n}", n) for n in range(3)])
    runs.gate.set()
    assert await asyncio.gather(*tasks) == [0, 1, 2]
    assert runs.sizes == [3, 1, 1, 1]


async def test_a_command_that_conflicts_alone_is_decided_again():
    """A lost race is decided again on the new state, and given up after some attempts."""
    runs = Runs(raise_for(AppendConflict("x"), times=2))
    runs.gate.set()
    assert await batcher_of(runs).submit(Command("a", 7)) == 7
    assert runs.sizes == [1, 1, 1]
    runs = Runs(raise_for(AppendConflict("x")))
    runs.gate.set()
    with pytest.raises(AppendConflict):
        await batcher_of(runs).submit(Command("a"))
    assert len(runs.batches) == ATTEMPTS_MAX + 1


async def test_a_taken_public_id_is_the_callers_to_retry():
    """Alone, a collision of ids is answered at once: the contract has a code for it."""
    runs = Runs(raise_for(PublicIdTaken("x")))
    runs.gate.set()
    with pytest.raises(PublicIdTaken):
        await batcher_of(runs).submit(Command("a"))
    assert runs.sizes == [1]


async def test_a_poisonous_command_fails_alone():
    """A command that makes its transaction fail does not take its company down."""
    poison = Command("poison", 1)
    runs = Runs(raise_for(ZeroDivisionError(), when=lambda commands: poison in commands))
    tasks = await submitted(batcher_of(runs), [Command("a", 0), poison, Command("b", 2)])
    runs.gate.set()
    first, second, third = await asyncio.gather(*tasks, return_exceptions=True)
    assert (first, third) == (0, 2)
    assert isinstance(second, ZeroDivisionError)


async def test_a_refusal_is_one_commands_own():
    """An outcome that is an exception is raised to its own request."""
    refusal = ValueError("refused")

    async def run(commands):
        return [refusal if command.number == 1 else command.number for command in commands]

    tasks = await submitted(batcher_of(run), [Command(f"s{n}", n) for n in range(3)])
    assert await asyncio.gather(*tasks, return_exceptions=True) == [0, refusal, 2]


async def test_all_of_a_batch_hear_that_the_database_is_away():
    """Nothing is tried alone then: each would wait for the same database."""
    runs = Runs(raise_for(LedgerUnavailable("away"), times=1))
    batcher = batcher_of(runs)
    tasks = await submitted(batcher, [Command(f"s{n}", n) for n in range(3)])
    runs.gate.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [LedgerUnavailable] * 3
    assert runs.sizes == [3]
    assert await batcher.submit(Command("after", 9)) == 9


async def test_a_request_that_has_gone_is_not_run():
    """A command whose request was cancelled while it waited is dropped; the rest goes on."""
    runs = Runs()
    commands = [Command("a", 0), Command("b", 1), Command("c", 2)]
    tasks = await submitted(batcher_of(runs, batch_max=1), commands)
    tasks[1].cancel()
    await asyncio.sleep(0)
    runs.gate.set()
    assert (await tasks[0], await tasks[2]) == (0, 2)
    assert [batch[0].number for batch in runs.batches] == [0, 2]


async def test_a_request_that_goes_while_its_batch_runs_disturbs_nobody():
    """The batch is finished and the others get their outcomes."""
    runs = Runs()
    batcher = batcher_of(runs)
    tasks = await submitted(batcher, [Command("a", 0), Command("b", 1)])
    tasks[0].cancel()
    runs.gate.set()
    assert await tasks[1] == 1
    assert await batcher.submit(Command("c", 2)) == 2


async def test_waiting_is_bounded_in_time():
    """Behind a batch that hangs, each command is given up after its own deadline."""
    runs = Runs()
    batcher = batcher_of(runs, batch_max=1, deadline=0.1)
    with waiting() as waited:
        tasks = await submitted(batcher, [Command(f"s{n}", n) for n in range(5)])
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [LedgerUnavailable] * 5
    assert {type(answer.__cause__) for answer in answers} == {TimeoutError}, "as the log names it"
    assert waited() < 0.2
    batcher._deadline = PATIENCE_SECONDS  # noqa: SLF001 - short for those that hang alone
    runs.gate.set()
    assert await batcher.submit(Command("after", 9)) == 9
    assert runs.sizes == [1, 1]


def conflicting(runs, count, error):
    """Return a run that answers one stream's command with an error the first `count` times."""
    left = [count]

    async def run(commands):
        outcomes = await runs(commands)
        for place, command in enumerate(commands):
            if command.key == "a" and left[0]:
                left[0] -= 1
                outcomes[place] = error
        return outcomes

    return run


@pytest.mark.parametrize("error", [AppendConflict("moved"), StreamLocked("locked")])
async def test_a_command_that_is_in_anothers_way_is_tried_again_by_itself(error):
    """The rest of its batch has its outcomes and is not run again."""
    runs = Runs()
    runs.gate.set()
    batcher = batcher_of(conflicting(runs, 2, error))
    commands = [Command("a", 0), Command("b", 1), Command("c", 2)]
    assert await asyncio.gather(*map(batcher.submit, commands)) == [0, 1, 2]
    ran = [one.key for batch in runs.batches for one in batch]
    assert sorted(ran) == ["a", "a", "a", "b", "c"]


async def test_a_command_whose_stream_stays_locked_ends_at_its_deadline():
    """It keeps nobody waiting meanwhile: others are run, and it holds no batch."""
    runs = Runs()
    runs.gate.set()
    batcher = batcher_of(conflicting(runs, 10**6, StreamLocked("locked")), deadline=0.3)
    (locked,) = await submitted(batcher, [Command("a")])
    batcher._deadline = PATIENCE_SECONDS  # noqa: SLF001 - short for that one alone
    for number in range(20):
        assert await batcher.submit(Command("b", number)) == number
    with pytest.raises(LedgerUnavailable):
        await locked


async def test_a_batch_is_bounded_in_bytes():
    """Commands go together up to a sum; one that is larger goes alone."""
    runs = Runs()
    runs.gate.set()
    batcher = batcher_of(runs, batch_max=100)
    sizes = [30 * 1024, *[100 * 1024] * 5, 998 * 1024, *[1000] * 40]
    commands = [Command(f"s{nr}", nr, size) for nr, size in enumerate(sizes)]
    assert await asyncio.gather(*map(batcher.submit, commands)) == list(range(len(sizes)))
    for batch in runs.batches:
        assert len(batch) == 1 or sum(one.size for one in batch) <= BATCH_BYTES_MAX
    assert any(len(batch) > 10 for batch in runs.batches)


async def test_a_small_command_waits_for_one_large_batch_at_most():
    """Large ones take one of the places; with a single place, they take turns with small ones."""
    for concurrency in (1, 2):
        runs = Runs()
        batcher = batcher_of(runs, concurrency=concurrency)
        large = [Command(f"l{nr}", nr, 998 * 1024) for nr in range(8)]
        small = [Command(f"s{nr}", 100 + nr) for nr in range(4)]
        tasks = await submitted(batcher, [*large, *small])
        await asyncio.sleep(0)
        runs.gate.set()
        await asyncio.gather(*tasks)
        kinds = ["large" if batch[0].size else "small" for batch in runs.batches]
        assert kinds.index("small") <= 1, (concurrency, kinds)
        assert [len(batch) for batch in runs.batches].count(1) >= 8


async def test_a_batch_that_missed_its_deadline_is_halved_and_not_repeated():
    """Its commands are answered; the next batches are small, and grow again while they succeed."""
    runs = Runs(raise_for(LedgerUnavailable("late"), when=lambda commands: len(commands) > 8))
    runs.gate.set()
    batcher = batcher_of(runs, batch_max=32)
    given = 0
    for _ in range(6):
        commands = [Command(f"s{nr}", nr, 1000) for nr in range(32)]
        answers = await asyncio.gather(*map(batcher.submit, commands), return_exceptions=True)
        given += sum(isinstance(answer, int) for answer in answers)
    assert len([command for batch in runs.batches for command in batch]) == 6 * 32
    assert given > 2 * 32
    runs.fail = None
    for _ in range(100):
        commands = [Command(f"s{nr}", nr, 1000) for nr in range(32)]
        await asyncio.gather(*map(batcher.submit, commands))
    assert max(runs.sizes[-4:]) >= 30


async def test_what_is_expected_to_take_too_long_is_not_begun_together():
    """A database that takes its time by the byte gets smaller batches before one is late."""
    limit = BatchLimit(0.75)
    assert limit.allows(BATCH_BYTES_MAX)
    for weight in (COMMAND_BYTES, 10 * COMMAND_BYTES, BATCH_BYTES_MAX) * 10:
        limit.ended(weight, 0.01 + weight / BATCH_BYTES_MAX)
    assert not limit.allows(BATCH_BYTES_MAX)
    assert limit.allows(2 * COMMAND_BYTES)


async def test_a_database_that_is_slow_whatever_the_size_gets_large_batches():
    """Smaller ones would end no sooner, and write less."""
    limit = BatchLimit(0.75)
    for weight in (COMMAND_BYTES, 10 * COMMAND_BYTES, BATCH_BYTES_MAX) * 10:
        limit.ended(weight, 0.4)
    assert limit.allows(BATCH_BYTES_MAX)
