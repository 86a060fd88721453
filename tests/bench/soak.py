"""Hours of mixed traffic with kills: what was acknowledged, lost, doubled and left behind."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.soak.run import soak as run


def soak(
    minutes: float, seed: int, history: Path | None, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run it; `history` is the file for what every client asked and was answered."""
    say(f"soak: {minutes:g} minutes, seed {seed}")
    with tempfile.TemporaryDirectory(prefix="bench-soak-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        found = asyncio.run(run(directory, seconds=minutes * 60, seed=seed))
    if history is not None:
        found.history.write(history)
    return found.figures
