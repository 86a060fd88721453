"""Asking a person before what cannot be undone."""

import sys

import click


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person, and abort unless the answer is yes; a program has to say --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("It cannot be undone: give --yes where nobody can be asked.")
    click.confirm(question, abort=True, err=True)
