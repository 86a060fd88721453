"""Files that exports and receipts are written to: whole or not at all, and never over another."""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from service.cli.audit.faults import archive_needed
from service.cli.target import Findings

if TYPE_CHECKING:
    from service.evidence.checkpoints.signing import Checkpoints, LedgerForked
    from service.evidence.export.export_writer import Signed
    from service.evidence.export.format import EvidenceFault

_BEGINS_BYTES: Final = 64


class NewFile(click.Path):
    """The name of a file to write."""

    def convert(
        self,
        value: "str | os.PathLike[str]",
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401 - as click declares it
        """Return the path; fails on an empty one, which would be the present directory."""
        if not os.fspath(value):
            self.fail("expected the name of a file", param, ctx)
        return super().convert(value, param, ctx)


out_option = click.option(
    "--out",
    required=True,
    type=NewFile(dir_okay=False, path_type=Path),
    help="The file to write.",
)
force_option = click.option("--force", is_flag=True, help="Write over a file that is there.")


@contextmanager
def written(path: Path, *, force: bool) -> Generator[BinaryIO]:
    """Open a file that appears under its name at the end, flushed; on an error it does not.

    Raises ClickException where the file exists, or cannot be written, and UsageError for what is no
    regular file: a rename would put one in the place of a device, a pipe or a link.
    """
    _refuse_special(path)
    if path.exists() and not force:
        raise _refused(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if force:
            _refuse_special(path)
            temporary.replace(path)
        else:
            os.link(temporary, path)  # unlike a rename, over no file that came meanwhile
    except FileExistsError as error:
        raise _refused(path) from error
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


async def signed_checkpoint(checkpoints: "Checkpoints", covers: int | None = None) -> "Signed":
    """Return a checkpoint of the log as it is now, or any that has so many events.

    Where no key signs, the newest stored one. Raises ClickException where there is none, or none
    that goes far enough, and EvidenceFault where a stored one is signed by none of our keys.
    """
    from service.evidence.checkpoints.signing import KeyMissing
    from service.evidence.export.export_writer import Signed
    from service.evidence.export.format import open_checkpoint

    latest = await checkpoints.latest()
    if latest is not None and checkpoints.keys:
        open_checkpoint(latest[1], checkpoints.keys, "the stored checkpoint")
    if latest is not None and covers is not None and latest[0].size >= covers:
        return Signed(*latest)
    try:
        with archive_needed():
            made = await checkpoints.make()
    except KeyMissing as error:
        if latest is None:
            raise click.ClickException(f"there is no checkpoint, and {error}") from error
        if covers is not None:
            message = f"the newest checkpoint has {latest[0].size} events of {covers}, and {error}"
            raise click.ClickException(message) from error
        return Signed(*latest)
    return Signed(made.checkpoint, made.note)


def refuse_kind(path: Path, kind: str, remedy: str) -> None:
    """Refuse a file of the other kind, `export` or `receipt`: that is wrong usage, no finding."""
    try:
        with path.open("rb") as file:
            begins = file.read(_BEGINS_BYTES)
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror or error}") from error
    if begins.startswith(f'{{"format":"claim-ledger {kind} v'.encode()):
        article = "an" if kind == "export" else "a"
        raise click.UsageError(f"{path}: this is {article} {kind}, {remedy}")


def finding(ledger: str, fault: "EvidenceFault | LedgerForked") -> dict[str, Any]:
    """Return what is wrong with a ledger, so that no evidence of it was written."""
    position: int | None = getattr(fault, "position", None)
    return Findings({"ok": False, "ledger": ledger, "position": position, "fault": str(fault)})


def _refuse_special(path: Path) -> None:
    if path.is_symlink() or (path.exists() and not path.is_file()):
        kind = "a symbolic link" if path.is_symlink() else "no regular file"
        raise click.UsageError(f"--out: {path} is {kind}, and is left as it is")


def _refused(path: Path) -> click.ClickException:
    return click.ClickException(f"{path} is there already; --force writes over it")
