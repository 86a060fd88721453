"""How long `claim-ledger dev` takes to answer, on a new data directory and on a used one."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.stack import wait_for_answer
from tests.processes import free_port

GOAL_SECONDS = 5.0


def dev_start(say: Callable[[str], None]) -> dict[str, Any]:
    """Measure two starts."""
    with tempfile.TemporaryDirectory(prefix="bench-dev-") as directory:
        say("dev_start: first and second")
        first, second = (_start(Path(directory)) for _ in range(2))
    return {"goal_seconds": GOAL_SECONDS, "first_seconds": first, "second_seconds": second}


def _start(directory: Path) -> float:
    port = free_port()
    program = Path(sys.executable).parent / "claim-ledger"
    log = directory / "dev.out"
    with log.open("wb") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            [program, "dev", "--port", str(port), "--data-dir", directory / "data"],
            stdout=output,
            stderr=output,
        )
        try:
            wait_for_answer(f"http://127.0.0.1:{port}/health/ready", process, log)
            return round(time.perf_counter() - started, 2)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)
