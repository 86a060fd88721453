"""What the newest revision makes of a ledger's schema: each thing that decides what its rows say.

`just generate` writes these files anew; a test compares them with a database
that was migrated, on each version of PostgreSQL.
"""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_HERE: Final = Path(__file__).parent
_SCHEMA: Final = "{ledger}"
_LONG: Final = frozenset({"function", "rule"})


class Definition(NamedTuple):
    """A relation, or a part of one, or something else in a schema.

    `part` is PostgreSQL's own text, in which the schema is called `{ledger}`, as nothing in SQL can
    be: whatever another schema is called, it is not taken for this one. Of a program, a digest.
    """

    name: str
    kind: str
    part: str


@cache
def snapshot_of(ledger: str) -> frozenset[Definition]:
    """Return what the migrations of this release make of a ledger."""
    lines = path_of(ledger).read_text(encoding="utf-8").splitlines()
    return frozenset(Definition(*line.split("\t")) for line in lines)


def path_of(ledger: str) -> Path:
    """Return the file of a ledger; partners' ledgers share one."""
    return _HERE / ("accounts.tsv" if ledger == "accounts" else "partner_ledgers.tsv")


def definitions(schema: str, rows: Iterable[tuple[str, str, str]]) -> frozenset[Definition]:
    """Return what PostgreSQL says of a schema, in the form of a snapshot."""
    qualifier = re.compile(rf"\b{re.escape(schema)}(?=\.\w)")
    return frozenset(
        Definition(name, kind, _shortened(kind, qualifier.sub(_SCHEMA, part)))
        for name, kind, part in rows
    )


def shown(schema: str, part: str) -> str:
    """Return a part as PostgreSQL says it of this schema."""
    return part.replace(_SCHEMA, schema)


def _shortened(kind: str, part: str) -> str:
    if kind in _LONG:
        return f"sha256:{hashlib.sha256(part.encode()).hexdigest()}"
    return " ".join(part.split())
