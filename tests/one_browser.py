"""How files of tests are spread over the processes of a run."""

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

_VISITS = re.compile(r"^def test_\w+\([^)]*\b(?:browser|site|filled)\b", re.MULTILINE)


class OneBrowser(LoadFileScheduling):
    """Whole files go to any process, but all that visit pages go to one.

    A browser, and the installation that it visits, take a processor ten seconds to start.
    """

    def _split_scope(self, nodeid: str) -> str:
        """Return what one process runs: a file, or `browser`."""
        file = super()._split_scope(nodeid)
        return "browser" if visits(self.config.rootpath / file) else file


@cache
def visits(file: Path) -> bool:
    """Return whether tests of a file visit pages: only their processes know their fixtures."""
    return file.parent.name == "pages" and _VISITS.search(file.read_text()) is not None
