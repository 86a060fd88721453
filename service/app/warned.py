"""Warnings about settings, each once in a process, which parses its settings more than once."""

import logging
from functools import cache


@cache
def warn_once(message: str) -> None:
    """Log a warning: on stderr where logs are not configured yet."""
    logging.getLogger(__name__).warning(message)
