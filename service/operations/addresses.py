"""Where operators and load balancers ask: paths, and a process of this machine."""

from typing import Final

LIVE: Final = "/health/live"
READY: Final = "/health/ready"
"""Public, for load balancers."""

METRICS: Final = "/metrics"
HEALTH: Final = "/health"
"""Of the operations listener."""

_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound here


def reached_at(host: str) -> str:
    """Return where this machine reaches a process that listens on `host`, which may be all."""
    return _ANY.get(host, host)
