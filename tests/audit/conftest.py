"""The parts of a ledger's tests: a wired service whose log is numbered by hand."""

from tests.audit.checkpointing import add, attack, checkpoints, place
from tests.audit.scene import owner_connection
from tests.ledger.conftest import accounts, service

__all__ = [
    "accounts",
    "add",
    "attack",
    "checkpoints",
    "owner_connection",
    "place",
    "service",
]
