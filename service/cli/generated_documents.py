"""Documents generated from code: the command line, the settings, the list of events, the OpenAPI.

`python -m service.cli.generated_documents` writes them; a test compares them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from service.app.settings import settings_table
from service.cli import cli
from service.facts.catalogue import catalogue_document
from service.partner_api.docs.openapi import document
from service.partner_api.docs.postman import collection
from service.partner_api.endpoints import endpoints_of
from service.partner_api.gate import API_PATH
from service.partner_api.routes import partner_handlers

_COMMANDS: Final = """\
# The command line

Generated from the commands by `just docs`; a test compares the two.

`dev`, `serve`, `worker` and `migrate` run the service, and `health` checks whether it works. `mcp`
serves an assistant over the Model Context Protocol: the sandbox's operations as tools, and the
reference as resources.

All other commands are for the service's team.

**Common options.** `--json` prints one JSON object, also for refusals and usage errors. Every
command accepts it, except `dev`, `serve`, `worker` and `mcp`. The team's commands have two more:
`--data-dir PATH` works on the running `claim-ledger dev` of that directory, and `--as EMAIL`
names the person who runs the command.

**Which installation.** Without `--data-dir`, a command works on the installation that the
environment names: the URLs of the three ledgers (`CLAIM_LEDGER_ACCOUNTS_DATABASE_URL` and so on),
`CLAIM_LEDGER_MASTER_KEYS` and `CLAIM_LEDGER_PUBLIC_URL` ([settings](settings.md)). `audit verify`
needs the URLs alone. `audit check`, `audit keygen` and `keys-at-rest keygen` need no installation.

**Who runs it.** The person must be a member of the team at that moment. The command's events name
them as `staff:<staff id>`; a command that only reads, or changes no fact, leaves no record. The
default of `--as` is `CLAIM_LEDGER_STAFF`, and on a `dev` its own member of the team. `staff add`
needs nobody while the team is empty, and then records `system:installation`. `audit check`,
`audit keygen`, `audit verify` and `keys-at-rest keygen` name nobody.

**Output and exit codes.** A command that checks something begins with a verdict: `OK: …` (exit
code 0), `WRONG: …` (1), or `NOT JUDGED: …` (3). The last is of a standby that has not replayed all
that was published: nothing is wrong with what it has, and whether the rest is late or lost, only
the primary shows. A refusal exits with 1: it is one line on stderr, or with `--json` the error
envelope on stdout. A usage error exits with 2.
"""
_SETTINGS: Final = """\
# Settings

Generated from `service/app/settings.py` by `just docs`; a test compares the two.

Settings are environment variables, read once at the start. All faults are reported together,
unknown `CLAIM_LEDGER_` variables among them; secrets are never printed. `migrate` needs
`DATABASE_URL` and `MASTER_KEYS`, and lets the logins of the ledgers' URLs log in. The team's
commands need the ledgers' URLs, `MASTER_KEYS` and `PUBLIC_URL`; `serve` and `worker` also need
`SMTP_URL`. `dev` makes its own settings and takes over `RATE_LIMIT_PER_MINUTE` and
`REDIS_URL`. It refuses to start if the environment configures buckets, because it keeps documents
in a local store.

A secret can stand in a file instead, which the variable with `_FILE` names: as a Kubernetes secret
that is mounted (`defaultMode: 0440` and an `fsGroup` of the service's), or a credential of systemd
(`LoadCredential=master-keys:/etc/claim-ledger/master-keys` and
`Environment=CLAIM_LEDGER_MASTER_KEYS_FILE=%d/master-keys`). Nobody but root and the service's user
may be able to change the file, and others may not read it: its mode is 0400, 0440 or 0600. White
space around the value is dropped. The file is read once, at the start; setting both is a fault.

A setting that had another name in an earlier release names it below ("formerly"). The old name
works for one release, with a warning; setting both is a fault unless they are equal.

"""
_FOR_CLIENTS: Final = "The guide is at `/docs` of the service, beside the reference."
_EVENTS: Final = "## The events\n\n"
"""In docs/events.md the catalogue follows this heading."""


def documents() -> dict[Path, str]:
    """Return the text of each document by its path."""
    docs = Path("docs")
    events = docs / "events.md"
    described = _described()
    return {
        docs / "cli.md": _COMMANDS + "".join(_tables()),
        docs / "settings.md": _SETTINGS + settings_table(),
        events: "".join(events.read_text().partition(_EVENTS)[:2]) + catalogue_document(),
        Path("clients") / "openapi.json": _json(described),
        Path("clients") / "postman" / "collection.json": _json(collection(described)),
    }


def _described() -> dict[str, Any]:
    """Return the document that client libraries are generated from."""
    endpoints = endpoints_of(partner_handlers({}))
    return document(endpoints, f"https://api.example.com{API_PATH}", _FOR_CLIENTS)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def commands(group: click.Group, path: str = "claim-ledger") -> Iterator[tuple[str, click.Command]]:
    """Yield each command, but no group, under its full name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None  # noqa: S101 - it is listed
        below = f"{path} {name}"
        if isinstance(command, click.Group):
            yield from commands(command, below)
        else:
            yield below, command


def _tables() -> Iterator[str]:
    """Yield a section for the commands that run the service, and one for each group."""
    found = list(commands(cli))
    alone = [one for one in found if one[0].count(" ") == 1]
    yield _table("The service", "", alone)
    for name, group in cli.commands.items():
        if isinstance(group, click.Group):
            below = [one for one in found if one[0].startswith(f"claim-ledger {name} ")]
            yield _table(f"`{name}`", f"{group.help}\n\n", below)


def _table(title: str, text: str, listed: list[tuple[str, click.Command]]) -> str:
    rows = "".join(f"{_row(path, command)}\n" for path, command in listed)
    return f"\n## {title}\n\n{text}| command | what it does |\n|---|---|\n{rows}"


def _row(path: str, command: click.Command) -> str:
    context = click.Context(command)
    words = [path]
    # Only the first paragraph: `--help` shows the others.
    notes = [" ".join((command.help or "").partition("\n\n")[0].split())]
    team = any(param.name == "as_json" for param in command.params)
    shared = {"as_json", "data_dir", "person"} if team else set[str]()
    for param in command.params:
        if isinstance(param, click.Argument):
            words.append(param.make_metavar(context))
        elif isinstance(param, click.Option) and param.name not in shared:
            word = _usage(param, context)
            words.append(word if param.required else f"[{word}]")
            default = f" (default `{param.default}`)" if param.show_default else ""
            notes += [f"`{param.opts[0]}`: {param.help}{default}"] if param.help else []
    usage = " ".join(words).replace("|", "\\|")  # in a table a bar ends the cell, in code too
    return f"| `{usage}` | {'<br>'.join(notes)} |"


def _usage(option: click.Option, context: click.Context) -> str:
    names = "/".join([*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} {option.make_metavar(context)}"


if __name__ == "__main__":
    for path, text in documents().items():
        path.write_text(text)
