"""PostgreSQL that is up and refuses: partners get a 503, and the log names why."""

import psycopg
from structlog.testing import capture_logs

from service.ledger import limits
from tests.databases import login_url
from tests.patience import eventually
from tests.world import deadline_of, settings_for, world_on


async def test_a_password_that_was_changed_is_an_outage(database_url, tmp_path):
    """No fault of ours, which would be a 500: the same request succeeds once the URL is right."""
    wrong = login_url(database_url, "live").replace("_live:", "_live:x", 1)
    right, without = (
        settings_for(database_url, tmp_path, **given)
        for given in ({}, {"LIVE_DATABASE_URL": wrong})
    )
    async with (
        world_on(right, tmp_path, follow=False) as world,
        world_on(without, tmp_path, follow=False) as refused,
    ):
        partner, entity_id = await world.connected()
        partner.world = refused
        with capture_logs() as lines:
            answers = [
                await partner.claim(entity_id),
                await partner.call("GET", f"/claims?entity_id={entity_id}"),
                await refused.client.get("/health/ready"),
            ]
    assert [one.status_code for one in answers] == [503] * 3
    why = {line["error_type"] for line in lines if line["event"] == "ledger unavailable"}
    assert why == {"InvalidPasswordError"}


async def test_a_lock_on_the_head_is_named(database_url, tmp_path, monkeypatch):
    """Claims are created and not numbered; the scrape has nothing of the ledger but that."""
    monkeypatch.setattr(limits, "BACKGROUND_LOCK_SECONDS", 0.2)
    settings = settings_for(database_url, tmp_path)
    async with world_on(settings, tmp_path) as world:
        partner, entity_id = await world.connected()
        with psycopg.connect(database_url) as somebody, capture_logs() as lines:
            somebody.execute("lock table live.head")
            created = await partner.claim(entity_id)
            await eventually(lambda: "LockNotAvailableError" in _reasons(lines))
            with deadline_of(world, 0.5):
                figures = (await world.scrapes.make()).health["figures"]
    assert created.status_code == 201
    assert figures["database_up"]["live"] == 0
    assert figures["head_stalled"]["live"] is None


def _reasons(lines):
    return {
        line["error_type"]
        for line in lines
        if line["event"] == "follower waits" and line["subscriber"] == "live.sequencer"
    }
