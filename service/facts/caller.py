"""Who is calling: what authentication knows, and all that a command needs of it."""

from typing import Final, Literal, NamedTuple

from service.ledger.events import Cause

Mode = Literal["live", "test"]
MODES: Final[tuple[Mode, ...]] = ("live", "test")
LEDGERS: Final = ("accounts", *MODES)
"""The names of the ledgers: that of accounts, and one for each mode."""


class Caller(NamedTuple):
    """A partner's server, authenticated by one of its keys."""

    partner_id: str
    key_id: str
    mode: Mode
    sandbox_epoch: int
    return_link: bool
    suppress_email: bool
    request_id: str

    @property
    def cause(self) -> Cause:
        """The cause to record with this request's events: who and why (decision 7)."""
        return Cause(f"partner:{self.partner_id}/{self.key_id}", self.request_id)

    @property
    def epoch(self) -> int:
        """The sandbox's epoch, part of every derived stream id; always 0 in live mode."""
        return self.sandbox_epoch if self.mode == "test" else 0
