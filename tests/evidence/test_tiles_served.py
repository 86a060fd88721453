"""The logs' tiles over HTTP: static objects for everybody, where the settings have them served."""

import hashlib

import pytest

from service.evidence.proofs import serving as proofs_serving
from service.evidence.proofs.consistency import check_consistency
from service.evidence.tiles import serving
from service.evidence.tiles.writer import TilesWriter
from service.evidence.tree.nodes import Nodes
from service.ledger.sql import Sql
from tests.evidence.evidence_world import KEY
from tests.world import settings_for, world_on

_PUT = Sql(
    "put",
    "A row of a checkpoint, dated ahead.",
    "insert into ledger.checkpoints (origin, size, note, made_at)"
    " values ($1, $2, $3, now() + interval '1 day')",
)


@pytest.fixture
async def log(database_url, tmp_path):
    """Return a world whose log of accounts is served, its newest checkpoint and its address."""
    (tmp_path / "tiles").mkdir()
    settings = settings_for(
        database_url,
        tmp_path / "mail",
        CHECKPOINT_KEYS=KEY.private_text,
        ARCHIVE_URL=(tmp_path / "archive").as_uri(),
        TILES_URL=(tmp_path / "tiles").as_uri(),
        SERVE_TILES="on",
    )
    async with world_on(settings, tmp_path / "mail", follow=False) as world:
        await world.partner()
        checkpoints = world.service.checkpoints("accounts")
        made = await checkpoints.make()
        assert world.service.tiles is not None
        await TilesWriter(checkpoints, world.service.tiles).write()
        yield world, made, f"/log/accounts/{made.checkpoint.origin.rpartition('/')[2]}"


