"""What a command says where its answer cannot be printed, such as on a full disk."""

import os
import sys

import click


class Unwritten(Exception):
    """An answer could not be printed. `str()` says why."""


def tell(error: Unwritten) -> None:
    """Say so on stderr."""
    lost = "What the command has done is done; replace a secret that it would have shown."
    click.echo(f"Error: the answer could not be written: {error}. {lost}", err=True)
    forget()


def forget() -> None:
    """Have Python not try again to write what stdout holds as it ends: it would exit with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
