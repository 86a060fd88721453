"""A small history of a ledger, and evidence files made from it."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from service.app.bootstrap import Service
from service.evidence.export.export_writer import ExportScope, Signed, write_export
from service.evidence.export.format import encode
from service.evidence.export.receipt_writer import make_receipt, numbered_stream
from service.evidence.note import NoteKey
from service.ledger.ledger import Ledger
from tests.databases import cloned
from tests.world import STAFF, World, settings_for, world_on

KEY = NoteKey.of_seed("example.com/claim-ledger", bytes(range(32)))
OTHER = NoteKey.of_seed("example.com/claim-ledger", bytes(32))


class Files(NamedTuple):
    """The files, an older checkpoint's note, and the subjects of the files."""

    whole: Path
    later: Path
    entity: Path
    receipt: Path
    older: str
    older_size: int
    size: int
    entity_id: str
    claim_id: str
    later_from: int

    @property
    def exports(self) -> Sequence[Path]:
        """The three kinds of exports."""
        return self.whole, self.later, self.entity


def keyed_settings(database_url: str, mail_dir: Path):
    """Return settings with a signing key."""
    return settings_for(database_url, mail_dir, CHECKPOINT_KEYS=KEY.private_text)


@pytest.fixture(scope="session")
def told_history(postgres_url, template, tmp_path_factory) -> Iterator[tuple[str, tuple[str, str]]]:
    """Return the name of a database with a little history, to be cloned, and what that is about."""
    directory = tmp_path_factory.mktemp("told")
    with cloned(postgres_url, template) as url:
        yield url.rpartition("/")[2], asyncio.run(_told(url, directory))


async def _told(database_url: str, directory: Path) -> tuple[str, str]:
    settings = keyed_settings(database_url, directory / "mail")
    async with world_on(settings, directory / "mail", follow=False) as world:
        return await history(world)


@pytest.fixture
async def keyed(told_history, database_url, tmp_path):
    """Return a world whose checkpoints are signed, with a little history; nothing follows it."""
    settings = keyed_settings(database_url, tmp_path / "mail")
    async with world_on(settings, tmp_path / "mail", follow=False) as one:
        one.about = told_history[1]
        yield one


async def signed(service: Service, ledger: str = "live") -> Signed:
    """Number the ledger's events and sign a checkpoint."""
    made = await service.checkpoints(ledger).make()
    return Signed(made.checkpoint, made.note)


async def exported(
    ledger: Ledger, checkpoint: Signed, path: Path, scope: ExportScope | None = None
):
    """Write an export; return how many events it has."""
    with path.open("wb") as file:
        return await write_export(ledger, checkpoint, scope or ExportScope(), file, lambda _: None)


async def received(service: Service, claim_id: str, path: Path) -> Signed:
    """Write a live claim's receipt under a new checkpoint."""
    live = service.modes["live"]
    row = await live.claim_list.by_id(claim_id)
    assert row is not None
    rows = await numbered_stream(live.ledger, row["stream_id"])
    checkpoint = await signed(service)
    made = await make_receipt(live.ledger, claim_id, rows, checkpoint)
    with path.open("wb") as file:
        file.write(encode(made))
    return checkpoint


async def history(world: World) -> tuple[str, str]:
    """Let two partners work for three businesses; return an entity and one of its claims."""
    partner, other = await world.partner(), await world.partner()
    entity_id, another = await partner.connected_entity(), await other.connected_entity()
    answer = await partner.claim(entity_id, "case-1", defendant={"name": 'Zoë "Quote" \u2028'})
    claim_id = answer.json()["claim_id"]
    await other.claim(another, "case-1")
    await partner.claim(entity_id, "case-1", defendant={"name": "Another"})  # a mismatching replay
    claims = world.service.modes["live"].claims
    await claims.move(claim_id, "negotiation", STAFF)
    body = {"partner_user_id": "u1", "company_name": "New", "user_email": "new@example.com"}
    await other.call("POST", "/onboardings", json=body)
    return entity_id, claim_id


async def later(world: World, entity_id: str, claim_id: str) -> None:
    """Continue the history: the claim moves, and others are created."""
    partner = await world.partner()
    await partner.connect(entity_id)
    for number in range(5):
        await partner.claim(entity_id, f"later-{number}")
    await world.service.modes["live"].claims.move(claim_id, "settled", STAFF)
    await partner.disconnect(entity_id)
    await partner.connected_entity()


def make_files(database_url: str, directory: Path) -> Files:
    """Make a file of each kind on the caller's database."""
    return asyncio.run(_make_files(database_url, directory))


async def _make_files(database_url: str, directory: Path) -> Files:
    settings = keyed_settings(database_url, directory / "mail")
    async with world_on(settings, directory / "mail", follow=False) as world:
        entity_id, claim_id = await history(world)
        older = await signed(world.service)
        await later(world, entity_id, claim_id)
        receipt = directory / "receipt.json"
        now = await received(world.service, claim_id, receipt)
        ledger, size = world.service.modes["live"].ledger, older.checkpoint.size
        whole, since, entity = (directory / f"{name}.ndjson" for name in ("whole", "since", "one"))
        await exported(ledger, now, whole)
        await exported(ledger, now, since, ExportScope(first=size - 2))
        await exported(ledger, now, entity, ExportScope(1, entity_id, older.checkpoint))
    return Files(
        *(whole, since, entity, receipt, older.note, size, now.checkpoint.size),
        *(entity_id, claim_id, size - 2),
    )
