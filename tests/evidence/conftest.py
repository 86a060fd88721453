"""Fixtures of a ledger's parts: a wired service whose log is numbered by hand."""

from tests.evidence.checkpointing import add, attack, checkpoints, place
from tests.evidence.evidence_world import keyed, told_history
from tests.evidence.scene import owner_connection
from tests.evidence.sealed_log import log
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
    "time",
    "told_history",
    "watched",
    "witnesses",
]
