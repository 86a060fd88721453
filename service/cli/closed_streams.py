"""Standard streams that whoever started the program has closed (`>&-`).

Python has no stream for them then, and the next file that it opens gets such a number: a print is
lost in silence, or lands in that file.
"""

import fcntl
import os
import sys
from typing import Final

_STDIN, _STDOUT, _STDERR = range(3)
_FLAGS: Final = {_STDIN: os.O_RDONLY, _STDOUT: os.O_RDONLY, _STDERR: os.O_WRONLY}
"""Nothing is read from stdin, stderr takes everything, and to write to stdout fails."""


def open_closed() -> bool:
    """Open each closed standard stream on /dev/null; return whether stdout was closed."""
    closed = [number for number in _FLAGS if _is_closed(number)]
    for number in closed:  # from the lowest up, each gets its own number
        os.set_inheritable(os.open(os.devnull, _FLAGS[number]), True)
    if _STDIN in closed:
        sys.stdin = os.fdopen(_STDIN)
    if _STDOUT in closed:
        sys.stdout = os.fdopen(_STDOUT, "w", closefd=False)
    if _STDERR in closed:
        sys.stderr = os.fdopen(_STDERR, "w")
    return _STDOUT in closed


def lose_output() -> None:
    """Have nothing fail that writes to a closed stdout: what runs on has no answer, but a log."""
    if fcntl.fcntl(_STDOUT, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False
