"""Hours of mixed traffic with kills: what was acknowledged, lost, doubled and left behind."""

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from tests.soak.history import History
from tests.soak.run import soak as run


class Options(NamedTuple):
    """`history` is the file for requests and answers, `directory` one that is kept, with logs."""

    minutes: float
    seed: int
    history: Path | None
    directory: Path | None


def soak(options: Options, say: Callable[[str], None]) -> dict[str, Any]:
    """Run it; the history is written however it ends."""
    say(f"soak: {options.minutes:g} minutes, seed {options.seed}")
    history = History()
    with ExitStack() as ending:
        directory = options.directory or Path(
            ending.enter_context(tempfile.TemporaryDirectory(prefix="bench-soak-"))
        )
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o755)
        if options.history is not None:
            options.history.parent.mkdir(parents=True, exist_ok=True)
            ending.callback(history.write, options.history)
        seconds = options.minutes * 60
        return asyncio.run(run(directory, history, seconds=seconds, seed=options.seed))
