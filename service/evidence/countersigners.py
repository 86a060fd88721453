"""Whose signatures on checkpoints are known here, and which stored lines are really theirs.

Whoever can write rows can store a line under anybody's name and key id. So a stored line counts
once it has been verified, and not because it is there.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from service.evidence.cosignature import WitnessKey
from service.evidence.note import NoteInvalid, NoteSignature
from service.evidence.time_stamp import TimeAnchor, TimeAuthority

_VERDICTS_KEPT: Final = 1024
"""Lines are read again at each look, and what a line is never changes."""


class Countersigners:
    """Witnesses by their keys, and time-stamping authorities by their certificates."""

    def __init__(
        self,
        witnesses: Iterable[WitnessKey] = (),
        authorities: Sequence[TimeAuthority] = (),
        anchors: Iterable[TimeAnchor] = (),
    ) -> None:
        """`anchors` are certificates of authorities whose names nobody knows beforehand."""
        self._witnesses = {key.which: key for key in witnesses}
        self._anchors = [*(one.anchor for one in authorities), *anchors]
        self.anchors: Final = [one.key for one in self._anchors]
        self.keys: Final = [*self._witnesses, *(one.which for one in authorities)]

    @property
    def columns(self) -> tuple[list[str], list[bytes]]:
        """The names and the ids of the keys that lines can be looked up by."""
        return [name for name, _ in self.keys], [key_id for _, key_id in self.keys]

    def held(self, text: str, lines: Iterable[NoteSignature]) -> list[NoteSignature]:
        """Return the lines of these signers that hold for a note's text."""
        known = [(self._signer(line), line) for line in lines]
        return [line for signer, line in known if signer and _holds(signer, text, line.signature)]

    def sound(self, text: str, lines: Sequence[NoteSignature]) -> list[NoteSignature]:
        """Return the lines without those that pretend to be of these signers.

        Theirs come first: a note has a limited number. Nobody here can verify the others.
        """
        others = [line for line in lines if self._signer(line) is None]
        return [*self.held(text, lines), *others]

    def _signer(self, line: NoteSignature) -> WitnessKey | TimeAuthority | None:
        witness = self._witnesses.get(line.key)
        if witness is not None:
            return witness
        # As verifiers do, under whichever name: `time_stamp.stamped_before`.
        stamps = (TimeAuthority(line.name, anchor) for anchor in self._anchors)
        return next((one for one in stamps if one.which == line.key), None)


NOBODY: Final = Countersigners()


@lru_cache(_VERDICTS_KEPT)
def _holds(signer: WitnessKey | TimeAuthority, text: str, signature: bytes) -> bool:
    try:
        if isinstance(signer, WitnessKey):
            signer.cosigned_at(text, signature)
        else:
            signer.anchor.stamped_at(text, signature)
    except NoteInvalid:
        return False
    return True
