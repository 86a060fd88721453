"""What operators see of the mail: how much waits, since when, and what was given up."""

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tests.faults.clusters import metric, onboard
from tests.world import PATIENCE_SECONDS, settings_for, world_on


@pytest.fixture
async def stuck(database_url, tmp_path):
    """Answer a world whose mail server does not answer."""
    settings = settings_for(database_url, tmp_path, SMTP_URL="smtp://127.0.0.1:1")
    async with world_on(settings, tmp_path) as one:
        yield one


async def test_mail_that_waits_shows_its_age(stuck, database_url):
    """A mail of an hour ago that cannot be sent is an hour old in the metrics, and waits."""
    partner = await stuck.partner()
    await onboard(partner, "u1")
    await _shown(stuck, "waiting")
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    await _change(database_url, "update live.mail_outbox set noted_at = %s", hour_ago)
    assert 3600 <= await metric(stuck, "claim_ledger_oldest_mail_seconds") < 3700
    assert await metric(stuck, "claim_ledger_mails", state="failed") == 0


async def test_mail_that_was_given_up_is_counted(stuck, database_url):
    """It waits no longer, and is not forgotten."""
    partner = await stuck.partner()
    await onboard(partner, "u1")
    await _shown(stuck, "waiting")
    last_attempt = "update live.mail_outbox set attempts = 19, next_attempt_at = %s"
    await _change(database_url, last_attempt, datetime.now(UTC))
    await _shown(stuck, "failed")
    assert await metric(stuck, "claim_ledger_mails", state="waiting") == 0
    assert await metric(stuck, "claim_ledger_oldest_mail_seconds") == 0


async def _shown(world, state):
    """Wait until the metrics have a mail in a state."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await metric(world, "claim_ledger_mails", state=state) < 1:  # noqa: ASYNC110 - polls
            await asyncio.sleep(0.05)


async def _change(url, statement, *values):
    """Run a statement, in a thread: the outbox in this loop may hold the row."""

    def change():
        with psycopg.connect(url) as owner:
            owner.execute(statement, values)

    await asyncio.to_thread(change)
