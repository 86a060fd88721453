"""The result of a verification, of a database or of an export."""

import base64
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple, Self

import msgspec


class Fault(NamedTuple):
    """What is wrong, in a sentence for people, and the first position in doubt.

    `position` is None if no event of the log is concerned.
    """

    position: int | None
    sentence: str


class Countersigned(NamedTuple):
    """What others have signed of a checkpoint of a size, as far as it was demanded.

    `witnesses` have cosigned it, by their names in the policy; all that it covers `existed_before`
    a time of an authority's clock.
    """

    size: int | None = None
    witnesses: list[str] | None = None
    existed_before: datetime | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a log is what it was signed as.

    `size` counts the events of the log and `root` is the hash over them (base64), both of what came
    before the fault if there is one. `events` counts those that were read: of an export that begins
    at a later position, `first`, or is of one `entity`, they are fewer, and only they are verified.
    `checkpoints` says how many held, `published` how many published ones were consulted: None where
    none could be, so that all is said by the database itself or by the file. `lineages` says how
    many this log has begun: more than one where a restore has lost events. `set_aside` counts the
    checkpoints that a later lineage says are of lost events, `set_aside_size` is the largest's.
    `countersigned` is what others have signed, as far as it was demanded.
    `position` and `fault` are the first fault's, and None without one.
    """

    ledger: str
    ok: bool
    size: int
    root: str
    events: int = 0
    first: int = 1
    entity: str | None = None
    checkpoints: int = 0
    published: int | None = None
    lineages: int = 0
    set_aside: int = 0
    set_aside_size: int | None = None
    position: int | None = None
    fault: str | None = None
    countersigned: Countersigned = Countersigned()

    @classmethod
    def of(
        cls,
        ledger: str,
        size: int,
        root: bytes,
        *,
        events: int | None = None,
        first: int = 1,
        entity: str | None = None,
        checkpoints: int = 0,
        published: int | None = None,
        lineages: int = 0,
        set_aside: Collection[int] = (),
        countersigned: Countersigned | None = None,
        fault: Fault | None = None,
    ) -> Self:
        """Make one: `ok` is that there is no fault; `set_aside` has a size for each.

        `events` None: all of the log was read.
        """
        return cls(
            ledger=ledger,
            ok=fault is None,
            size=size,
            root=base64.b64encode(root).decode(),
            events=size if events is None else events,
            first=first,
            entity=entity,
            checkpoints=checkpoints,
            published=published,
            lineages=lineages,
            set_aside=len(set_aside),
            set_aside_size=max(set_aside, default=None),
            countersigned=countersigned or Countersigned(),
            position=fault.position if fault else None,
            fault=fault.sentence if fault else None,
        )

    def with_fault(self, fault: Fault) -> Self:
        """Return the verdict on the same log where a fault was found beside it."""
        return msgspec.structs.replace(
            self, ok=False, position=fault.position, fault=fault.sentence
        )
