"""What a ledger's schema consists of on its node of a Citus cluster, beside what migrations make.

Each table is there twice: under its name, by which statements reach it, and as its only shard,
which has the rows. Whatever protects the table has to be there on the shard, where names end in the
shard's number. What Citus itself changes decides nothing that rows say.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from migrations.snapshots import Definition

_PARTS: Final = frozenset(
    {"relation", "column", "constraint", "index", "trigger", "rule", "policy", "inheritance"}
)
"""What a table has, and so its shard."""
_BY_CITUS: Final = re.compile(
    r"CREATE TRIGGER truncate_trigger_\d+ AFTER TRUNCATE ON \{ledger\}\.\w+ FOR EACH STATEMENT"
    r" EXECUTE FUNCTION citus_truncate_trigger\(\) O"
)
_IDENTITY: Final = re.compile(r" identity [ad]\b")
"""Values are drawn where statements name the table."""
_NOT_VALID: Final = " NOT VALID"
_RANGE: Final = re.compile(r"^(\w+) -?\d+ (-?\d+) -?\d+ -?\d+ ")
"""Of a sequence: each node has one of its own, and `enter.sql` widens it."""
_PLAN: Final = "plan_cache_mode=force_custom_plan"
_PLAN_MADE: Final = "plan_cache_mode=force_generic_plan"


class Shard(NamedTuple):
    """A table's shard; `is_here` if this node has it."""

    table: str
    number: str
    is_here: bool

    @property
    def name(self) -> str:
        """The name of its relation."""
        return f"{self.table}_{self.number}"


def as_migrated(rows: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return rows of definitions with the plan mode that `functions.sql` has replaced."""
    return [
        (name, kind, part.replace(_PLAN, _PLAN_MADE) if kind == "function" else part)
        for name, kind, part in rows
    ]


def on_node(
    made: Iterable[Definition], found: frozenset[Definition], shards: Sequence[Shard]
) -> tuple[frozenset[Definition], frozenset[Definition]]:
    """Return what a node should have, and what it has, in words that can be compared."""
    by_table = {shard.table: shard.name for shard in shards}
    numbers = "|".join(re.escape(shard.number) for shard in shards)
    numbered = re.compile(rf"_(?:{numbers})\b")
    names = frozenset(by_table.values())
    there = frozenset(
        one._replace(part=numbered.sub("", one.part)) if one.name in names else one
        for one in map(_worded, found)
        if one.kind != "trigger" or not _BY_CITUS.fullmatch(one.part)
    )
    wanted = {_worded(one) for one in made}
    wanted |= {
        one._replace(name=by_table[one.name], part=_IDENTITY.sub("", one.part))
        for one in wanted
        if one.kind in _PARTS and one.name in by_table
    }
    return frozenset(_checked(one, there) for one in wanted), there


def _worded(one: Definition) -> Definition:
    return one._replace(part=_RANGE.sub(r"\1 \2 ", one.part)) if one.kind == "sequence" else one


def _checked(one: Definition, there: frozenset[Definition]) -> Definition:
    """Return a constraint as it is where Citus made it again, and checked the rows by it."""
    valid = one._replace(part=one.part.removesuffix(_NOT_VALID))
    return valid if valid in there else one
