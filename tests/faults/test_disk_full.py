"""A full disk: a cluster on a small file system that a filler file fills up."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from service.cli.dev.postgres import EmbeddedPostgres
from service.cli.dev.postgres.processes import is_foreign
from tests.chosen_postgres import bin_dir_of
from tests.databases import migrated
from tests.faults.clusters import check_log, settled, unnumbered
from tests.patience import eventually
from tests.world import settings_for, world_on

CHUNK_BYTES = 1 << 20
CLAIMS = 40
CLAIMS_MAX = 400
NOTE = "x" * 20_000
SETTINGS = {"min_wal_size": "32MB", "max_wal_size": "48MB"}
WAL_BYTES = 64 << 20
"""More than the write-ahead log has room for once the disk is full."""


@dataclass
class SmallDisk:
    """A small file system for a PostgreSQL, and the file that fills it."""

    folder: Path
    server: EmbeddedPostgres

    def fill(self) -> None:
        """Fill the disk to the last byte."""
        with (self.folder / "filler").open("ab", buffering=0) as filler:
            for size in (CHUNK_BYTES, 4096):
                with suppress(OSError):
                    while filler.write(b"\0" * size) == size:
                        pass

    def clear(self) -> None:
        """Free the disk, as an operator would."""
        (self.folder / "filler").unlink()

    def revive(self) -> None:
        """Start a server again that gave up recovering for want of room, as supervisors do."""
        if is_foreign(self.server.postmaster_pid):  # it has ended, and nobody has been told
            self.server.stop()
            self.server.start()


@pytest.fixture
def server(request, tmp_path) -> Iterator[EmbeddedPostgres]:
    """Return a stopped server whose directory may be placed on a disk of its own."""
    bin_dir = bin_dir_of(request.config)
    server = EmbeddedPostgres(tmp_path / "postgres", bin_dir=bin_dir, settings=SETTINGS)
    yield server
    server.shutdown_abruptly()  # one that has run out of disk takes its time
    for folder in (server.data_dir, server.data_dir / "cluster" / "pg_wal"):
        if folder.is_mount():
            subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def full_data(server) -> SmallDisk:
    """Return a migrated server whose data is on a disk of its own."""
    server.data_dir.mkdir(mode=0o700)
    _mount(server.data_dir, "192m")
    migrated(server.start())
    return SmallDisk(server.data_dir, server)


@pytest.fixture
def full_wal(server) -> SmallDisk:
    """Return a migrated server whose write-ahead log is on a disk of its own."""
    migrated(server.start())
    server.stop()
    wal, aside = server.data_dir / "cluster" / "pg_wal", server.data_dir / "aside"
    owner = wal.stat()
    shutil.move(wal, aside)
    wal.mkdir()
    _mount(wal, "80m")
    shutil.copytree(aside, wal, dirs_exist_ok=True)
    for path in (wal, *wal.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    server.start()
    return SmallDisk(wal, server)


def _mount(folder, size):
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", folder]
    if os.geteuid() != 0 or subprocess.run(mounting, check=False).returncode:
        pytest.skip("mounting a small file system is root's way")


async def test_a_full_disk_is_503_until_there_is_room(full_data, tmp_path):
    """Writes are refused with retry advice, reads work; once there is room, all works."""
    settings = settings_for(full_data.server.url, tmp_path / "mail")
    async with world_on(settings, tmp_path / "mail") as world:
        partner, entity_id = await world.connected()
        async with unnumbered(full_data.server.url):
            before = [await partner.claim(entity_id, f"before-{n}") for n in range(CLAIMS)]
            full_data.fill()
        during = await _until_refused(partner, entity_id)
        page = await partner.call("GET", f"/claims?entity_id={entity_id}&limit=100")
        listed = {one["partner_claim_id"] for one in page.json()["claims"]}
        full_data.clear()
        after = [await partner.claim(entity_id, f"during-{n}") for n in range(len(during))]
        await settled(full_data.server.url)
    assert {answer.status_code for answer in before} == {201}
    assert page.status_code == 200
    assert f"during-{len(during) - 1}" not in listed
    assert [answer.status_code for answer in after] == [200] * (len(during) - 1) + [201]
    check_log(full_data.server.url, "live")
    check_log(full_data.server.url, "accounts")


async def test_a_full_disk_of_the_write_ahead_log(full_wal, tmp_path):
    """PostgreSQL crashes and recovers once there is room; the service needs no restart."""
    settings = settings_for(full_wal.server.url, tmp_path / "mail")
    async with world_on(settings, tmp_path / "mail") as world:
        partner, entity_id = await world.connected()
        before = [await partner.claim(entity_id, f"before-{n}") for n in range(CLAIMS)]
        full_wal.fill()
        _write_until_it_gives_up(full_wal)
        assert len(await _until_refused(partner, entity_id)) == 1
        full_wal.clear()
        first = await _back(partner, entity_id, full_wal)
        again = [await partner.claim(entity_id, f"before-{n}") for n in range(CLAIMS)]
        await settled(full_wal.server.url)
    assert first.status_code == 201
    assert [one.json()["claim_id"] for one in again] == [one.json()["claim_id"] for one in before]
    check_log(full_wal.server.url, "live")


async def _until_refused(partner, entity_id):
    """Create claims until the disk is full; return all answers, the refusal last."""
    answers = []
    while not answers or answers[-1].status_code == 201:
        answers.append(await partner.claim(entity_id, f"during-{len(answers)}", note=NOTE))
        assert len(answers) < CLAIMS_MAX
    assert (answers[-1].status_code, answers[-1].json()["code"]) == (503, "service_unavailable")
    assert int(answers[-1].headers["Retry-After"]) >= 1
    return answers


def _write_until_it_gives_up(disk):
    """Write more than the write-ahead log can hold: every session ends."""
    filler = "create table public.filler as select n, md5(n::text) from generate_series(1, %s) n"
    with psycopg.connect(disk.server.url) as owner, pytest.raises(psycopg.OperationalError):
        owner.execute(filler % (WAL_BYTES // 64))


async def _back(partner, entity_id, disk):
    """Return the first claim that succeeds again."""

    async def working():
        disk.revive()
        answer = await partner.claim(entity_id, "during-0")
        return answer if answer.status_code != 503 else None

    return await eventually(working, look=0.05)
