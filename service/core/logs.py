"""Logs: a JSON object a line, made of allowed fields, so that nothing personal can slip in.

What they have of people is pseudonymous (docs/privacy.md): ids, and of pages the network.

A key that is not allowed is dropped. Exceptions are their types and places, never their messages,
which quote values. Of libraries' lines only the parts are kept that are known to hold no values.
"""

import logging
import re
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import PurePath
from traceback import walk_tb
from typing import BinaryIO, Final

import msgspec
import structlog
from structlog.types import EventDict, ExcInfo, Processor, WrappedLogger

from service.core.clock import system_clock, timestamp

ALLOWED: Final = frozenset(
    {
        # whose request, and which
        "request_id", "partner_id", "key_id", "mode", "method", "route", "status", "code",
        "duration_ms",
        # of pages: from where (of IPv6 the network), and who: the look-up key computes their ids
        "client_address", "person_id", "staff_id",
        # where in the log, and how far
        "ledger", "position", "subscriber", "projection", "collector", "count", "attempts",
        # which thing: our own random ids, and none of the partners' references
        "message_id", "entity_id", "claim_id",
        # which trace, where traces are on
        "trace_id", "span_id",
        # what went wrong
        "error_type",
        # which master key, by a digest of it that commands print, too
        "master_key_id",
        # the process
        "pid", "port", "exit_code",
    }
)  # fmt: skip
"""Every key that a log call may give, besides the event itself."""

TEXT_CHARACTERS_MAX: Final = 200
FRAMES_MAX: Final = 30
CAUSES_MAX: Final = 10
TRACE_LINES_MAX: Final = 100

# These write what they are doing, with values only after a mark of _VALUES_AFTER; what others
# write is not known, and only the place where they wrote it is kept.
_KNOWN_LIBRARIES: Final = frozenset({"_granian", "granian", "asyncio", "asyncpg", "alembic"})
_UNKNOWN: Final = "a line of a library"  # without any of the marks below
_VALUES_AFTER: Final = "(<[{:='\"%\n"
_NUMBERED: Final = tuple(
    re.compile(pattern, re.ASCII)
    for pattern in (
        r"(?P<event>Starting granian) \(main PID: (?P<pid>\d{1,10})\)",
        r"(?P<event>Listening) at: \S*:(?P<port>\d{1,5})",
        r"(?P<event>Spawning worker-\d{1,5}) with PID: (?P<pid>\d{1,10})",
    )
)
"""Lines of Granian about a number that a line of ours may have."""

GRANIAN_LOGGING: Final[dict[str, object]] = {
    "handlers": {},
    "formatters": {},
    "loggers": {
        "_granian": {"handlers": [], "propagate": True},
        "granian.access": {"handlers": [], "propagate": True},
    },
}
"""For Granian's `log_dictconfig`: otherwise it would print lines in its own form."""


def configure(level: str, stream: BinaryIO | None = None) -> None:
    """Send all logs, structlog's and the standard library's, to a stream of bytes.

    `level` is debug, info, warning, error or critical. `stream` None: stdout; the command line,
    whose stdout carries its output, passes `sys.stderr.buffer`.
    """
    number: int = getattr(logging, level.upper())
    output = _Output(stream or sys.stdout.buffer)
    structlog.configure(
        # Always this very list: loggers cache it, and structlog's capture_logs alters it in place.
        processors=PROCESSORS,
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *_names: output,
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=number, handlers=[_Handler(output)], force=True)


def keep_allowed(_logger: WrappedLogger, method: str, given: EventDict) -> EventDict:
    """Return the line's fields: allowed keys with short plain values; exceptions by place."""
    line: EventDict = {
        "at": timestamp(system_clock()),
        "level": method,
        "event": _plain(given.pop("event", "")),
    }
    exc_info = given.pop("exc_info", None)
    for key, value in given.items():
        if key in ALLOWED and value is not None:
            line[key] = _plain(value)
    if exc_info:
        line |= _EXCEPTION(_logger, method, {"exc_info": exc_info}).get("exception", {})
    return line


def render(_logger: WrappedLogger, _method: str, line: EventDict) -> bytes:
    """Return the line as JSON."""
    try:
        return _encode(line)
    except (ValueError, OverflowError):  # a lone surrogate, a number beyond 64 bits
        return _encode({key: ascii(value) for key, value in line.items()})


PROCESSORS: Final[list[Processor]] = [
    structlog.contextvars.merge_contextvars,
    keep_allowed,
    render,
]

_encode: Final = msgspec.json.Encoder().encode


class _Output:
    """The stream of lines. A full disk or a closed pipe must not make requests fail."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def msg(self, line: bytes) -> None:
        with suppress(OSError, ValueError):  # ValueError: closed; nowhere is left to report it
            self._stream.write(line + b"\n")  # one write, so that threads' lines do not mix
            self._stream.flush()

    debug = info = warning = error = critical = msg


class _Handler(logging.Handler):
    """Gives the standard library's records the same form, under the same rules."""

    def __init__(self, output: "_Output") -> None:
        super().__init__()
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        # No fault may reach the caller; handleError would print the record's values.
        with suppress(Exception):
            given = _given(record)
            given.update(structlog.contextvars.get_contextvars())
            line = keep_allowed(self._output, record.levelname.lower(), given)
            line["logger"] = record.name[:TEXT_CHARACTERS_MAX]
            line["place"] = _place(record.pathname, record.lineno, record.funcName)
            self._output.msg(render(self._output, "", line))


def _given(record: logging.LogRecord) -> EventDict:
    # The template, never the formatted message: its arguments are values.
    known = record.name.partition(".")[0] in _KNOWN_LIBRARIES
    text = str(record.msg) if known else _UNKNOWN
    if record.name == "_granian":
        for found in filter(None, (pattern.fullmatch(text) for pattern in _NUMBERED)):
            named = found.groupdict()
            return {"event": named.pop("event")} | {key: int(it) for key, it in named.items()}
    cut = min((at for mark in _VALUES_AFTER if (at := text.find(mark)) >= 0), default=len(text))
    return {"event": text[:cut].strip() or _UNKNOWN, "exc_info": record.exc_info}


def _described(exc_info: ExcInfo) -> EventDict:
    trace = islice(_trace(exc_info[1]), TRACE_LINES_MAX)
    return {"error_type": exc_info[0].__qualname__, "traceback": list(trace)}


_EXCEPTION: Final = structlog.processors.ExceptionRenderer(_described)


def _trace(error: BaseException, depth: int = 0) -> Iterator[str]:
    """Yield an exception's places, innermost last; then those of its cause and of its group."""
    frames = deque(walk_tb(error.__traceback__), FRAMES_MAX)  # endless recursion: the innermost
    yield from (_place(f.f_code.co_filename, number, f.f_code.co_name) for f, number in frames)
    sources = [error.__cause__ or error.__context__]
    if isinstance(error, BaseExceptionGroup):
        sources += error.exceptions
    for source in sources:
        if source is not None and depth < CAUSES_MAX:  # chains can be circular
            yield f"from {type(source).__qualname__}"
            yield from _trace(source, depth + 1)


def _place(path: str, line: int, function: str | None) -> str:
    # Two folders identify the module; the rest would show where the machine keeps its files.
    return f"{'/'.join(PurePath(path).parts[-3:])}:{line}:{function or '?'}"


def _plain(value: object) -> object:
    if isinstance(value, str):
        return value[:TEXT_CHARACTERS_MAX]
    if isinstance(value, int | float):
        return value
    return f"<{type(value).__name__}>"
