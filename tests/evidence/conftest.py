"""Fixtures of a ledger's parts: a wired service whose log is numbered by hand."""

from collections.abc import Iterator

import pytest

from tests.databases import cloned
from tests.evidence.checkpointing import add, attack, checkpoints, place
from tests.evidence.evidence_world import keyed, told_history
from tests.evidence.scene import owner_connection
from tests.evidence.sealed_log import log, sealed
from tests.evidence.watched import watched
from tests.evidence.witnesses import asking, time, witnesses

__all__ = [
    "add",
    "asking",
    "attack",
    "checkpoints",
    "keyed",
    "log",
    "owner_connection",
    "place",
    "sealed",
    "time",
    "told_history",
    "watched",
    "witnesses",
]

PREPARED = ("sealed", "told_history")
"""Databases that are prepared once in a process, for tests that ask for them by whatever way."""


@pytest.fixture
def database_url(request, postgres_url, template) -> Iterator[str]:
    """Return the owner's URL of a database of this test's own, a clone of what it asks for."""
    asked = [name for name in PREPARED if name in request.fixturenames]
    name = request.getfixturevalue(asked[0])[0] if asked else template
    with cloned(postgres_url, name) as url:
        yield url
