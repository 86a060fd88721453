"""`claim-ledger staff`: which of the people who sign in belong to the service's team."""

from functools import partial

import click

from service.cli.target import Target, team_command
from service.cli.verdict import Fields, Findings
from service.core.counted import counted
from service.core.errors import invalid
from service.http.scalars import email_fault


@partial(team_command, named="unless-first")
@click.argument("email")
async def add(target: Target, email: str) -> Fields:
    """Add an address to the team. Adding it twice changes nothing.

    While nobody is in the team, `--as` is not needed: whoever installs the service adds the first.
    """
    _check(email)
    return {"staff_id": await target.service.staff.add(email, target.cause), "email": email}


@team_command
@click.argument("email")
async def remove(target: Target, email: str) -> Fields:
    """Remove an address from the team; its open sessions lose access at once."""
    _check(email)
    await target.service.staff.remove(email, target.cause)
    return {"removed": email}


@team_command
async def list_(target: Target) -> Fields:
    """List everyone on the team.

    Rows that no event explains give nobody access. `unexplained` lists their ids, and it exits
    with 1.
    """
    team = await target.service.staff.list()
    answer: Fields = {
        "staff": [member._asdict() for member in team.members],
        "unexplained": team.unexplained,
    }
    if team.unexplained:
        return Findings(answer, f"{counted(len(team.unexplained), 'row')} without an event")
    return answer


def _check(email: str) -> None:
    fault = email_fault(email)
    if fault is not None:
        raise invalid("email", fault)
