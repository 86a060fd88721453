"""The signatures of others that a checkpoint is required to have, and those that it has."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from service.evidence.countersigners import Countersigners
from service.evidence.policy import Policy
from service.evidence.time_stamp import TimeAnchor, stamped_before
from service.evidence.verdict import Countersigned


class Demands(NamedTuple):
    """A policy of witnesses, and certificates under which an authority must have stamped it."""

    policy: Policy | None = None
    anchors: Sequence[TimeAnchor] = ()

    @property
    def countersigners(self) -> Countersigners:
        """Those whose signatures can be required ones."""
        witnesses = self.policy.keys if self.policy is not None else ()
        return Countersigners(witnesses, anchors=self.anchors)

    def met_by(self, note: str, size: int) -> Countersigned:
        """Return which required signatures a checkpoint's note has; raises NoteInvalid if too few.

        It also raises NoteInvalid if a signature by one of the required keys does not hold.
        """
        signers = None if self.policy is None else sorted(self.policy.demand(note))
        before = stamped_before(note, self.anchors) if self.anchors else None
        return Countersigned(size, signers, before)


NO_DEMANDS: Final = Demands()
