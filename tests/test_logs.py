"""Logs have one form for every line, and no canary of personal data reaches them."""

import ast
import asyncio
import io
import json
import logging
import logging.config
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import granian.log
import pytest
import structlog

from service.core import logs
from tests.costs import five_milliseconds, share
from tests.log_lines import logged

CANARY = "canary owner@example.com"
ROOT = Path(__file__).parent.parent
METHODS = {"debug", "info", "warning", "error", "critical", "exception"}

Lines = Callable[[], list[dict[str, object]]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Return the logged lines; restore the configuration afterwards."""
    with logged() as stream:
        yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


class Unprintable:
    """A value whose text is personal."""

    def __repr__(self) -> str:
        return CANARY


def broken(secret: str) -> None:
    """Fail with a secret in the message and another in its cause."""
    try:
        int(secret)
    except ValueError as error:
        raise RuntimeError(f"no {secret}") from error


def test_a_line_has_time_level_event_and_fields(lines: Lines) -> None:
    """In this order; None is left out."""
    structlog.get_logger().info("request", status=201, duration_ms=1.5, mode="live", code=None)
    (line,) = lines()
    assert list(line) == ["at", "level", "event", "status", "duration_ms", "mode"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(line.pop("at")))
    assert line == {
        "level": "info",
        "event": "request",
        "status": 201,
        "duration_ms": 1.5,
        "mode": "live",
    }


@pytest.mark.parametrize(
    "key",
    ["email", "user_name", "authorization", "body", "path", "error", "reason", "url", "token"],
)
def test_unlisted_keys_are_dropped(lines: Lines, key: str) -> None:
    """However they are passed."""
    structlog.get_logger().info("x", **{key: CANARY})
    structlog.get_logger().bind(**{key: CANARY}).info("x")
    with structlog.contextvars.bound_contextvars(**{key: CANARY}):
        structlog.get_logger().info("x")
    assert [list(line) for line in lines()] == [["at", "level", "event"]] * 3


@pytest.mark.parametrize("key", sorted(logs.ALLOWED))
def test_allowed_keys_hold_short_plain_values(lines: Lines, key: str) -> None:
    """Structures and objects are replaced by their type's name."""
    log = structlog.get_logger()
    for value in ({"email": CANARY}, [CANARY], Unprintable(), ValueError(CANARY), CANARY.encode()):
        log.info("x", **{key: value})
    log.info("x", **{key: "y" * 5000})
    *structures, text = (line[key] for line in lines())
    assert structures == ["<dict>", "<list>", "<Unprintable>", "<ValueError>", "<bytes>"]
    assert text == "y" * logs.TEXT_CHARACTERS_MAX


def test_bound_ids_are_on_every_line(lines: Lines) -> None:
    """What is bound for a request is on each of its lines."""
    with structlog.contextvars.bound_contextvars(request_id="req_1"):
        structlog.get_logger().info("x")
    assert lines()[0]["request_id"] == "req_1"


@pytest.mark.parametrize("value", ["\ud800", 2**70, float("nan"), "a\nb\r\0\u2028"])
def test_strange_values_never_break_a_line(lines: Lines, value: object) -> None:
    """Logging never fails, and never makes two lines of one."""
    structlog.get_logger().info("x", code=value)
    assert len(lines()) == 1


@pytest.mark.parametrize("how", ["exception", "instance", "tuple", "stdlib", "asyncio"])
def test_exceptions_are_logged_without_messages(lines: Lines, how: str) -> None:
    """Types and places of the error and its causes; no message, no value."""
    log, library = structlog.get_logger(), logging.getLogger("library")
    try:
        broken(CANARY)
    except RuntimeError as error:
        match how:
            case "exception":
                log.exception("x")
            case "instance":
                log.error("x", exc_info=error)  # noqa: TRY400 - one of both ways
            case "tuple":
                log.error("x", exc_info=(type(error), error, error.__traceback__))  # noqa: TRY400 - both ways
            case "stdlib":
                library.exception("failed: %s", error)
            case _:
                context = {"message": "Task failed", "exception": error, "task": Unprintable()}
                loop = asyncio.new_event_loop()
                loop.default_exception_handler(context)
                loop.close()
    (line,) = lines()
    assert line["error_type"] == "RuntimeError"
    trace = line["traceback"]
    assert isinstance(trace, list)
    assert trace[0].startswith("tests/test_logs.py:") or "/tests/test_logs.py:" in trace[0]
    assert trace[1].endswith(":broken")
    assert trace[2] == "from ValueError"
    assert line["level"] == "error"
    assert "canary" not in json.dumps(lines())


def test_exception_groups_and_cycles_end(lines: Lines) -> None:
    """A task group's errors are named; cyclic causes and deep recursion end."""

    def deep() -> None:
        deep()

    log = structlog.get_logger()
    for error in (ExceptionGroup(CANARY, [KeyError(CANARY), TypeError(CANARY)]), circle()):
        log.error("x", exc_info=error)
    try:
        deep()
    except RecursionError:
        log.exception("x")
    group, circular, recursion = (line["traceback"] for line in lines())
    assert group == ["from KeyError", "from TypeError"]
    assert isinstance(circular, list)
    assert len(circular) == logs.CAUSES_MAX
    assert isinstance(recursion, list)
    assert len(recursion) == logs.FRAMES_MAX
    assert "canary" not in json.dumps(lines())


def circle() -> Exception:
    """Return an error that, by a detour, came from itself."""
    one, two = ValueError(CANARY), TypeError(CANARY)
    one.__cause__, two.__cause__ = two, one
    return one


def test_exc_info_without_an_error(lines: Lines) -> None:
    """A traceback without an exception is no error."""
    structlog.get_logger().error("x", exc_info=True)
    assert list(lines()[0]) == ["at", "level", "event"]


@pytest.mark.parametrize(
    ("name", "message", "event"),
    [
        ("_granian", f"Listening at: {CANARY}", "Listening at"),
        ("granian.access", "[%(time)s] %(path)s", "a line of a library"),
        ("asyncio", f"Exception in callback f({CANARY!r})", "Exception in callback f"),
        (
            "asyncio",
            f"Task exception was never retrieved\nfuture: <{CANARY}>",
            "Task exception was never retrieved",
        ),
        ("asyncio", "Executing %s took %.3f seconds", "Executing"),
        ("litestar", f"nobody is {CANARY}", "a line of a library"),
        ("asynciofake", CANARY, "a line of a library"),
    ],
)
def test_library_messages_are_cut_at_the_first_value(
    lines: Lines, name: str, message: str, event: str
) -> None:
    """Of unknown libraries only the place is logged."""
    arguments = (CANARY, 1.5) if "%s took" in message else ()
    logging.getLogger(name).warning(message, *arguments)
    (line,) = lines()
    assert (line["event"], line["level"], line["logger"]) == (event, "warning", name)
    assert str(line["place"]).endswith(":test_library_messages_are_cut_at_the_first_value")
    assert "canary" not in json.dumps(line)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Starting granian (main PID: 7)", {"event": "Starting granian", "pid": 7}),
        ("Listening at: http://127.0.0.1:8000", {"event": "Listening", "port": 8000}),
        ("Listening at: http://[::1]:8000", {"event": "Listening", "port": 8000}),
        ("Spawning worker-1 with PID: 42", {"event": "Spawning worker-1", "pid": 42}),
    ],
)
def test_a_process_has_its_numbers(lines: Lines, message: str, shown: dict[str, object]) -> None:
    """Where Granian's line is about one: without it, the line would end in the middle."""
    logging.getLogger("_granian").warning(message)
    (line,) = lines()
    assert {name: line.get(name) for name in shown} == shown


