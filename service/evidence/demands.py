"""What others have to have signed of a checkpoint, and what they have."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from service.evidence.policy import Policy
from service.evidence.time_stamp import TimeAnchor, stamped_before
from service.evidence.verdict import Countersigned


class Demands(NamedTuple):
    """A policy of witnesses, and certificates under which an authority has to have stamped it."""

    policy: Policy | None = None
    anchors: Sequence[TimeAnchor] = ()

    def met_by(self, note: str, size: int) -> Countersigned:
        """Return what the note of a checkpoint has of it; raises NoteInvalid if that is too little.

        So does a signature by a key that is asked for and does not hold.
        """
        signers = None if self.policy is None else sorted(self.policy.demand(note))
        before = stamped_before(note, self.anchors) if self.anchors else None
        return Countersigned(size, signers, before)


NO_DEMANDS: Final = Demands()
