"""`claim-ledger dev`, `serve`, `worker` and `migrate`."""

import asyncio
import shlex
import signal
from pathlib import Path

import click

from migrations import migrate as apply_migrations
from service import logs
from service.settings import MIGRATE, SERVE, Settings, SettingsError, given


@click.command()
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--data-dir",
    default=".claim-ledger",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
)
def dev(port: int, data_dir: Path) -> None:
    """Run everything embedded, with a demonstration to try."""
    from service.dev.run import PortTaken, run  # noqa: PLC0415 - only this needs PostgreSQL's wheel
    from service.embedded import EmbeddedPostgresError  # noqa: PLC0415 - as above

    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (data_dir / "service.log").open("ab") as log:
        logs.configure("info", log)
        try:
            run(data_dir, port, given("RATE_LIMIT_PER_MINUTE", "REDIS_URL"), _announce)
        except (PortTaken, EmbeddedPostgresError, SettingsError) as error:
            raise click.ClickException(str(error)) from error


@click.command()
def serve() -> None:
    """Serve the API; settings come from the environment."""
    from service.web.serve import serve_forever  # noqa: PLC0415 - only this needs the server

    serve_forever(_settings(SERVE))


@click.command()
def worker() -> None:
    """Run the sequencer and the subscribers alone; any number may run."""
    settings = _settings(SERVE)
    logs.configure(settings.log_level)
    asyncio.run(_work(settings))


@click.command()
def migrate() -> None:
    """Bring the database to the newest schema."""
    apply_migrations(_settings(MIGRATE).database_url)
    click.echo("The database is at the newest revision.")


def _settings(required: frozenset[str]) -> Settings:
    try:
        return Settings.from_environment(require=required)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error


async def _work(settings: Settings) -> None:
    from service.bootstrap import Service  # noqa: PLC0415 - slow to import
    from service.mail.transport import mail_transport  # noqa: PLC0415 - as above

    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    service = Service(settings)
    transport = mail_transport(settings.smtp_url)
    background = service.background(transport)
    async with service.opened():
        background.start()
        await stopping.wait()
        await background.stop()
    await transport.close()


def _announce(facts: dict[str, object]) -> None:
    click.echo(WELCOME.format(**facts, claim=_curl_claim(facts), list=_curl_list(facts)))


def _curl_claim(facts: dict[str, object]) -> str:
    body = (
        f'{{"entity_id": "{facts["entity_id"]}", "partner_claim_id": "case-1", '
        '"defendant": {"name": "Debtor Ltd"}, "invoices": [{"number": "INV-1", '
        '"total_amount_for_invoice": "1250.00", "due_date": "2026-01-31"}], '
        '"message": "The invoice is unpaid."}'
    )
    return (
        f"curl -s {facts['base_url']}/claims"
        f" -H {shlex.quote('Authorization: Bearer ' + str(facts['live_key']))}"
        f" -H 'Content-Type: application/json' -d {shlex.quote(body)}"
    )


def _curl_list(facts: dict[str, object]) -> str:
    return (
        f"curl -s '{facts['base_url']}/claims?entity_id={facts['entity_id']}'"
        f" -H {shlex.quote('Authorization: Bearer ' + str(facts['live_key']))}"
    )


WELCOME = """\
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
  mail         {mail_dir}

Create a claim; run it again and it answers 200 with the same claim:

{claim}

List the entity's claims:

{list}
"""