def test_library_extras_are_ignored(lines: Lines) -> None:
    """Only a record's text is used."""
    logging.getLogger("asyncio").warning("words", extra={"email": CANARY, "code": CANARY})
    assert "canary" not in json.dumps(lines())


def test_granian_keeps_our_form(lines: Lines) -> None:
    """Granian's own set-up adds no second form of lines."""
    before = [(name, logging.getLogger(name)) for name in ("_granian", "granian.access")]
    kept = [(log, log.level, log.handlers[:], log.propagate) for _, log in before]
    granian.log.configure_logging(granian.log.LogLevels.info, dict(logs.GRANIAN_LOGGING))
    logging.getLogger("_granian").info("Shutting down")
    assert [line["event"] for line in lines()] == ["Shutting down"]
    for log, level, handlers, propagate in kept:
        log.level, log.handlers, log.propagate = level, handlers, propagate


def test_levels_below_the_limit_are_dropped(lines: Lines) -> None:
    """From every logger."""
    structlog.get_logger().debug("x")
    logging.getLogger("asyncio").debug("x")
    assert lines() == []


class Full(io.BytesIO):
    """A full disk."""

    def write(self, _data: object) -> int:
        """Fail."""
        raise OSError(28, "No space left on device")


def test_an_unwritable_stream_fails_no_request(lines: Lines) -> None:
    """A full disk or a closed stream."""
    closed = io.BytesIO()
    closed.close()
    for stream in (Full(), closed):
        logs.configure("info", stream)
        structlog.get_logger().info("x")
        logging.getLogger("asyncio").warning("x")
    assert lines() == []


