"""Sandbox fixtures: a partner whose fixtures fail does not delay the others."""

import pytest

from service.app.bootstrap import Service
from service.ledger.database import LedgerUnavailable
from service.ledger.following.parking import FOLLOWS, parked
from service.ledger.following.runner import Subscription
from tests.ledger.raw_events import RawEvent, write_raw
from tests.numbering import number
from tests.patience import PATIENCE_SECONDS
from tests.world import STAFF, settings_for


@pytest.fixture
async def sandbox(database_url, tmp_path):
    """Return a service that follows nothing by itself, and its subscriber for fixtures."""
    async with Service(
        settings_for(database_url, tmp_path), deadline_seconds=PATIENCE_SECONDS
    ).opened() as service:
        (subscriber,) = (one for one in service.parking["accounts"] if one.name == "sandbox")
        yield service, subscriber


async def approved(service, *names):
    """Approve partners and number the events; return the partners' ids."""
    ids = [await service.partners.add(name, f"{name}@example.com", STAFF) for name in names]
    for partner_id in ids:
        await service.partners.approve(partner_id, STAFF)
    await number(service.accounts)
    return ids


async def follow(service, subscriber):
    """Follow until there is nothing to do."""
    while await Subscription(service.accounts, subscriber).step():
        pass


def made_for(owner):
    """Return the partners that have fixtures."""
    rows = owner.execute("select distinct partner_id from test.connections order by 1")
    return [partner_id for (partner_id,) in rows.fetchall()]


async def test_a_partner_whose_fixtures_fail_is_parked_and_retried(sandbox, owner, monkeypatch):
    """Others get theirs, and `projections retry` makes the missing ones."""
    service, subscriber = sandbox
    one, other = await approved(service, "one", "other")
    ensure = service.sandbox.ensure

    async def fail_for_one(partner_id, epoch=0):
        if partner_id == one:
            raise ZeroDivisionError
        return await ensure(partner_id, epoch)

    monkeypatch.setattr(service.sandbox, "ensure", fail_for_one)
    await service.partners.reset_sandbox(one, 1, STAFF)
    await approved(service)
    await follow(service, subscriber)
    waiting = await parked(service.accounts.database)
    assert [(event.read_model, event.topic, event.error) for event in waiting] == [
        ("sandbox", "PartnerApproved", "ZeroDivisionError"),
        ("sandbox", "SandboxReset", FOLLOWS),
    ]
    assert made_for(owner) == [other]
    monkeypatch.undo()
    assert await subscriber.retry(service.accounts) == 2
    assert (made_for(owner), await parked(service.accounts.database)) == (sorted([one, other]), [])


async def test_an_outage_of_the_test_ledger_parks_nobody(sandbox, owner, monkeypatch):
    """No partner is at fault: the subscriber waits and continues from there."""
    service, subscriber = sandbox
    ids = await approved(service, "one", "other")

    async def fail(_partner_id, _epoch=0):
        raise LedgerUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(service.sandbox, "ensure", fail)
        with pytest.raises(LedgerUnavailable):
            await follow(service, subscriber)
    assert (await parked(service.accounts.database), made_for(owner)) == ([], [])
    await follow(service, subscriber)
    assert made_for(owner) == sorted(ids)


async def test_events_of_unknown_topics_do_not_concern_the_sandbox(sandbox, owner):
    """A later release's event does not keep a partner from its sandbox."""
    service, subscriber = sandbox
    (partner_id,) = await approved(service, "one")
    (stream, version) = owner.execute(
        "select originator_id, max(originator_version) + 1 from accounts.events group by 1"
    ).fetchone()
    await write_raw(service.accounts, RawEvent(stream, version, "NoSuchThing", b"{}"))
    await approved(service)
    await follow(service, subscriber)
    assert (await parked(service.accounts.database), made_for(owner)) == ([], [partner_id])
