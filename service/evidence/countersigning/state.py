"""Whether others sign a ledger's checkpoints, for alerts, whichever process asks them."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import takewhile
from typing import Final, NamedTuple

from service.evidence.checkpoints.lineage import begun_lineages
from service.evidence.checkpoints.signatures import LINES_MAX
from service.evidence.countersigners import Countersigners
from service.evidence.note import NoteInvalid, NoteSignature, split_note
from service.evidence.policy import Policy
from service.evidence.time_stamp import TimeAuthority
from service.ledger.database import Pool, Row
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

_LOOKED_THROUGH: Final = 8
"""Of so many of the newest checkpoints each line is verified, so that false ones are noticed."""
_READ_MAX: Final = 500

_SQL = queries("service.evidence.countersigning")

Keys = frozenset[tuple[str, bytes]]
"""Names and ids."""
_WillDo = Callable[[Keys], bool]


class CountersigningState(NamedTuple):
    """Since when checkpoints lack the signatures of others; None: none does, or none is requested.

    `refusals` is the number of witnesses that find the log inconsistent with what they signed, and
    `forged` of the lines of the newest checkpoints that are not of the key whose name they have.
    """

    unwitnessed_since: datetime | None
    unstamped_since: datetime | None
    refusals: int
    forged: int


class _Signed(NamedTuple):
    """A checkpoint's date, whose lines it has that hold, how many were verified, and failed."""

    made_at: datetime
    keys: Keys
    lines: int
    forged: int


async def countersigning_state(
    ledger: Ledger, policy: Policy | None, authority: TimeAuthority | None
) -> CountersigningState:
    """Return how it is; a line counts once it was verified, whoever has stored it."""
    witnesses = policy.keys if policy else []
    signers = Countersigners(witnesses, [authority] if authority else [])
    needs: list[_WillDo | None] = [
        policy.is_met if policy else None,
        (lambda keys: authority.which in keys) if authority else None,
    ]
    begun = await begun_lineages(ledger) if signers.keys or policy else []
    reads = ledger.database.reads
    found = await _newest(reads, begun[-1].origin, signers, needs) if begun else []
    unwitnessed, unstamped = (need and _since(found, need) for need in needs)
    refusals = await reads.fetch(_SQL.refusals, *Countersigners(witnesses).columns)
    forged = sum(one.forged for one in found)
    return CountersigningState(unwitnessed, unstamped, len(refusals), forged)


async def _newest(
    reads: Pool, origin: str, signers: Countersigners, needs: Sequence[_WillDo | None]
) -> list[_Signed]:
    """Return the largest checkpoints, until there is one that will do for each need.

    Beyond the newest, lines are verified where they would do if they held: while a witness is away,
    there are none of its. At most LINES_MAX are, in all; what is older then counts as not signed.
    """
    rows = await reads.fetch(_SQL.newest, origin, _READ_MAX, *signers.columns)
    keys = {f"{name} {key_id.hex()}": (name, key_id) for name, key_id in signers.keys}
    found: list[_Signed] = []
    for some in (rows[:_LOOKED_THROUGH], *([row] for row in rows[_LOOKED_THROUGH:])):
        missing = [need for need in needs if need and not any(need(one.keys) for one in found)]
        lines_left = LINES_MAX - sum(one.lines for one in found)
        if not missing or not lines_left:
            break
        named = frozenset(keys[name] for row in some for name in row["named"])
        if not found or any(need(named) for need in missing):
            found += await _signed(reads, origin, some, signers, lines_left)
        else:
            found += [_Signed(row["made_at"], frozenset(), 0, 0) for row in some]
    return found


async def _signed(
    reads: Pool, origin: str, rows: Sequence[Row], signers: Countersigners, lines_max: int
) -> list[_Signed]:
    lines = defaultdict[int, list[NoteSignature]](list)
    sizes = [row["size"] for row in rows]
    for size, *line in await reads.fetch(_SQL.lines, origin, sizes, *signers.columns, lines_max):
        lines[size].append(NoteSignature(*line))
    noted = await reads.fetch(_SQL.notes, origin, list(lines))
    notes = {row["size"]: row["note"] for row in noted}
    found: list[_Signed] = []
    for row in rows:
        held, stored = list[NoteSignature](), lines[row["size"]]
        with suppress(NoteInvalid):  # what is no note was signed by nobody
            held = signers.held(split_note(notes[row["size"]])[0], stored) if stored else []
        keys = frozenset(line.key for line in held)
        found.append(_Signed(row["made_at"], keys, len(stored), len(stored) - len(held)))
    return found


def _since(found: Sequence[_Signed], will_do: _WillDo) -> datetime | None:
    """Return the date of the oldest checkpoint after the newest that will do; None: there is none.

    They are by size, the largest first.
    """
    later = list(takewhile(lambda one: not will_do(one.keys), found))
    return later[-1].made_at if later else None
