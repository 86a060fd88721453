"""What `claim-ledger dev` prints once the service is ready."""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from service.cli.dev.state import PEOPLE
from service.core.clock import system_clock

_WELCOME = """\
claim-ledger is running (Ctrl-C stops it).

  API          {base_url}
  reference    {public_url}/docs
  live key     {live_key}
  test key     {test_key}
  partner      {partner_id}
  entity       {entity_id} (live, connected)
  sandbox      {sandbox[connected_entity_id]} (connected)
               {sandbox[disconnected_entity_id]} (disconnected)
               {sandbox[unconnected_entity_id]} (never connected)
  pages        {public_url} (sign in by the link in the mail, as one of these)
               {people[customer]} (the business: /account)
               {people[developer]} (the partner: /console)
               {people[team]} (the service's team: /backoffice)
  mail         {mail_dir}
  documents    {storage_url} (a local store; the README shows an upload)

Create a claim (201):

{create}

Repeat it (200, the same claim):

{create}

List the entity's claims:

{list}
"""


def announce(facts: Mapping[str, Any], storage_url: str) -> None:
    """Print the addresses, ids and keys. A closed stdout is not a fault."""
    text = _WELCOME.format(
        **facts, people=PEOPLE, storage_url=storage_url, create=_create(facts), list=_list(facts)
    )
    _say(text)


def say_goodbye(data_dir: Path) -> None:
    """Print that all has ended, and what is kept."""
    _say(f"Stopped. What you made is kept in {data_dir}: claim-ledger dev goes on with it.")


def _say(text: str) -> None:
    try:
        click.echo(text)
    except OSError:
        # What is left in the buffer would fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _create(facts: Mapping[str, Any]) -> str:
    body = {
        "entity_id": facts["entity_id"],
        # New at each start, so that the first of the printed commands creates a claim.
        "partner_claim_id": f"case-{system_clock():%Y%m%d-%H%M%S}",
        "defendant": {"name": "Debtor Ltd"},
        "invoices": [
            {"number": "INV-1", "total_amount_for_invoice": "1250.00", "due_date": "2026-01-31"}
        ],
        "message": "The invoice is unpaid.",
    }
    return (
        f"{_curl(facts)} {facts['base_url']}/claims"
        f" -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body))}"
    )


def _list(facts: Mapping[str, Any]) -> str:
    address = f"{facts['base_url']}/claims?entity_id={facts['entity_id']}"
    return f"{_curl(facts)} {shlex.quote(address)}"


def _curl(facts: Mapping[str, Any]) -> str:
    header = f"Authorization: Bearer {facts['live_key']}"
    return f"curl -sS -w '\\n' -H {shlex.quote(header)}"
