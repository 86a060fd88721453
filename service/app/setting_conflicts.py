"""Faults of settings that are valid each by itself, and not together.

A setting that could not be parsed is not in `parsed`: its own fault is told already.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

from service.app.setting import PREFIX
from service.app.transport import is_this_machine
from service.core.extras import extra

_TIME_STAMP: Final = ("TIME_STAMP_URL", "TIME_STAMP_ANCHOR_FILE", "TIME_STAMP_NAME")


def conflicts(parsed: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the settings as a whole, each in a line that names the variable."""
    for check in (_workers, _traces, _hosts, _tiles, _time_stamps, _buckets):
        yield from (f"{PREFIX}{fault}" for fault in check(parsed))


def _workers(parsed: Mapping[str, Any]) -> Iterator[str]:
    if parsed.get("WORKERS", 1) > 1 and "REDIS_URL" in parsed and parsed["REDIS_URL"] is None:
        # Each process would count for itself, and a partner get its limit several times over.
        yield f"WORKERS: more than 1 without {PREFIX}REDIS_URL; expected 1, or a Redis"


def _traces(parsed: Mapping[str, Any]) -> Iterator[str]:
    if parsed.get("OTLP_URL") and find_spec("opentelemetry.sdk") is None:
        yield f"OTLP_URL: {extra('tracing')}"


def _hosts(parsed: Mapping[str, Any]) -> Iterator[str]:
    backoffice, public = parsed.get("BACKOFFICE_URL"), parsed.get("PUBLIC_URL")
    if backoffice and public and not _is_below(backoffice, public):
        # Passkeys of a host hold for the hosts below it, and for no other.
        yield (
            f"BACKOFFICE_URL: expected the scheme and port of {PREFIX}PUBLIC_URL, and a host below "
            "its host"
        )
    if parsed.get("PRIVATE_WEBHOOKS") and public and not is_this_machine(_host_of(public)):
        # Partners choose where webhooks go: they would reach what only the service's network may.
        yield f"PRIVATE_WEBHOOKS: expected `off` where {PREFIX}PUBLIC_URL is not this machine"


def _tiles(parsed: Mapping[str, Any]) -> Iterator[str]:
    tiles, archive = parsed.get("TILES_URL"), parsed.get("ARCHIVE_URL")
    if tiles and (not archive or tiles == archive):
        # Only what is published is written there; and nobody should lock or open both at once.
        yield f"TILES_URL: expected together with {PREFIX}ARCHIVE_URL, and another place"
    if parsed.get("SERVE_TILES"):
        # The logs' paths begin with the names of the keys: without one there is no log to serve.
        for name in ("TILES_URL", "CHECKPOINT_KEYS"):
            if name in parsed and not parsed[name]:
                yield f"SERVE_TILES: expected `off` without {PREFIX}{name}"


def _time_stamps(parsed: Mapping[str, Any]) -> Iterator[str]:
    if all(name in parsed for name in _TIME_STAMP) and any(map(parsed.get, _TIME_STAMP)):
        for name in _TIME_STAMP:
            if not parsed[name]:
                yield f"{name}: expected together with {PREFIX}TIME_STAMP_URL"


def _buckets(parsed: Mapping[str, Any]) -> Iterator[str]:
    live, test = parsed.get("LIVE_BUCKET"), parsed.get("TEST_BUCKET")
    if (live is None) != (test is None) or (live is not None and live == test):
        yield f"TEST_BUCKET: expected together with {PREFIX}LIVE_BUCKET, and another one"


def _is_below(origin: str, other: str) -> bool:
    """Return whether an origin is at a host below that of another one."""
    scheme, _, host = other.partition("://")
    return origin.startswith(f"{scheme}://") and origin.endswith(f".{host}")


def _host_of(origin: str) -> str:
    return urlsplit(origin).hostname or ""
