"""A dump that contains unnumbered events, restored into a new cluster."""

import asyncio
from contextlib import suppress

import psycopg
import pytest

from tests import runbook
from tests.databases import migrated
from tests.faults.clusters import (
    Installation,
    check_log,
    check_verified,
    links_received,
    onboard,
    outbox_empty,
    received,
    settled,
    unnumbered,
)
from tests.world import STAFF, TEAM, Partner

CLAIMS = 40
GONE = "gone@example.com"
NEW_ID = "select append_id from live.claim_list where partner_claim_id = 'after'"
ROLES = runbook.block("sql", "create role claim_ledger_accounts")
"""A dump of a database has no roles."""


async def test_a_dump_taken_under_load_goes_on_elsewhere(clusters, smtp, tmp_path):
    """No gap, verified, ids above the old ones, and no mail is sent twice."""
    mails, port = smtp
    installation = Installation(tmp_path, port)
    source, dump = clusters.migrated("source"), tmp_path / "claim-ledger.dump"
    async with installation.on(source) as world:
        await world.service.staff.add(TEAM, STAFF)
        partner, entity_id = await world.connected()
        await onboard(partner, "sent-before")
        await received(mails, 1)
        erased = await world.service.modes["live"].entities.add("Gone", GONE, None, STAFF)
        await settled(source.url)
        async with unnumbered(source.url):
            made = [await partner.claim(entity_id, f"made-{n}") for n in range(CLAIMS)]
            await onboard(partner, "not-numbered-yet")
            await _under_load(
                partner,
                entity_id,
                asyncio.to_thread(source.run, "pg_dump", "-Fc", "-f", dump, source.url),
            )
        await received(mails, 2)
        await outbox_empty(source)
        erase = ("privacy", "erase", "--entity", erased, "--reason", "asked for it", "--yes")
        assert (await asyncio.to_thread(installation.command, source, *erase))[0] == 0
    target = _restored(clusters, dump)
    assert target.value("select count(*) from live.pending") > CLAIMS
    newest = target.value("select max(append_id) from live.events")
    _check_erased_again(installation, target)
    async with installation.on(target) as world:
        partner = Partner(world, partner.partner_id, partner.keys)
        again = [await partner.claim(entity_id, f"made-{n}") for n in range(CLAIMS)]
        assert (await partner.claim(entity_id, "after")).status_code == 201
        await onboard(partner, "after")
        await received(mails, 3)
        await settled(target.url)
        await outbox_empty(target)
        await check_verified(world.service)
    assert [one.json()["claim_id"] for one in again] == [one.json()["claim_id"] for one in made]
    assert target.value(NEW_ID) > newest
    assert check_log(target.url, "live") > CLAIMS
    check_log(target.url, "accounts")
    check_log(target.url, "test")
    assert links_received(mails) == 3
    _check_append_only(target)


def _restored(clusters, dump):
    """Return a new cluster with the dump restored as the runbook says, up to `migrate`."""
    target = clusters.new("target")
    target.execute(ROLES)
    target.run(
        *("pg_restore", "--exit-on-error", "--single-transaction", "--dbname", target.url, dump)
    )
    migrated(target.url)
    return target


def _check_erased_again(installation, cluster):
    """A backup restores erased data; the list outside the database erases it again."""
    found = [installation.command(cluster, "privacy", "find", GONE)]
    assert installation.command(cluster, "privacy", "reapply")[0] == 0
    found.append(installation.command(cluster, "privacy", "find", GONE))
    assert [bool(answer["found"]) for _, answer in found] == [True, False]


def _check_append_only(cluster):
    """Triggers and grants are part of the dump, so the same writes are refused."""
    for statement in (
        "update live.events set topic = 'Other'",
        "truncate live.log, live.events",
        "delete from live.head",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
            cluster.execute(statement)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="schema accounts"):
        cluster.execute("set role claim_ledger_live", "select from accounts.events")


async def _under_load(partner, entity_id, work):
    """Do the work while claims come in."""

    async def claim_for_ever():
        number = 0
        while True:
            await partner.claim(entity_id, f"load-{number}")
            number += 1

    load = asyncio.create_task(claim_for_ever())
    await work
    load.cancel()
    with suppress(asyncio.CancelledError):
        await load
