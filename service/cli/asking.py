"""Asking a person before what cannot be undone, and warning them."""

import sys

import click


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person, and abort unless the answer is yes; a program must pass --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("This cannot be undone: pass --yes where nobody can be asked.")
    click.confirm(question, abort=True, err=True)


def warn(message: str) -> None:
    """Warn a person on stderr; a program finds the same in the answer."""
    if not click.get_current_context().params["as_json"]:
        click.echo(f"Warning: {message}", err=True)
