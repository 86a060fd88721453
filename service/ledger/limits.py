"""How long work with PostgreSQL may take, and which limits the server enforces.

With only a deadline of ours, the server would continue to work for a caller that has gone. So each
session has its own limits, which end a wait for a lock first and then the statement.
"""

from typing import Final, NamedTuple, Self

DEADLINE_SECONDS: Final = 1.5
"""For one piece of a request's work with the database, waiting for a connection included.

Every endpoint has to answer within two seconds while PostgreSQL is away. The remaining half second
is for the answers themselves, when a busy machine gives up many requests at once.
"""
BACKGROUND_SECONDS: Final = 120.0
"""For a piece of background work that names no deadline of its own."""
BACKGROUND_LOCK_SECONDS: Final = 10.0
"""How long background work waits for a lock."""
IDLE_SECONDS: Final = 10.0
"""How long a transaction may stand open between two statements."""


class Limits(NamedTuple):
    """Time limits of a pool's work, in seconds: the caller's deadline, a lock, a statement.

    If a caller's statement began at once, it ends before the caller's own deadline.
    """

    deadline: float
    lock: float
    statement: float

    @classmethod
    def of_requests(cls, deadline: float) -> Self:
        """Return the limits of a request's reads or writes."""
        return cls(deadline, lock=0.6 * deadline, statement=0.8 * deadline)

    @classmethod
    def of_background(cls, deadline: float) -> Self:
        """Return the limits of work that no request waits for."""
        return cls(deadline, lock=BACKGROUND_LOCK_SECONDS, statement=deadline)

    @property
    def settings(self) -> dict[str, str]:
        """The limits as settings of a session, with what makes the server notice a lost client."""
        return {
            "lock_timeout": _setting(self.lock),
            "statement_timeout": _setting(self.statement),
            "idle_in_transaction_session_timeout": _setting(IDLE_SECONDS),
            "client_connection_check_interval": "1s",
            "tcp_keepalives_idle": "5",
            "tcp_keepalives_interval": "2",
            "tcp_keepalives_count": "3",
            "tcp_user_timeout": "11s",
        }


def local_limits(deadline: float) -> str:
    """Return the statements that give a transaction the limits of its own deadline.

    Between two statements it may wait for others as long: for a mail server, or a terminal.
    """
    limits = {
        "lock_timeout": BACKGROUND_LOCK_SECONDS,
        "statement_timeout": deadline,
        "idle_in_transaction_session_timeout": deadline + 1,
    }
    return "; ".join(f"set local {name} = '{_setting(value)}'" for name, value in limits.items())


def _setting(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"
