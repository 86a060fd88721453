"""How files of tests are spread over the processes of a run."""

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

SHARED = {
    "browser": ("pages", "browser|site|filled"),
    "team": ("cli", "team|demo"),
}
"""What is slow to start and shared: the folder of the tests that use it, and their arguments."""


class SharingFiles(LoadFileScheduling):
    """Whole files go to any process, but all that visit pages go to one, and so do the team's.

    A browser, and the installation that it visits, take a processor ten seconds to start, and the
    `claim-ledger dev` that the team works on takes three.
    """

    def _split_scope(self, nodeid: str) -> str:
        """Return what one process runs: a file, or the files that share something."""
        file = super()._split_scope(nodeid)
        return shared_by(self.config.rootpath / file) or file


@cache
def shared_by(file: Path) -> str | None:
    """Return what a file's tests share with others', by its text: fixtures are not known yet."""
    for name, (folder, arguments) in SHARED.items():
        uses = rf"^(?:async )?def test_\w+\([^)]*\b(?:{arguments})\b"
        if file.parent.name == folder and re.search(uses, file.read_text(), re.MULTILINE):
            return name
    return None
