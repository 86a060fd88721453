"""Whether a process says to load balancers that it can work."""

import psycopg
from structlog.testing import capture_logs

from tests.world import settings_for, world_on

FORM, OURS = {"email": "a@example.com"}, {"Sec-Fetch-Site": "same-origin"}
PLANTED = "insert into accounts.event_keys values (2, true, 'garbage', 'nobody')"


async def test_ready_has_opened_the_services_keys_once(database_url, tmp_path):
    """What somebody writes into their tables keeps new processes out, and takes none that runs.

    The log names the master key that is missing, for programs and for pages.
    """
    settings = settings_for(database_url, tmp_path)
    async with (
        world_on(settings, tmp_path, follow=False) as running,
        world_on(settings, tmp_path, follow=False) as begun,
    ):
        before = await running.client.get("/health/ready")
        with psycopg.connect(database_url, autocommit=True) as owner:
            owner.execute(PLANTED)
        await running.service.secrets.read_events()
        after = await running.client.get("/health/ready")
        with capture_logs() as lines:
            refused = await begun.client.get("/health/ready")
            page = await begun.client.post("/sign-in", data=FORM, headers=OURS)
    assert (before.status_code, after.status_code) == (200, 200)
    assert (refused.status_code, refused.json()["code"]) == (503, "service_unavailable")
    assert (refused.headers["Retry-After"], page.status_code) == ("1", 503)
    missing = [one["master_key_id"] for one in lines if one["event"] == "master key missing"]
    assert missing == ["nobody", "nobody"]


async def test_ready_looks_at_no_queue(world, database_url):
    """A queue may be locked, or full of dead rows: requests are answered all the same."""
    queues = ", ".join(f"{ledger.name}.pending" for ledger in world.service.ledgers)
    with psycopg.connect(database_url) as owner:
        owner.execute(f"lock table {queues} in access exclusive mode".encode())
        assert (await world.client.get("/health/ready")).status_code == 200
