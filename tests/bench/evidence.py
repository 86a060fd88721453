"""What an event costs the auditor's commands, beside raw SHA-256 and COPY in the same run.

`cpu_us_per_event` is the CPU of the command's processes and PostgreSQL's, less what the command's
start takes: other work on the machine moves it little. `events_per_second_idle` follows from it:
two idle cores do no more, by the CPU of all and of the busiest process, which is on one core; where
a process waits for another they do less. `events_per_second` is what was seen by the clock.
"""

import asyncio
import hashlib
import json
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, NamedTuple

import asyncpg
import psycopg

from service.evidence.note import NoteKey
from tests.bench.filled_log import fill
from tests.bench.processes import children, cpu_seconds, megabytes, parent, reaped_seconds
from tests.bench.rebuild import copy_out_and_in
from tests.bench.stack import Stack

CORES = 2
_LOOK_SECONDS = 0.05
KEY = NoteKey.of_seed("example.com/claim-ledger", b"\7" * 32)
_NUMBERED = """
select l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac
from live.log as l join live.events as e using (append_id)
"""

Say = Callable[[str], None]


class Spent(NamedTuple):
    """What a run took: seconds by the clock, and of CPU; and memory at its peak, in MB.

    `busiest` is the CPU of the command's busiest process.
    """

    seconds: float
    cpu: float
    busiest: float
    postgres_cpu: float
    megabytes: float


