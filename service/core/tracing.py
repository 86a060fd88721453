"""What a piece of work consisted of, by time: spans, for as long as somebody records them.

Nothing here exports anything, and no library is needed for it. Where no span is open, nothing is
recorded. A span may belong to several others at once: what a batch does is a part of each of its
requests.
"""

import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

ATTRIBUTES: Final = frozenset(
    {
        # of a request
        "http.request.method", "http.route", "http.response.status_code",
        "claim_ledger.request_id", "claim_ledger.code", "claim_ledger.mode",
        "claim_ledger.partner_id", "claim_ledger.key_id",
        # of a statement
        "db.system.name", "db.namespace",
        # of a batch, and of a step of the worker
        "claim_ledger.commands", "claim_ledger.handled",
        # what went wrong: a type or a code, never a message
        "error.type",
    }
)  # fmt: skip
"""Every attribute that a span may have: nothing personal, no secrets, no partners' references."""

PARTS_MAX: Final = 64
"""Of a span: a step of the worker may run thousands of statements."""

Attribute = str | int


@dataclass(slots=True, eq=False)
class SpanRecord:
    """A piece of work with a beginning and an end, in nanoseconds since 1970; 0: not ended yet."""

    name: str
    attributes: dict[str, Attribute] = field(default_factory=dict)
    begun: int = field(default_factory=time.time_ns)
    ended: int = 0
    parts: list["SpanRecord"] = field(default_factory=list)

    def note(self, **attributes: Attribute | None) -> None:
        """Add attributes by their names with `__` for each dot; None is left out."""
        for name, value in attributes.items():
            if value is not None:
                self.attributes[name.replace("__", ".")] = value

    def fail(self, error: BaseException) -> None:
        """Note the type of what went wrong; its message may quote values."""
        self.attributes["error.type"] = type(error).__name__

    def end(self) -> None:
        """Note the end."""
        self.ended = time.time_ns()


_open: ContextVar[Sequence[SpanRecord]] = ContextVar("open_spans", default=())


def open_spans() -> Sequence[SpanRecord]:
    """Return the spans that what is done now is a part of."""
    return _open.get()


@contextmanager
def within(spans: Iterable[SpanRecord]) -> Generator[None]:
    """Make what the block does a part of these spans, and of no others."""
    token = _open.set(tuple(spans))
    try:
        yield
    finally:
        _open.reset(token)


class _Recording:
    """What `span` returns: quicker than a generator, for a request passes six of them."""

    __slots__ = ("_made", "_outer", "_token")

    def __init__(self, made: SpanRecord, outer: Sequence[SpanRecord]) -> None:
        self._made, self._outer = made, outer

    def __enter__(self) -> SpanRecord:
        for one in self._outer:
            if len(one.parts) < PARTS_MAX:
                one.parts.append(self._made)
        self._token = _open.set((self._made,))
        return self._made

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if error is not None:  # also where it was cancelled
            self._made.fail(error)
        self._made.end()
        _open.reset(self._token)


_NOT_RECORDED: Final = nullcontext[None](None)


def span(name: str, **attributes: Attribute) -> AbstractContextManager[SpanRecord | None]:
    """Record what the block does as a part of the open spans; yield None where there are none."""
    outer = _open.get()
    if not outer:
        return _NOT_RECORDED
    made = SpanRecord(name)
    made.note(**attributes)
    return _Recording(made, outer)