def test_tests_can_listen(lines: Lines) -> None:
    """Structlog's capture works on loggers that were used before it, and cached."""
    structlog.configure(cache_logger_on_first_use=True)
    log = structlog.get_logger()
    log.info("before")
    with structlog.testing.capture_logs() as captured:
        log.info("within", count=1)
    log.info("after")
    assert captured == [{"event": "within", "count": 1, "log_level": "info"}]
    assert [line["event"] for line in lines()] == ["before", "after"]


def test_a_log_line_is_cheap(lines: Lines) -> None:
    """A request's line costs 8 microseconds (the goal is 15): 84 of them take less than 5 ms."""
    log, written = structlog.get_logger(), 0

    def write() -> None:
        nonlocal written
        for _ in range(84):
            log.info(
                "request",
                request_id="req_01jnz3v7k8m9q2r4s6t8w0x2y4",
                method="POST",
                route="/v1/claims",
                status=201,
                duration_ms=3.215,
                partner_id="prt_01jnz3v7k8m9q2r4s6t8w0x2y4",
                key_id="key_01",
                mode="live",
            )
            written += 1

    assert share(five_milliseconds(), write) <= 1
    assert len(lines()) == written


def log_calls() -> Iterator[tuple[str, ast.Call]]:
    """Yield every call of a logger in our sources, with its place."""
    for folder in ("service", "projections", "migrations"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "_log"), attr=name)):
                        if name in METHODS:
                            yield f"{path.relative_to(ROOT)}:{node.lineno}", node


OTHERWISE = {"pid", "span_id", "trace_id"}
"""Keys that no call of a logger gives: of a line of Granian's, and of a trace."""


def test_our_events_and_keys_are_allowed() -> None:
    """Events are literals, and the list has the keys that are given: a dropped one helps nobody."""
    wrong: list[str] = []
    given = set(OTHERWISE)
    for place, call in log_calls():
        match call.args:
            case [ast.Constant(value=str())]:
                pass
            case _:
                wrong.append(f"{place}: the event is not one string literal")
        keys = {keyword.arg for keyword in call.keywords} - {"exc_info"}
        wrong += [f"{place}: {key} is not in logs.ALLOWED" for key in keys - logs.ALLOWED]
        given |= keys
    assert (wrong, logs.ALLOWED - given) == ([], set())
