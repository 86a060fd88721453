"""Drills make a network of machines, and so need one of their own to make it in (`just drill`)."""

import os

import pytest

from tests.drills.machines import lay_network

if os.environ.get("DRILLS") == "on":
    lay_network()
else:
    # Not collected by `just test`, which has neither the minutes nor the rights.
    collect_ignore_glob = ["test_*.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `--rounds` choose how often a primary is lost."""
    parser.addoption("--rounds", type=int, default=10, help="how often the primary is lost")
