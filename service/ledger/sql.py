"""The statements of a folder's `queries.sql`, qualified with the ledger that they run on."""

import re
from functools import cache
from importlib.resources import files
from typing import Final

_QUALIFIER: Final = re.compile(r"\bledger(?=\.\w)")
_NAME: Final = re.compile(r"^-- name: (\w+)\n((?:--.*\n)+)", re.MULTILINE)


class Sql:
    """One statement. In its file, `ledger.` stands for the schema of the ledger it runs on."""

    def __init__(self, name: str, description: str, text: str) -> None:
        """`name` is `<package> <query>`; the statement begins with it, for monitoring."""
        self.name: Final = name
        self.description: Final = description
        self.text: Final = text
        self._on: dict[str, str] = {}

    def on(self, schema: str) -> str:
        """Return the statement for one schema; always the same object, so drivers can cache it."""
        text = self._on.get(schema)
        if text is None:
            text = f"-- {self.name}\n{_QUALIFIER.sub(schema, self.text)}"
            self._on[schema] = text
        return text


class Queries:
    """The named, described statements of one `queries.sql`: each is an attribute."""

    def __init__(self, package: str) -> None:
        """Read the file of `package`: `-- name: <name>`, a description in comments, a statement."""
        self._package = package
        before, *parts = _NAME.split((files(package) / "queries.sql").read_text())
        if before.strip():
            raise ValueError(f"{package}: queries.sql has text before its first named query")
        for name, description, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            self.__dict__[name] = Sql(f"{package} {name}", _words(description), text.strip())

    def __getattr__(self, name: str) -> Sql:
        raise AttributeError(f"queries.sql of {self._package} has no query {name}")

    def __getitem__(self, name: str) -> Sql:
        """Return a query whose name is put together at run time."""
        return getattr(self, name)


@cache
def queries(package: str) -> Queries:
    """Return the statements of a package's `queries.sql`, read once."""
    return Queries(package)


def _words(comment: str) -> str:
    return " ".join(line.removeprefix("--").strip() for line in comment.splitlines())
