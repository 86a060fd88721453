"""Statements about the rows of one tenant: others' rows are neither returned nor changed.

Each is run with the tenant's rows alone, and with others' beside them. It has to return the same,
leave the same of the tenant's rows, and others' rows as they were. And every condition in it on
whose a row is has to count: without it that differs, else the rows here would show nothing.
"""

# ruff: noqa: S608 - what is put together is ours
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import psycopg

from service.ledger.sql import Sql
from tests.statements import statements_of
from tests.tables import every_row

_TABLE = re.compile(r"\bledger\.(\w+)(?!\w*\()")

Key = tuple[str, str]
"""A statement's name, and the condition that it lacks, if any."""
Outcome = tuple[list[str], Counter[str]] | str
"""What a statement returned, and the rows that there are after it but others'; or its error."""


@dataclass(frozen=True)
class Tenants:
    """One tenant's rows, in each state that matters, and others', as SQL that inserts them.

    `whose`: the columns that say whose a row is. `of_all`: statements that return rows of every
    tenant, of which those that name `tenant` are compared. `needless`: conditions, each after its
    statement's name, without which that does the same.
    """

    ledger: str
    tenant: str
    whose: Sequence[str]
    own: Sequence[str]
    others: str
    of_all: Sequence[str] = ()
    needless: Sequence[str] = ()


def assert_apart(
    owner: psycopg.Connection,
    package: str,
    tenants: Tenants,
    arguments: Mapping[str, Sequence[str]],
) -> None:
    """Raise AssertionError with each of a package's statements to which others' rows matter.

    And with each of which these rows and arguments would not show it. `arguments`: what each is run
    with by the tenant, in SQL; nothing where no row is anybody's.
    """
    every = {sql.name.split()[-1]: sql for sql in statements_of(package)}
    assert set(arguments) == set(every), "these are not the package's statements"
    whole = {(name, ""): sql for name, sql in every.items() if arguments[name]}
    less = {
        (name, condition): shorter
        for (name, _), sql in whole.items()
        for condition, shorter in _less(sql, tenants.whose)
    }
    trial = _Trial(owner, tenants, whole | less, arguments)
    seen = [trial.run(own, whole) for own in tenants.own]
    with every_row() as row:
        for key in whole:
            with row(*key):
                assert any(nothing != one for nothing, alone, _ in seen for one in alone[key])
                for _, alone, beside in seen:
                    assert beside[key] == alone[key]
        for name, condition in less:
            with row(name, condition):
                counts = any(
                    beside[name, condition] != alone[name, ""] for _, alone, beside in seen
                )
                assert counts != (f"{name}: {condition}" in tenants.needless)


class _Trial:
    """A connection on which statements are run, and nothing is changed in the end."""

    def __init__(
        self,
        owner: psycopg.Connection,
        tenants: Tenants,
        statements: Mapping[Key, Sql],
        arguments: Mapping[str, Sequence[str]],
    ) -> None:
        self._owner, self._tenants = owner, tenants
        self._statements, self._arguments = statements, arguments
        owner.prepare_threshold = None  # the names of prepared statements are ours
        self._execute("deallocate all")
        texts = " ".join(sql.text for sql in statements.values())
        look = [
            f"select '{table} ' || t::text from ledger.{table} as t"
            for table in sorted(set(_TABLE.findall(texts)))
        ]
        self._execute("prepare every_row as " + " union all ".join(look))
        self._numbers = {key: nr for nr, key in enumerate(statements)}
        for key, nr in self._numbers.items():
            # The same moment in each run.
            text = statements[key].text.replace("clock_timestamp()", "now()")
            self._execute(f"prepare statement_{nr} as {text}")

    def run(
        self, own: str, whole: Mapping[Key, Sql]
    ) -> tuple[Outcome, dict[Key, list[Outcome]], dict[Key, list[Outcome]]]:
        """Return the outcome of doing nothing, and of each statement: alone, and beside others."""
        with self._owner.transaction(force_rollback=True):
            self._execute(own)
            before = self._rows()
            alone = {key: self._outcomes(key, Counter()) for key in whole}
            self._execute(self._tenants.others)
            others = self._rows()
            others.subtract(before)
            beside = {key: self._outcomes(key, others) for key in self._statements}
        return ([], before), alone, beside

    def _outcomes(self, key: Key, others: Counter[str]) -> list[Outcome]:
        return [self._outcome(key, given, others) for given in self._arguments[key[0]]]

    def _outcome(self, key: Key, given: str, others: Counter[str]) -> Outcome:
        name, condition = key
        try:
            with self._owner.transaction(force_rollback=True):
                found = self._execute(
                    f"execute statement_{self._numbers[key]}" + (f"({given})" if given else "")
                )
                returned = found.fetchall() if found.description else []
                rows = self._rows()
        except psycopg.Error as error:
            if not condition:
                raise
            return str(error)
        if name in self._tenants.of_all:
            returned = [one for one in returned if self._tenants.tenant in one]
        rows.subtract(others)
        return sorted(map(str, returned)), rows

    def _rows(self) -> Counter[str]:
        return Counter(text for (text,) in self._execute("execute every_row"))

    def _execute(self, text: str) -> psycopg.Cursor:
        return self._owner.execute(Sql("apart", "", text).on(self._tenants.ledger).encode())


def _less(sql: Sql, whose: Sequence[str]) -> Iterator[tuple[str, Sql]]:
    """Yield a statement less each of its conditions on these columns, which are numbered."""
    columns = "|".join(whose)
    of = rf"(?:\w+\.)?(?:{columns}) = (?:\$\d+(?:::\w+)?|\w+\.(?:{columns}))"
    for nr, found in enumerate(re.finditer(of, sql.text), start=1):
        text = f"{sql.text[: found.start()]}({found[0]} or true){sql.text[found.end() :]}"
        yield f"{found[0]} ({nr})", Sql(sql.name, "", text)
