"""The files of exports and receipts: written atomically, and never over another by accident."""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

import click

from service.cli.audit.faults import archive_needed
from service.cli.faults import one_line
from service.cli.terminal import warn
from service.cli.verdict import Fields, Findings
from service.core.counted import counted
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.checkpoints.stored import KeyMissing
from service.evidence.export.export_writer import Signed
from service.evidence.export.format import (
    LINE_BYTES_MAX,
    EvidenceFault,
    Line,
    encode,
    open_checkpoint,
)
from service.ledger.following.status import read_only
from service.ledger.sequencer import Sequencer

_BEGINS_BYTES: Final = 64


def refuse_nameless(
    _context: click.Context, _param: click.Parameter, path: Path | None
) -> Path | None:
    """Fail on an empty path, which would mean the current directory, and on that of stdout."""
    if path == Path():
        raise click.BadParameter("expected the name of a file")
    if path == Path("-"):
        raise click.BadParameter("it is written to a file, never to stdout: - names no file")
    return path


out_option = click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    callback=refuse_nameless,
    help="The file to write.",
)
force_option = click.option("--force", is_flag=True, help="Overwrite an existing file.")


def write_whole(file: BinaryIO, line: Line) -> None:
    """Write the one line of a file; raises ClickException where no reader would take it."""
    raw = encode(line)
    if len(raw) > LINE_BYTES_MAX:
        size = f"the proof would have {len(raw):,} bytes, and a file may have {LINE_BYTES_MAX:,}"
        raise click.ClickException(size)
    file.write(raw)


@contextmanager
def written(path: Path, *, force: bool, mode: int = 0o666) -> Generator[BinaryIO]:
    """Open a file that gets its name, flushed, at the end of the context, but not on an error.

    `mode` has the permissions that it is made with, less those that the umask withholds.

    Raises ClickException if the file exists or cannot be written, and UsageError for anything but a
    regular file: a rename would replace a device, a pipe or a link.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _refuse_special(path)
        if path.exists() and not force:
            raise _refused(path)
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if force:
            _refuse_special(path)
            temporary.replace(path)
        else:
            os.link(temporary, path)  # unlike a rename, it replaces no file created meanwhile
    except FileExistsError as error:
        raise _refused(path) from error
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


async def signed_checkpoint(
    checkpoints: Checkpoints, covers: int | None = None, advice: str = ""
) -> Signed:
    """Return a checkpoint of the log as it is now, or the newest one if it `covers` that many.

    If no key signs, or PostgreSQL takes no writes, return the newest stored one, and warn of what
    it does not cover. Raises ClickException if there is none, or none that covers enough, with
    `advice` on what to do; and EvidenceFault if none of our keys signed the stored one.
    """
    latest = await checkpoints.latest()
    if latest is not None and checkpoints.keys:
        open_checkpoint(latest[1], checkpoints.keys, "the stored checkpoint")
    if latest is not None and covers is not None and latest[0].size >= covers:
        return await _full(checkpoints, *latest)
    refused = await read_only(checkpoints.ledger)
    if refused is None:
        try:
            with archive_needed():
                made = await checkpoints.make()
            return await _full(checkpoints, made.checkpoint, made.note)
        except KeyMissing as error:
            refused = str(error)
    if latest is None:
        raise click.ClickException(f"there is no checkpoint, and {refused}")
    size = latest[0].size
    if covers is not None:
        message = f"the newest checkpoint has {size} events of {covers}, and {refused}{advice}"
        raise click.ClickException(message)
    if unsigned := await unsigned_events(checkpoints, size):
        warn(f"{counted(unsigned, 'event')} after the newest checkpoint left out: {refused}")
    return await _full(checkpoints, *latest)


async def unsigned_events(checkpoints: Checkpoints, size: int) -> int:
    """Return how many events a log has beyond a size, those without a number included."""
    lag = await Sequencer(checkpoints.ledger).lag()
    return max(0, lag.size + lag.waiting - size)


async def _full(checkpoints: Checkpoints, checkpoint: Checkpoint, note: str) -> Signed:
    """Return a checkpoint with what others have signed of it so far."""
    return Signed(checkpoint, await checkpoints.full_note(note))


def refuse_kind(path: Path, kind: str, remedy: str) -> None:
    """Raise UsageError for a file of the other kind, `export` or `receipt`.

    Also for a pipe or a device: it may never say anything, and a file is read more than once.
    """
    if not path.is_file():
        raise click.UsageError(f"{path} is not a regular file")
    with one_line(OSError, before=f"{path}: "), path.open("rb") as file:
        begins = file.read(_BEGINS_BYTES)
    if begins.startswith(f'{{"format":"claim-ledger {kind} v'.encode()):
        article = "an" if kind == "export" else "a"
        raise click.UsageError(f"{path}: this is {article} {kind}, {remedy}")


def finding(ledger: str, fault: EvidenceFault | LedgerForked) -> Fields:
    """Return the fault because of which no evidence of a ledger was written."""
    position: int | None = getattr(fault, "position", None)
    answer = {"ok": False, "ledger": ledger, "position": position, "fault": str(fault)}
    return Findings(answer, f"{ledger}: {fault}")


def _refuse_special(path: Path) -> None:
    if path.is_symlink() or (path.exists() and not path.is_file()):
        kind = "a symbolic link" if path.is_symlink() else "not a regular file"
        raise click.UsageError(f"{path} is {kind}, and is left as it is")


def _refused(path: Path) -> click.ClickException:
    return click.ClickException(f"{path} already exists; --force overwrites it")
