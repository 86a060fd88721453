"""The connections of this process: those that keep others out are closed.

The server holds so many connections and accepts no more, whoever has them: two thousand that say
nothing, or read nothing, would be all that it has. So they are looked at from time to time. Where
there is no room to lose, whoever has most of them loses those that have been silent longest.
"""

import asyncio
import os
import socket
import stat
import struct
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Final, NamedTuple

import structlog

from service.core.loops import Loop
from service.http.networks import network_of_host
from service.http.server import HEAD_SECONDS_MAX, connections_max

LOOK_SECONDS: Final = 0.25
CROWDED: Final = 0.75
"""The share of all places from which on there is too little room."""
RELIEVED: Final = 0.5
"""The share that is left then."""
SILENT_SECONDS_MAX: Final = 2.0 * HEAD_SECONDS_MAX
"""For which neither side has sent anything: the server has closed those that it waits for; these
are responses that nobody reads."""
LOOKS_FOR_SILENCE: Final = 40
"""Every so many looks at a process with room: ten seconds."""

_FILES: Final = "/proc/self/fd"
_TCP_INFO: Final = struct.Struct("=B43xI4xI4x")
"""Of `struct tcp_info`: the state, and the milliseconds since data was sent and received."""
_OPEN: Final = frozenset({1, 8})
"""Established, or closed by the other side: the states of those that are not shut down yet."""

log = structlog.get_logger()


class AcceptedConnection(NamedTuple):
    """An accepted connection."""

    fd: int
    peer: tuple[object, ...]
    network: str
    silent_seconds: float


class ConnectionWatch:
    """Closes connections of this process that are silent, or too many (on Linux)."""

    def __init__(self, ports: Collection[int], on_closed: Callable[[int], object]) -> None:
        """`ports` are those that this process serves; `on_closed` is given how many were closed."""
        self._ports = frozenset(ports)
        self._on_closed = on_closed
        self._most = connections_max()
        self.loop: Final = Loop("connections", self._watch)

    def look(self, *, for_silence: bool) -> int:
        """Close what has to be closed; return how many.

        Raises OSError where the process's own files cannot be listed.
        """
        files = len(os.listdir(_FILES))  # noqa: PTH208 - names alone
        if files < CROWDED * self._most and not for_silence:
            return 0
        chosen = to_close(list(_accepted(self._ports)), self._most)
        closed = sum(_close(one) for one in chosen)
        if closed:
            self._on_closed(closed)
            log.warning("connections were closed: silent, or too many of one network", count=closed)
        return closed

    async def _watch(self) -> None:
        if sys.platform != "linux":
            return
        looks, is_blind = 0, False
        while True:
            looks += 1
            try:
                self.look(for_silence=looks % LOOKS_FOR_SILENCE == 0)
                is_blind = False
            except OSError as error:  # no file is left even to look; the next time one may be
                if not is_blind:
                    log.warning("connections cannot be looked at", error_type=type(error).__name__)
                is_blind = True
            await asyncio.sleep(LOOK_SECONDS)


def allow_files() -> None:
    """Allow this process and its children as many open files as the system permits.

    With the usual 1,024, a process would hold 512 connections, a quarter of CONNECTIONS_MAX.
    """
    _, most = getrlimit(RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        setrlimit(RLIMIT_NOFILE, (most, most))


def close_all(ports: Collection[int]) -> int:
    """Close every connection to these ports of this process (on Linux); return how many."""
    if sys.platform != "linux":
        return 0
    closed = sum(_close(one) for one in list(_accepted(ports)))
    if closed:
        log.warning("connections were closed: they kept the service from stopping", count=closed)
    return closed


def to_close(connections: Sequence[AcceptedConnection], most: int) -> Sequence[AcceptedConnection]:
    """Return those to close: what is silent for too long, and what is too much for `most` places.

    Where they are crowded, each network may keep as many as any other, so that whoever has few
    keeps them all. Where there are too many networks even for that, silence alone decides.
    """
    chosen = [one for one in connections if one.silent_seconds > SILENT_SECONDS_MAX]
    if len(connections) - len(chosen) < CROWDED * most:
        return chosen
    left = int(RELIEVED * most)
    by_silence = sorted(connections, key=lambda one: one.silent_seconds)
    of_network: dict[str, list[AcceptedConnection]] = defaultdict(list)
    for one in by_silence:
        of_network[one.network].append(one)
    sizes = [len(them) for them in of_network.values()]
    share = bisect_right(range(max(sizes)), left, key=lambda each: _kept(sizes, each)) - 1
    if share == 0:
        return by_silence[left:]
    return [one for them in of_network.values() for one in them[share:]]


def _kept(sizes: Sequence[int], each: int) -> int:
    return sum(min(size, each) for size in sizes)


def _accepted(ports: Collection[int]) -> Iterator[AcceptedConnection]:
    for name in os.listdir(_FILES):  # noqa: PTH208 - names alone
        # A descriptor may be closed, and used again, at any moment: another thread serves.
        with suppress(OSError):
            one = _look_at(int(name), ports)
            if one is not None:
                yield one


def _look_at(fd: int, ports: Collection[int]) -> AcceptedConnection | None:
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        return None
    with socket.fromfd(fd, socket.AF_INET6, socket.SOCK_STREAM) as held:
        own = held.getsockname()
        if not isinstance(own, tuple) or own[1] not in ports:  # a path, of a local socket
            return None
        peer = held.getpeername()  # OSError, of a listening socket
        state, *silent = _TCP_INFO.unpack(
            held.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        )
        if state not in _OPEN:
            return None
        return AcceptedConnection(fd, peer, network_of_host(peer[0]), min(silent) / 1000)


def _close(one: AcceptedConnection) -> bool:
    """Shut a connection down, so that the server sees its end; return whether it was still open."""
    with suppress(OSError), socket.fromfd(one.fd, socket.AF_INET6, socket.SOCK_STREAM) as held:
        if held.getpeername() == one.peer:
            held.shutdown(socket.SHUT_RDWR)
            return True
    return False
