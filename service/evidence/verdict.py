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


class EvidenceFault(Exception):
    """A file is not valid evidence, or the log makes none.

    `str()` says why, and `position` where, if that is known.
    """

    def __init__(self, position: int | None, fault: str) -> None:
        super().__init__(fault)
        self.position = position


class Countersigned(NamedTuple):
    """The signatures of others that a checkpoint of a size was required to have, and has.

    `witnesses` have cosigned it, by their names in the policy. Everything that it covers
    `existed_before` a time of an authority's clock.
    """

    size: int | None = None
    witnesses: list[str] | None = None
    existed_before: datetime | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a log is what was signed.

    - `ok` is that nothing is wrong with what there is. `behind` is None, or on a standby the size
      of the largest checkpoint known from elsewhere that it has not replayed: then nobody can tell
      there whether the rest is lost.
    - `size` is the number of events of the log and `root` the hash over them (base64), both up to
      the fault if there is one.
    - `events` is the number of events that were read and verified. It is smaller than `size` for an
      export that begins at a later position, `first`, or is of one `entity`.
    - `checkpoints` is the number that held, `published` the number of published ones that were
      compared. `published` is None if none could be, so that the database or the file is the only
      source.
    - `lineages` is the number of lineages of this log: more than one if a restore has lost events.
    - `set_aside` is the number of checkpoints that, according to a later lineage, cover lost
      events; `set_aside_size` is the size of the largest.
    - `countersigned` has the required signatures of others.
    - `position` and `fault` are those of the first fault, and None if there is none.
    - `actor_faults` is the number of events of somebody who could not act, and `actors_fault` says
      which the first one is. They are no fault of the log, which has them for good. The number is
      None where it is not known: of a file, without the ledger of accounts, or where the events
      themselves do not hold.
    - `unproven_actors` is the number of events that made somebody known who could act, and may be
      anybody's: no signed checkpoint covers them, and nobody without the master keys can tell.
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
    actor_faults: int | None = None
    actors_fault: str | None = None
    unproven_actors: int = 0
    countersigned: Countersigned = Countersigned()
    behind: int | None = None

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
        behind: int = 0,
        fault: Fault | None = None,
    ) -> Self:
        """Make one: `ok` is that there is no fault; `set_aside` has a size for each.

        `events` None: all of the log was read. `behind` 0: it has all that is known from elsewhere.
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
            behind=behind or None,
            position=fault.position if fault else None,
            fault=fault.sentence if fault else None,
        )

    def with_actors(self, first: Fault | None, count: int, unproven: int) -> Self:
        """Return the verdict on the same log with what its actors were found to be."""
        sentence = None if first is None else first.sentence
        return msgspec.structs.replace(
            self, actor_faults=count, actors_fault=sentence, unproven_actors=unproven
        )

    def with_fault(self, fault: Fault) -> Self:
        """Return the verdict on the same log where a fault was found beside it."""
        return msgspec.structs.replace(
            self, ok=False, position=fault.position, fault=fault.sentence
        )
