"""Both verifiers in this process, so that hundreds of runs of the second one take seconds."""

import importlib.util
import io
import json
import sys
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cache
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from service.cli.audit.checked import checked
from service.evidence.demands import NO_DEMANDS
from service.evidence.export.export_verifier import verify_export
from service.evidence.export.format import EvidenceFault
from service.evidence.note import NoteInvalid, open_note
from tests.evidence.evidence_world import KEY

SCRIPT = Path("deploy/verify_export.py").resolve()
HOLDS = True, None


def arguments_of(path, *keys, older=None):
    """Return the arguments of the second verifier, the older note in a file beside."""
    arguments = [path]
    for key in keys or (KEY,):
        arguments += ["--public-key", key.public_text]
    if older is not None:
        note = path.with_name("older.txt")
        note.write_text(older)
        arguments += ["--checkpoint", note]
    return [str(one) for one in arguments]


def _loaded():
    spec = importlib.util.spec_from_file_location("verify_export", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.is_signature = cache(module.is_signature)  # in plain Python, it takes milliseconds
    return module


PROGRAM = _loaded()
"""The second verifier in this process, so that hundreds of runs take seconds."""


def second(path, *keys, older=None):
    """Return the exit code and verdict of the second verifier, run in this process."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
        patch.setattr(sys, "argv", [str(SCRIPT), *arguments_of(path, *keys, older=older)])
        code = PROGRAM.main()
    verdict = json.loads(out.getvalue())
    assert code == int(not verdict["ok"])
    return code, verdict


def judged(path, *keys, older=None):
    """Return whether the second verifier takes a file, and the position that it names if not."""
    code, verdict = second(path, *keys, older=older)
    return code == 0, verdict.get("position")


def first(path, older, keys):
    """Return whether our own verifier takes a file, and the position that it names."""
    if path.suffix == ".json":
        try:
            checked(path, keys, older, NO_DEMANDS)
        except EvidenceFault as fault:
            return False, fault.position
        return True, None
    verdict = verify_export(path, keys, older)
    assert verdict.ok == (verdict.fault is None)
    return verdict.ok, verdict.position


def refused(position=None):
    """Return what both say of a file with a fault at a position."""
    return False, position


def agreed(path, content, older):
    """Return what both verifiers say of a file, and fail where they differ."""
    path.write_bytes(content)
    ours, keys = first(path, older, [KEY]), {}
    PROGRAM.parse_key(KEY.public_text, keys)
    with _quick():
        known = None if older is None else PROGRAM.open_checkpoint(older, keys)
        theirs = PROGRAM.verdict_or_fault(io.BytesIO(content), keys, known)
    assert ours == (theirs["ok"], theirs.get("position")), (theirs, content)
    return ours


def opened(note, keys):
    """Return the text of a note as both open it; raises NoteInvalid."""
    known, theirs = {}, None
    for key in keys:
        PROGRAM.parse_key(key.public_text, known)
    with _quick(), suppress(PROGRAM.Fault, *PROGRAM.UNREADABLE):
        theirs = "\n".join((*PROGRAM.open_note(note, known), ""))
    try:
        ours = open_note(note, keys)
    except NoteInvalid:
        assert theirs is None
        raise
    assert ours == theirs
    return ours


@contextmanager
def _quick():
    """Verify signatures quickly: the second verifier's own arithmetic takes milliseconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PROGRAM, "is_signature", _is_signature)
        yield


def _is_signature(public, signature, text):
    """Return the same as the second verifier's own function."""
    with suppress(InvalidSignature, ValueError):
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text)
        return True
    return False
