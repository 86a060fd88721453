"""What a command says where its answer cannot be printed, such as on a full disk."""

import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDOUT = 1


class Unwritten(OSError):
    """What was printed could not be written, other than for a reader that has gone."""


class _Output(io.FileIO):
    """Stdout, whose faults are told from those of other files: they are Unwritten."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            # Others may have made it non-blocking, such as the program that reads it.
            while (written := super().write(data)) is None:
                select.select([], [self], [])
        except OSError as error:
            if error.errno == errno.EPIPE:  # which Click knows
                raise
            raise Unwritten(error.errno, error.strerror) from error
        return written


def watch_output() -> None:
    """Have whatever cannot be written to stdout raise Unwritten: answers, refusals, and help."""
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(_STDOUT, "wb", closefd=False)),
        encoding=sys.stdout.encoding,
        errors=sys.stdout.errors,
        line_buffering=sys.stdout.isatty(),
    )


def tell(error: Unwritten) -> None:
    """Say so on stderr."""
    lost = "What the command has done is done; replace a secret that it would have shown."
    click.echo(f"Error: the answer could not be written: {error.strerror}. {lost}", err=True)
    forget()


def forget() -> None:
    """Have Python not try again to write what stdout holds as it ends: it would exit with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
