"""Whether the event loops of forked processes run, as the process that forked them sees it."""

import asyncio
import mmap
from typing import Final

BEAT_SECONDS: Final = 1.0
"""Between two beats of a loop that nothing holds up."""
SILENT_SECONDS_MAX: Final = 30.0
"""No step of ours holds up a loop for a second; a machine that is short of everything may."""


class Heartbeats:
    """A byte for each process, in memory that they share. It is 0 until the process begins."""

    def __init__(self, processes: int) -> None:
        """Make it before the processes are forked."""
        self._beats = mmap.mmap(-1, processes)
        self._seen = bytearray(processes)
        self._silent = [0.0] * processes

    def begin(self, nr: int, loop: asyncio.AbstractEventLoop) -> None:
        """Have the loop of the process with this number beat whenever it runs from now on."""

        def beat() -> None:
            self._beats[nr] = self._beats[nr] % 0xFF + 1
            loop.call_later(BEAT_SECONDS, beat)

        loop.call_soon(beat)

    def forget(self, nr: int) -> None:
        """Expect nothing of a process, which has ended, until its successor begins."""
        self._beats[nr] = self._seen[nr] = 0
        self._silent[nr] = 0.0

    def silent_after(self, seconds: float) -> list[int]:
        """Return the numbers of those that are silent for too long, now that so much time passed.

        It is what the caller has waited, and not what a clock says: where all of us were stopped
        for an hour, they have had no more time to beat than we have had to wait. Who is returned is
        so again only after as long a silence.
        """
        beats = self._beats[:]
        for nr, beat in enumerate(beats):
            is_silent = beat and beat == self._seen[nr]
            self._silent[nr] = self._silent[nr] + seconds if is_silent else 0.0
        self._seen[:] = beats
        late = [nr for nr, silent in enumerate(self._silent) if silent >= SILENT_SECONDS_MAX]
        for nr in late:
            self._silent[nr] = 0.0
        return late
