"""The runbook's restore drill, followed as written, leaves production's evidence untouched."""

import asyncio
import os
import re
import shutil
import subprocess

import psycopg
import pytest

from service.app.setting import PREFIX
from service.app.settings import SERVE, Settings
from service.evidence.note import NoteKey
from service.facts.caller import LEDGERS
from tests import runbook
from tests.databases import login_url
from tests.dev_process import PROGRAM, environment, run
from tests.world import MASTER_KEY, PUBLIC_URL, STAFF, TEAM, settings_for, world_on

KEY = NoteKey.of_seed("example.com/claim-ledger", bytes(32))
LOG = runbook.block("sh", "claim-ledger migrate\nclaim-ledger audit verify --public-key")
ERASURES = runbook.block("sh", f"export {PREFIX}ARCHIVE_URL")
ERASED = "erased@example.com"


def settings_of(**words: str) -> dict[str, str]:
    """Return the settings on the page, with its placeholders filled in."""
    lines = runbook.block("", f"{PREFIX}DATABASE_URL=").splitlines()
    named = dict(line.removeprefix(PREFIX).split("=", 1) for line in lines)
    return {name: words.get(value, value) for name, value in named.items()}


def urls_of(owner_url: str) -> dict[str, str]:
    """Return what stands for the placeholders on the page."""
    logins = {f"{ledger.upper()}_URL": login_url(owner_url, ledger) for ledger in LEDGERS}
    return {"DRILL_URL": owner_url, "MASTER_KEYS": MASTER_KEY, "EMAIL": TEAM} | logins


@pytest.fixture
def drill_url(database_url):
    """Return the restored database's URL, once it exists."""
    url = f"{database_url}_drill"
    yield url
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(f"drop database if exists {url.rpartition('/')[2]} with (force)".encode())


def test_the_settings_of_a_drill_reach_nothing_of_production():
    """With them `serve` runs, and follows, mails, signs and publishes nothing."""
    words = settings_of(**urls_of("postgresql://claim_ledger:p@127.0.0.1/drill"))
    given = {f"{PREFIX}{name}": value for name, value in words.items()}
    settings = Settings.from_environment(given, require=SERVE)
    assert not settings.run_worker
    assert settings.smtp_url.startswith("file:")
    assert settings.checkpoint_keys is None
    assert (settings.archive_url, settings.live_bucket, settings.test_bucket) == (None, None, None)


async def test_a_drill_passes_and_production_goes_on(database_url, drill_url, tmp_path):
    """The backup is older than the archive; erased people are erased there too."""
    place, copy = tmp_path / "published", tmp_path / "drill"
    given = {"CHECKPOINT_KEYS": KEY.private_text, "ARCHIVE_URL": place.as_uri()}
    settings = settings_for(database_url, tmp_path, **given)
    async with world_on(settings, tmp_path, follow=False) as world:
        await world.service.staff.add(TEAM, STAFF)
        partner, entity_id = await world.connected()
        erased = await world.service.modes["live"].entities.add("Gone", ERASED, None, STAFF)
        await partner.claim(entity_id, "before")
        older = await world.service.checkpoints("live").make()
        await partner.claim(entity_id, "not-covered")
    _back_up(database_url, drill_url)
    production = environment(
        DATABASE_URL=database_url,
        MASTER_KEYS=MASTER_KEY,
        PUBLIC_URL=PUBLIC_URL,
        STAFF=TEAM,
        **given,
    )
    erase = ("privacy", "erase", "--entity", erased, "--reason", "asked for it", "--yes")
    assert (await asyncio.to_thread(run, *erase, env=production)).returncode == 0
    async with world_on(settings, tmp_path, follow=False) as world:
        beyond = await world.service.checkpoints("live").make()
    assert beyond.checkpoint.size > older.checkpoint.size
    shutil.copytree(place, copy)
    before = _contents(place)

    env = environment(**settings_of(**urls_of(drill_url)))
    env["PATH"] = f"{PROGRAM.parent}{os.pathsep}{env['PATH']}"
    note = copy / "checkpoints" / older.checkpoint.origin / f"{older.checkpoint.size:020}.txt"
    lines = (LOG + ERASURES).replace("FILE", str(note)).replace("PUBLIC_KEY", KEY.public_text)
    script = lines.replace("file:///drill/published", copy.as_uri())
    done = await asyncio.to_thread(
        subprocess.run, ["bash", "-ex"], input=script, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^\+ claim-ledger ", done.stderr, re.MULTILINE)) == 5
    assert not {"lineage", "checkpoint"} & set(re.findall(r"audit (\w+)", lines))
    found = run("privacy", "find", ERASED, "--json", env=env)
    assert '"places": 0' in found.stdout
    assert (_contents(place), _contents(copy)) == (before, before)
    assert run("audit", "checkpoint", env=production).returncode == 0
    assert run("audit", "verify", env=production).returncode == 0


def _back_up(url, drill_url):
    """Copy the database, as a restored backup."""
    with psycopg.connect(url.rpartition("/")[0] + "/postgres", autocommit=True) as owner:
        name, source = (one.rpartition("/")[2] for one in (drill_url, url))
        owner.execute(f"create database {name} template {source}".encode())


def _contents(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder): path.read_bytes() for path in files}
