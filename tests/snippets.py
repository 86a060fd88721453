"""What documents show in fenced blocks, for the tests that run it."""

import re
from pathlib import Path

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of a page in a language, in order."""
    return [text for name, text in _BLOCK.findall(page.read_text()) if name == language]


def languages(page: Path) -> list[str]:
    """Return the language of each block of a page, in order."""
    return [name for name, _ in _BLOCK.findall(page.read_text())]