def evidence(stack: Stack, size: int, rounds: int, say: Say) -> dict[str, Any]:
    """Measure on a log of so many events; `start` is that of the slowest of some commands."""
    bare = stack.url_of("claim_ledger")
    starts = [
        _median([_run(stack, bare, *command, "--help", say=say) for _ in range(rounds)])
        for command in _STARTED
    ]
    say(f"evidence: filling {size} events")
    url = stack.clone(f"evidence_{size}")
    asyncio.run(fill(stack, url, size // 2))
    stack.execute(url, "vacuum analyze")
    _run(stack, url, "audit", "checkpoint", "--ledger", "live", say=say)
    path = str(stack.directory / f"export-{size}")
    commands = {
        "verify": ("audit", "verify", "--ledger", "live"),
        "export": ("audit", "export", "--ledger", "live", "--out", path, "--force"),
        "verify_export": ("audit", "verify", "--export", path, "--public-key", KEY.public_text),
        "replay": ("audit", "replay", "--ledger", "live", "--claim", f"clm_{0:026}"),
        "replay_all": ("audit", "replay", "--ledger", "live"),
        "rebuild": ("projections", "rebuild", "claim_list", "--ledger", "live"),
    }
    found: dict[str, Any] = {"events": size, "start": max(starts, key=attrgetter("cpu"))._asdict()}
    found |= asyncio.run(_raw(stack, url))
    for name, command in commands.items():
        runs = [_run(stack, url, *command, say=say) for _ in range(rounds)]
        start = _run(stack, bare, *_EMPTY.get(name, (*command[:2], "--help")), say=say)
        found[name] = _figures(size, _median(runs), start, found)
        say(f"evidence: {name}: {json.dumps(found[name])}")
    before = _postgres_cpu(stack)
    copied = statistics.median(asyncio.run(copy_out_and_in(stack, url)) for _ in range(rounds))
    found["rebuild"]["copy_ratio"] = round(copied / found["rebuild"]["seconds"], 3)
    of_copy = (_postgres_cpu(stack) - before) / rounds
    idle = size / found["rebuild"]["events_per_second_idle"]
    found["rebuild"]["copy_ratio_idle"] = round(of_copy / idle, 3)
    return found


_STARTED = ((), ("audit",), ("audit", "verify"), ("projections", "rebuild"), ("claims", "show"))
"""Commands whose start is measured, by asking for their help."""
_EMPTY = {
    "verify": ("audit", "verify", "--ledger", "live"),
    "replay": ("audit", "replay", "--ledger", "live"),
    "replay_all": ("audit", "replay", "--ledger", "live"),
    "rebuild": ("projections", "rebuild", "claim_list", "--ledger", "live"),
}
"""Commands whose start is measured on a log without events; an export writes nothing of one."""


def _median(runs: Sequence[Spent]) -> Spent:
    return Spent(*(statistics.median(figures) for figures in zip(*runs, strict=True)))


def _figures(size: int, spent: Spent, start: Spent, raw: dict[str, Any]) -> dict[str, Any]:
    each = max(1e-9, spent.cpu + spent.postgres_cpu - start.cpu - start.postgres_cpu) / size
    idle = max(each / CORES, (spent.busiest - start.busiest) / size)
    return spent._asdict() | {
        "start_cpu": round(start.cpu + start.postgres_cpu, 2),
        "cpu_us_per_event": round(each * 1e6, 2),
        "events_per_second_idle": round(1 / idle),
        "events_per_second": round(size / max(1e-9, spent.seconds - start.seconds)),
        "of_sha256": round(raw["sha256_us_per_event"] / each / 1e6, 3),
        "of_copy": round(raw["copy_us_per_event"] / each / 1e6, 3),
    }


def _run(stack: Stack, url: str, *command: str, say: Say) -> Spent:
    """Run a command in a process of its own; return what it and PostgreSQL's backends took."""
    program = str(stack.program)
    json_option = [] if "--help" in command else ["--json"]
    given = stack.environment(url, CHECKPOINT_KEYS=KEY.private_text)
    before, started = _postgres_cpu(stack), time.perf_counter()
    with (stack.directory / "answer").open("wb") as out:
        process = subprocess.Popen(
            [program, *command, *json_option], env=os.environ | given, stdout=out
        )
        status, used, busiest, peak = _ended(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    if process.returncode:
        answer = (stack.directory / "answer").read_text()
        raise RuntimeError(f"{' '.join(command)} exited with {process.returncode}: {answer[:2000]}")
    spent = Spent(
        round(seconds, 2),
        round(used.ru_utime + used.ru_stime, 2),
        busiest,
        round(_postgres_cpu(stack) - before, 2),
        peak,
    )
    say(f"evidence: {' '.join(command[:2])}: {json.dumps(spent._asdict())}")
    return spent


def _ended(pid: int) -> tuple[int, resource.struct_rusage, float, float]:
    """Wait for a process; return its status, what it used, its busiest's CPU, its peak memory.

    Those that it starts are counted, too.
    """
    busiest = peak = 0.0
    while True:
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended:
            return status, used, busiest, round(peak, 1)
        with suppress(OSError, ValueError):  # one of them is about to end
            running = (pid, *children(pid))
            peak = max(peak, sum(megabytes(one, peak=False) for one in running))
            busiest = max(busiest, *map(cpu_seconds, running))
        time.sleep(_LOOK_SECONDS)


def _postgres_cpu(stack: Stack) -> float:
    """Return the CPU of PostgreSQL's processes so far, those that have ended included."""
    with psycopg.connect(stack.url_of("postgres")) as connection:
        postmaster = parent(connection.info.backend_pid)
    running = 0.0
    for pid in children(postmaster):
        with suppress(OSError):  # it has ended since, and is counted below
            running += cpu_seconds(pid)
    return running + reaped_seconds(postmaster)


async def _raw(stack: Stack, url: str) -> dict[str, Any]:
    """Return the CPU of hashing every event once, and of handing them over by binary COPY."""
    connection = await asyncpg.connect(url)
    before = _postgres_cpu(stack), time.process_time()
    size = 0

    async def sink(data: bytes) -> None:
        nonlocal size
        size += len(data)

    status = await connection.copy_from_query(_NUMBERED, output=sink, format="binary")
    await connection.close()
    events = int(status.split()[-1])
    await asyncio.sleep(1)  # until the backend has ended, and its time is its parent's
    copied = _postgres_cpu(stack) - before[0] + time.process_time() - before[1]
    state, started = b"x" * (size // events), time.process_time()
    for _ in range(events):
        hashlib.sha256(state).digest()
    hashed = time.process_time() - started
    return {
        "bytes_per_event": size // events,
        "sha256_us_per_event": round(hashed / events * 1e6, 3),
        "copy_us_per_event": round(copied / events * 1e6, 3),
    }
