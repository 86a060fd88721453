"""`claim-ledger staff`: who of the people that sign in belongs to the service's team."""

from typing import Any

import click

from service.cli.target import Target, team_command
from service.core.clock import timestamp
from service.core.errors import invalid


@click.group()
def staff() -> None:
    """The service's team: the addresses that may use the back office."""


@staff.command()
@click.argument("email")
@team_command
async def add(target: Target, email: str) -> dict[str, Any]:
    """Add an address to the team; adding it twice changes nothing."""
    _check(email)
    return {"staff_id": await target.service.staff.add(email, target.cause), "email": email}


@staff.command()
@click.argument("email")
@team_command
async def remove(target: Target, email: str) -> dict[str, Any]:
    """Remove an address; its sessions can do nothing of the team's from now on."""
    _check(email)
    await target.service.staff.remove(email, target.cause)
    return {"removed": email}


@staff.command(name="list")
@team_command
async def list_(target: Target) -> dict[str, Any]:
    """List everybody of the team."""
    return {
        "staff": [
            {"staff_id": one.staff_id, "email": one.email, "added_at": timestamp(one.added_at)}
            for one in await target.service.staff.list()
        ]
    }


def _check(email: str) -> None:
    from service.http.scalars import email_fault

    fault = email_fault(email)
    if fault is not None:
        raise invalid("email", fault)
