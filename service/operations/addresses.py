"""The paths of what operators and load balancers ask for."""

from typing import Final

LIVE: Final = "/health/live"
READY: Final = "/health/ready"
"""Public, for load balancers."""

METRICS: Final = "/metrics"
HEALTH: Final = "/health"
"""Of the operations listener."""
