"""What the kernel says about processes: CPU, memory, open files; and a server's children."""

import os
from contextlib import suppress
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """Return a process's children, whichever of its threads started them."""
    found: list[int] = []
    for one in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread may end meanwhile
            found += map(int, one.read_text().split())
    return found


def parent(pid: int) -> int:
    """Return the process that started another."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def command_line(pid: int) -> list[str]:
    """Return the words that a process was started with."""
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, user and system, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def reaped_seconds(pid: int) -> float:
    """Return the CPU time of those children of a process that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / _TICKS_PER_SECOND


def megabytes(pid: int, *, peak: bool = True) -> float:
    """Return the resident memory of a process: its peak, or what it has now."""
    name = "VmHWM" if peak else "VmRSS"
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return round(int(kilobytes) / 1024, 1)


def open_files(pid: int) -> int:
    """Return how many file descriptors a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def runs(pid: int) -> bool:
    """Return whether there is such a process."""
    return Path(f"/proc/{pid}").exists()
