"""What a verification answers, whatever it read: a database or an export."""

import base64
from collections.abc import Collection
from typing import NamedTuple, Self

import msgspec


class Fault(NamedTuple):
    """What is wrong, in a sentence for people, and the first position that it makes doubtful.

    `position` is None where no event of the log is concerned.
    """

    position: int | None
    sentence: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a log is what it was signed as.

    `size` counts the events that were read and `root` is the hash over them (base64), both of what
    came before the fault if there is one. `checkpoints` says how many held, `lineages` how many
    this log has begun: more than one where a restore has lost events. `set_aside` counts the
    checkpoints that a later lineage says are of lost events, `set_aside_size` is the largest's.
    `position` and `fault` are the first fault's, and None without one.
    """

    ledger: str
    ok: bool
    size: int
    root: str
    checkpoints: int = 0
    lineages: int = 0
    set_aside: int = 0
    set_aside_size: int | None = None
    position: int | None = None
    fault: str | None = None

    @classmethod
    def of(
        cls,
        ledger: str,
        size: int,
        root: bytes,
        *,
        checkpoints: int = 0,
        lineages: int = 0,
        set_aside: Collection[int] = (),
        fault: Fault | None = None,
    ) -> Self:
        """Make one: `ok` is that there is no fault; `set_aside` has a size for each."""
        return cls(
            ledger=ledger,
            ok=fault is None,
            size=size,
            root=base64.b64encode(root).decode(),
            checkpoints=checkpoints,
            lineages=lineages,
            set_aside=len(set_aside),
            set_aside_size=max(set_aside, default=None),
            position=fault.position if fault else None,
            fault=fault.sentence if fault else None,
        )
