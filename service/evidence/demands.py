"""What others have to have signed of a checkpoint, and what they have."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from service.evidence.policy import Policy
from service.evidence.time_stamp import TimeAnchor, stamped_before


class Countersigned(NamedTuple):
    """What others have signed of a checkpoint of a size, as far as it was demanded.

    `witnesses` have cosigned it, by their names in the policy; all that it covers `existed_before`
    a time of an authority's clock.
    """

    size: int | None = None
    witnesses: list[str] | None = None
    existed_before: datetime | None = None


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