async def test_a_log_is_read_by_its_address(log, tmp_path):
    """Tiles are kept by caches for good, the checkpoint for a moment; other paths are not there."""
    world, made, address = log
    asked = world.calling_from("192.0.2.1").get
    folder = tmp_path / "tiles" / made.checkpoint.origin
    partial = f"000.p/{made.checkpoint.size}"

    head = await asked(f"{address}/checkpoint")
    assert (head.status_code, head.text) == (200, made.note)
    assert head.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert head.headers["Cache-Control"] == "public, max-age=5"

    for path in (f"tile/0/{partial}", f"tile/entries/{partial}"):
        tile = await asked(f"{address}/{path}")
        assert (tile.status_code, tile.content) == (200, (folder / path).read_bytes())
        headers = tile.headers
        assert headers["Content-Type"] == "application/octet-stream"
        assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["ETag"] == f'"{hashlib.sha256(tile.content).hexdigest()[:32]}"'
        assert "X-Request-Id" in headers
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert "Set-Cookie" not in headers
        known = await asked(f"{address}/{path}", headers={"If-None-Match": headers["ETag"]})
        assert (known.status_code, known.content) == (304, b"")
        only_head = await world.client.head(f"{address}/{path}")
        assert (only_head.status_code, only_head.content) == (200, b"")

    ledger, lineage = address.removeprefix("/log/").split("/")
    other = lineage[:-1] + ("1" if lineage.endswith("0") else "0")
    for path in (
        *(f"{address}/{one}" for one in ("tile/0/001", "tile/1/000", "tile/0/000.p/999", "mail")),
        *(f"/log/{one}/checkpoint" for one in (f"live/{lineage}", f"other/{lineage}")),
        f"/log/{ledger}/{other}/checkpoint",
        f"/log/{ledger}/..%2F..%2Fcheckpoint/checkpoint",
        f"/log/{ledger}",
        "/log",
    ):
        answer = await asked(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
        assert answer.headers["Cache-Control"] == "no-store"
    assert (await world.client.post(f"{address}/checkpoint")).status_code == 405
    scraped = await world.scrape()
    assert f'claim_ledger_tiles_size{{ledger="accounts"}} {made.checkpoint.size}.0' in scraped
    assert 'claim_ledger_tiles_unsound{ledger="accounts"} 0.0' in scraped


async def test_a_log_shows_that_it_continues(log, tmp_path):
    """Between the sizes of published checkpoints, as the file that `audit consistency` writes."""
    world, made, _ = log
    checkpoints, old = world.service.checkpoints("accounts"), made.checkpoint.size
    await world.partner()
    now = await checkpoints.make()
    new, path = now.checkpoint.size, "/log/accounts/consistency"
    answer = await world.client.get(path, params={"old": old, "new": new})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    proved = check_consistency(answer.content, [KEY])
    assert (proved.older, proved.checkpoint) == (made.checkpoint, now.checkpoint)
    for wrong in (
        *(f"?old={old}", f"?old={old}&new={new - 1}", f"?old={new}&new={old}", "?old=x&new=y"),
        *(f"?old={old}&old={old}&new={new}", f"?old=0{old}&new={new}", f"?old={old}&new={2**70}"),
    ):
        assert (await world.client.get(f"{path}{wrong}")).status_code == 404, wrong
    other = f"/log/other/consistency?old={old}&new={new}"
    assert (await world.client.get(other)).status_code == 404
    folder = tmp_path / "archive/checkpoints" / now.checkpoint.origin
    (folder / f"{new:020}.txt").rename(tmp_path / "note")
    asked = await world.client.get(path, params={"old": old, "new": new})
    assert asked.status_code == 404, "a checkpoint that nobody has published"


async def test_a_row_that_names_no_log_is_none(log):
    """Whoever has the ledger's login can put one there."""
    world, made, _ = log
    size, reads = made.checkpoint.size, world.service.accounts.database.background
    path = f"/log/accounts/consistency?old={size}&new="
    for origin, at in (("..//x", size), ("\u202e", size + 1)):
        await reads.fetch(_PUT, origin, at, made.note)
    assert (await world.client.get(f"{path}{size}")).status_code == 200
    assert (await world.client.get(f"{path}{size + 1}")).status_code == 404


async def test_a_proof_that_reads_the_log_is_not_made_for_strangers(log, monkeypatch):
    """While the tree's nodes are behind, and where others are asking already: later."""
    world, made, _ = log
    size = made.checkpoint.size
    path = f"/log/accounts/consistency?old={size}&new={size}"
    monkeypatch.setattr(Nodes, "count", lambda _self, level: int(level == 1))
    assert (await world.client.get(path)).status_code == 503
    monkeypatch.undo()
    assert (await world.client.get(path)).status_code == 200
    monkeypatch.setattr(proofs_serving, "AT_ONCE", 0)
    assert (await world.client.get(path)).status_code == 503


async def test_a_stranger_who_asks_for_all_is_held_off(log, tmp_path, monkeypatch):
    """By network, and by how many objects are read at once, which no alert takes for an outage.

    A place that is away is a 503.
    """
    world, _, address = log
    path = f"{address}/checkpoint"
    monkeypatch.setattr(serving, "PER_MINUTE", 20)
    monkeypatch.setattr(serving, "AT_ONCE", 0)
    busy = await world.client.get(path)
    assert (busy.status_code, busy.headers["Retry-After"]) == (503, "1")
    counted = str(list(world.metrics.registry.collect()))
    assert ("'code': 'busy'" in counted, "'code': 'service_unavailable'" in counted) == (
        True,
        False,
    )
    monkeypatch.setattr(serving, "AT_ONCE", 8)
    (tmp_path / "tiles").rename(tmp_path / "elsewhere")
    assert (await world.client.get(path)).status_code == 503
    (tmp_path / "elsewhere").rename(tmp_path / "tiles")
    asked = world.calling_from("192.0.2.2").get
    statuses = [(await asked(path)).status_code for _ in range(20)]
    assert set(statuses) == {200}
    refused = await asked(path)
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert (await world.client.get(path)).status_code == 200


async def test_no_log_is_served_unless_the_settings_say_so(database_url, tmp_path):
    """By default there is no such path, although the tiles are written."""
    (tmp_path / "tiles").mkdir()
    given = {
        "ARCHIVE_URL": (tmp_path / "archive").as_uri(),
        "TILES_URL": (tmp_path / "tiles").as_uri(),
    }
    settings = settings_for(database_url, tmp_path / "mail", **given)
    async with world_on(settings, tmp_path / "mail", follow=False) as world:
        log = tmp_path / "tiles/example.com/claim-ledger/live/lin_00000000000000000000000000"
        log.mkdir(parents=True)
        (log / "checkpoint").write_text("one\n")
        path = f"/log/live/{log.name}/checkpoint"
        assert (await world.client.get(path)).status_code == 404
