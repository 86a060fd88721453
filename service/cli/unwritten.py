"""What a command says where its answer cannot be printed, such as on a full disk."""

import os
import sys

import click


class Unwritten(Exception):
    """An answer could not be printed. `str()` says why."""


def tell(error: Unwritten) -> None:
    """Say so on stderr, and have Python not try again as it ends."""
    lost = "What the command has done is done; replace a secret that it would have shown."
    click.echo(f"Error: the answer could not be written: {error}. {lost}", err=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
