"""Asking a witness to sign a checkpoint (C2SP tlog-witness)."""

import base64
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from service.evidence.checkpoint import Checkpoint
from service.evidence.cosignature import WitnessKey
from service.evidence.note import NoteInvalid, NoteSignature, split_note
from service.http.posting import PostAnswer

ANSWER_BYTES_MAX: Final = 64 * 1024
_SIZE: Final = re.compile(rb"(0|[1-9][0-9]{0,18})\n")
_OK, _CONFLICT, _UNPROCESSABLE = 200, 409, 422
_SIZE_KIND: Final = "text/x.tlog.size"
_WHY: Final = {
    400: "it finds the request malformed",
    403: "it does not know the key that signed",
    404: "it does not know the origin",
}

Post = Callable[[str, str, bytes, int], Awaitable[PostAnswer]]
"""Posts to a URL a body of a type, and returns an answer of at most so many bytes."""


class Declined(Exception):
    """The witness did not sign; `str()` says why, and asking again later may help."""


class Inconsistent(Exception):
    """The witness says that the log does not continue what it signed: there may be a fork."""


class OtherSize(Exception):
    """The witness has signed a checkpoint of another size last."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size: Final = size


def request_body(old_size: int, proof: Sequence[bytes], note: str) -> bytes:
    """Return what a witness is sent."""
    lines = [f"old {old_size}", *(base64.b64encode(one).decode() for one in proof)]
    return ("\n".join(lines) + f"\n\n{note}").encode()


async def cosigned(
    post: Post,
    url: str,
    keys: Sequence[WitnessKey],
    body: bytes,
    checkpoint: Checkpoint,
) -> list[NoteSignature]:
    """Return a witness's cosignatures, verified.

    Raises OtherSize, Inconsistent, Declined, and Unanswered.
    """
    answer = await post(f"{url.rstrip('/')}/add-checkpoint", "text/plain", body, ANSWER_BYTES_MAX)
    if answer.status == _CONFLICT and answer.kind == _SIZE_KIND:
        size = _SIZE.fullmatch(answer.body)
        if size is not None:
            raise OtherSize(int(size[1]))
    if answer.status == _UNPROCESSABLE:
        raise Inconsistent("it finds the checkpoint inconsistent with what it signed before")
    if answer.status != _OK:
        raise Declined(_WHY.get(answer.status, f"it answered {answer.status}"))
    found = _verified(answer.body, keys, "\n".join((*checkpoint.lines, "")))
    if not found:
        raise Declined("it answered without a cosignature by its key")
    return found


def _verified(body: bytes, keys: Sequence[WitnessKey], text: str) -> list[NoteSignature]:
    known = {key.which: key for key in keys}
    try:
        _, signatures = split_note(f"{text}\n{body.decode()}")
        ours = [one for one in signatures if one.key in known]
        for one in ours:
            known[one.key].cosigned_at(text, one.signature)
    except (NoteInvalid, UnicodeDecodeError):
        raise Declined("its cosignature does not hold") from None
    return list({one.key: one for one in ours}.values())
