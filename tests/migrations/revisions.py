"""Revisions of a test's own, after the newest of the product's."""

from pathlib import Path
from textwrap import dedent, indent

import migrations
from migrations import apply


class Revisions:
    """A directory of revisions, each of which follows the one before it."""

    def __init__(self, database_url: str, directory: Path) -> None:
        """`directory` is empty."""
        self._url = database_url
        self._directory = directory
        self._newest = migrations.newest_revision()

    def add(self, **files: str) -> None:
        """Add a revision that runs these files, by the name of the function of `apply`."""
        number = f"{int(self._newest) + 1:04}"
        calls: list[str] = []
        for how, text in files.items():
            path = self._directory / f"{number}_{how}.sql"
            path.write_text(dedent(text))
            calls.append(f"apply.{how}({str(path)!r}, ('live',))")
        (self._directory / f"{number}_of_a_test.py").write_text(
            f"from migrations import apply\n"
            f"revision, down_revision = {number!r}, {self._newest!r}\n"
            f"def upgrade():\n{indent(chr(10).join(calls), '    ')}\n"
        )
        self._newest = number

    def upgrade(self) -> None:
        """Apply them."""
        config = migrations.configured(self._url)
        config.set_main_option("path_separator", "newline")
        places = (apply.SQL.parent / "versions", self._directory)
        config.set_main_option("version_locations", "\n".join(map(str, places)))
        migrations.upgrade(config)
