"""Options that several commands have."""

import click

from service.facts.caller import LEDGERS

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
"""For commands without an installation; `team_command` gives it to the others."""

ledger_option = click.option("--ledger", type=click.Choice(LEDGERS), help="Only this ledger.")
"""For commands that otherwise work on every ledger."""
