"""SQL in files of its own, qualified with the ledger that it runs on (design decision 4)."""

import re
from importlib.resources import files

_QUALIFIER = re.compile(r"\bledger(?=\.\w)")


class Sql:
    """One statement. In its file, `ledger.` stands for the schema of the ledger it runs on."""

    def __init__(self, package: str, name: str) -> None:
        """Read `<name>.sql` beside the modules of `package`."""
        self.name = name
        self._text = (files(package) / f"{name}.sql").read_text()
        self._on: dict[str, str] = {}

    def on(self, schema: str) -> str:
        """Answer the statement for one schema; always the same object, so drivers can cache it."""
        text = self._on.get(schema)
        if text is None:
            text = self._on[schema] = _QUALIFIER.sub(schema, self._text)
        return text
