"""`python -m tests.migrations.snapshots`: write what the migrations make of each ledger."""

import asyncio
import tempfile
from pathlib import Path

import asyncpg

from migrations.snapshots import Definition, definitions, path_of
from service.cli.dev.postgres import EmbeddedPostgres
from service.facts.caller import LEDGERS
from service.ledger.session import SESSION
from service.ledger.sql import queries
from tests.databases import migrated

_SQL = queries("service.evidence.verify")


async def made(url: str) -> dict[str, frozenset[Definition]]:
    """Return what each ledger's schema of a database consists of."""
    connection = await asyncpg.connect(url, server_settings=SESSION)
    try:
        found = {
            ledger: await connection.fetch(_SQL.definitions.on(ledger), ledger)
            for ledger in LEDGERS
        }
    finally:
        await connection.close()
    return {name: definitions(name, (tuple(row) for row in rows)) for name, rows in found.items()}


def main() -> None:
    """Migrate an empty database, and write the files."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        with EmbeddedPostgres(directory / "postgres", durable=False) as postgres:
            migrated(postgres.url)
            for ledger, found in asyncio.run(made(postgres.url)).items():
                lines = ["\t".join(one) for one in sorted(found)]
                path_of(ledger).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
