"""The metrics of mail, checkpoints and the database, read at each scrape."""

import asyncio
import json
import math
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.app.operations import collectors
from service.core.clock import system_clock
from service.core.retries import FOR_A_DAY
from service.evidence.note import NoteKey
from service.ledger.sequencer import Sequencer
from service.operations.collectors.ledgers import ledger_collector
from service.operations.gauges import Collector
from service.operations.scrapes import COLLECTOR_SECONDS_MAX, Scrapes
from tests.database_proxy import proxied
from tests.faults.clusters import metric, onboard
from tests.log_lines import logged
from tests.patience import eventually, waiting
from tests.sessions import BROWSER, moved_in_time
from tests.tables import every_row
from tests.world import PATIENCE_SECONDS, settings_for, world_on

NOT_OF_THE_DATABASE = {
    *("claim_ledger_pool_connections", "claim_ledger_worker_pool_connections"),
    *("claim_ledger_rate_limit_degraded", "claim_ledger_api_up"),
}
TOO_LATE = "update accounts.sign_in_links set expires_at = now() - interval '1 second'"


@pytest.fixture
async def stuck(database_url, tmp_path):
    """Return a world whose mail server does not answer."""
    settings = settings_for(database_url, tmp_path, SMTP_URL="smtp://127.0.0.1:1")
    async with world_on(settings, tmp_path) as one:
        yield one


async def test_waiting_mail_shows_its_age(stuck, database_url):
    """An unsendable mail of an hour ago is an hour old in the metrics, and waiting."""
    partner = await stuck.partner()
    await onboard(partner, "u1")
    await _shown(stuck, "waiting")
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    await _change(database_url, "update live.mail_outbox set noted_at = %s", hour_ago)
    assert 3600 <= await metric(stuck, "claim_ledger_oldest_mail_seconds", kind="onboarding") < 3700
    assert await _mails(stuck, "failed") == 0


async def test_waiting_mail_says_why_in_the_log(stuck):
    """By the type of the fault alone, for onboardings and for sign-in links."""
    partner = await stuck.partner()
    with logged() as stream:
        await onboard(partner, "u1")
        await _shown(stuck, "waiting")
        await stuck.service.sign_in.ask("person@example.com", "/", BROWSER)
        await eventually(lambda: _reasons(stream) == {"SMTPConnectError"} and _lines(stream) > 1)


def _lines(stream):
    return stream.getvalue().count(b"mail waits")


def _reasons(stream):
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    return {line.get("error_type") for line in lines if line["event"] == "mail waits"}


async def test_an_event_key_that_does_not_open_is_shown(stuck, database_url):
    """No process can tell by its own keys that there is another one."""
    await stuck.service.secrets.get()
    assert await metric(stuck, "claim_ledger_event_keys_open") == 1
    added = "insert into accounts.event_keys values (2, true, 'garbage', 'nobody')"
    await _change(database_url, added)
    assert await metric(stuck, "claim_ledger_event_keys_open") == 0


async def test_keys_that_a_start_could_not_open_are_a_fault(stuck, database_url):
    """Whatever this process still has; a row that somebody added says nothing."""
    name, health = "claim_ledger_service_keys_open", stuck.scrapes.make
    assert await metric(stuck, name) == 1  # nobody has used the installation
    await stuck.service.secrets.get()
    await _change(database_url, "insert into accounts.service_keys values ('x', '\\x00', 'nokey')")
    assert (await health()).health["faults"] == []
    for change in (
        "update accounts.service_keys set wrapped = '' where name = 'link'",
        "delete from accounts.service_keys where name = 'link'",
    ):
        await _change(database_url, change)
        assert (await health()).health["faults"] == ["service_keys_open"]
    await _change(database_url, "update accounts.event_keys set signs_from = 'infinity'")
    assert (await health()).health["faults"] == ["event_keys_open", "service_keys_open"]


async def test_mail_that_was_given_up_is_counted(stuck, database_url):
    """It no longer waits, and stays in the count."""
    partner = await stuck.partner()
    await onboard(partner, "u1")
    await _shown(stuck, "waiting")
    last_attempt = "update live.mail_outbox set attempts = %s, next_attempt_at = %s"
    await _change(database_url, last_attempt, FOR_A_DAY.attempts_max - 1, datetime.now(UTC))
    await _shown(stuck, "failed")
    assert await _mails(stuck, "waiting") == 0
    assert await metric(stuck, "claim_ledger_oldest_mail_seconds", kind="onboarding") == 0
    assert await _mails(stuck, "withheld") == 0
    await _change(database_url, "update live.mail_outbox set state = 'withheld'")
    assert (await _mails(stuck, "withheld"), await _mails(stuck, "failed")) == (1, 0)


async def test_a_waiting_hand_over_or_check_shows_its_age(stuck, database_url):
    """One that was refused an hour ago is counted, and an hour old in the metrics."""
    assert await metric(stuck, "claim_ledger_oldest_document_check_seconds") == 0
    assert await metric(stuck, "claim_ledger_oldest_hand_over_seconds") == 0
    await _change(
        database_url,
        "insert into live.hand_overs (position, stream_id, noted_at, next_attempt_at)"
        " values (1, gen_random_uuid(), now() - interval '1 hour', now() + interval '1 hour')",
    )
    await _change(
        database_url,
        "insert into live.document_checks values (1, 'doc_1', gen_random_uuid(), 'clm_1', 'a',"
        " 'application/pdf', 1, 1, now() - interval '1 hour', 1, now() + interval '1 hour')",
    )
    assert 3600 <= await metric(stuck, "claim_ledger_oldest_document_check_seconds") < 3700
    assert await metric(stuck, "claim_ledger_hand_overs") == 1
    assert 3600 <= await metric(stuck, "claim_ledger_oldest_hand_over_seconds") < 3700


async def test_webhooks_that_are_due_show_their_age(stuck, database_url):
    """Of endpoints that do not fail; what follows in a claim is not due before the first."""
    for name, active, failing in (("a", True, None), ("b", True, "now()"), ("c", False, None)):
        await _change(
            database_url,
            "insert into live.webhook_queues (endpoint_id, partner_id, position, is_active,"  # noqa: S608 - ours
            f" failing_since) values ('{name}', 'ptn', 1, {active}, {failing or 'null'})",
        )
        await _change(
            database_url,
            "insert into live.webhook_deliveries (endpoint_id, position, subject, type, noted_at,"  # noqa: S608 - ours
            f" next_attempt_at) select '{name}', nr, 'clm', 't', now(),"
            " now() - nr * interval '10 minutes' from generate_series(1, 2) as nr",
        )
    for state in ("active", "failing", "disabled"):
        labels = {"ledger": "live", "state": state}
        assert await metric(stuck, "claim_ledger_webhook_endpoints", **labels) == 1
    oldest = await metric(stuck, "claim_ledger_oldest_webhook_seconds", ledger="live")
    assert 600 <= oldest < 700


async def test_waiting_sign_in_mail_shows_its_age(stuck, database_url):
    """It grows old while it waits; once its link has expired it counts as not sent."""
    assert (await _mails(stuck, "waiting", "sign_in"), await _age_of_sign_in_mail(stuck)) == (0, 0)
    await stuck.service.sign_in.ask("person@example.com", "/", BROWSER)
    await moved_in_time(stuck.service, "sign_in_links", "asked_at", 10)
    assert 600 <= await _age_of_sign_in_mail(stuck) < 700
    assert await _mails(stuck, "waiting", "sign_in") == 1
    assert await _mails(stuck, "failed", "sign_in") == 0
    await _change(database_url, TOO_LATE)
    assert (await _mails(stuck, "waiting", "sign_in"), await _age_of_sign_in_mail(stuck)) == (0, 0)
    assert await _mails(stuck, "failed", "sign_in") == 1


async def test_a_log_without_any_checkpoint_grows_old(database_url, tmp_path):
    """If checkpoints fail from the first day, the alarm fires as it would later."""
    now = [datetime.now(UTC)]
    key = NoteKey.of_seed("example.com/claim-ledger", bytes(32))
    settings = settings_for(database_url, tmp_path, CHECKPOINT_KEYS=key.private_text)
    async with world_on(settings, tmp_path, follow=False, clock=lambda: now[0]) as world:
        assert await _checkpoint(world) == (0, 0)
        await world.partner()
        checkpoints = world.service.checkpoints("accounts")
        await Sequencer(checkpoints.ledger).number_committed()
        now[0] += timedelta(hours=2)
        size, age = await _checkpoint(world)
        assert (size, round(age)) == (0, 7200)
        assert await metric(world, "claim_ledger_log_size", ledger="accounts") > size
        made = await checkpoints.make()
        size, age = await _checkpoint(world)
        assert (size, age < 7200) == (made.checkpoint.size, True)


async def test_a_database_that_is_away_is_seen_without_requests(database_url, tmp_path):
    """`up` is 0 at the next scrape; unreadable gauges are NaN and not stale."""
    async with proxied(database_url) as (proxy, url):
        settings = settings_for(url, tmp_path)
        async with world_on(settings, tmp_path, follow=False) as world:
            await world.partner()
            before = await _read_gauges(world)
            port, proxy.port = proxy.port, 1
            proxy.cut_off()
            during = await _read_gauges(world)
            proxy.port = port
            after = await _read_gauges(world)
    for ups, expected in ((before, 1), (during, 0), (after, 1)):
        assert {v for k, v in ups.items() if k[0] == "claim_ledger_database_up"} == {expected}
    assert before.keys() == during.keys() == after.keys()
    unread = {name for name, value in during.items() if math.isnan(value)}
    told = {"claim_ledger_database_up", "claim_ledger_collector_up"}
    assert unread == {name for name in during if name[0] not in told}
    assert len({name for name, _ in unread}) == 36
    assert not [name for name, value in (before | after).items() if math.isnan(value)]


async def _read_gauges(world):
    """Return the values that a scrape reads from the database, by name and labels."""
    text = await world.scrape()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if family.type == "gauge"
        and not sample.name.endswith("_created")
        and sample.name not in NOT_OF_THE_DATABASE
    }


async def test_a_collector_that_fails_is_seen_whichever_it_is(stuck):
    """In the metrics and in `/health`, with all that it reads, from the first scrape on."""
    await stuck.service.secrets.get()
    whole = await stuck.scrapes.make()
    assert whole.health["unread"] == []
    all_of_them = collectors(stuck.service)

    async def fail(_gauges) -> None:
        raise KeyError("a row that nobody of us wrote")

    with every_row() as row:
        for failing in all_of_them:
            with row(failing.name):
                broken = failing._replace(collect=fail)
                made = await Scrapes(
                    [broken if one is failing else one for one in all_of_them], []
                ).make()
                unread = {" ".join(figure) for figure in failing.figures}
                assert set(made.health["unread"]) == unread | {f"collector_up {failing.name}"}
                assert {name: set(made.health["figures"][name]) for name in _named(failing)} == {
                    name: set(whole.health["figures"][name]) for name in _named(failing)
                }
                shown = f'claim_ledger_collector_up{{collector="{failing.name}"}} 0.0'
                assert shown in made.exposition.decode()


async def test_a_forgotten_lock_takes_no_scrape_its_time(database_url, tmp_path):
    """Whichever table is locked: the scrape ends, and says what it could not read."""
    settings, unread = settings_for(database_url, tmp_path), {}
    async with world_on(settings, tmp_path, follow=False, deadline_seconds=0.2) as world:
        others = ("accounts.", "test.", "live.schema")  # a comparison of schemas takes a while
        every = collectors(world.service)
        scrapes = Scrapes([one for one in every if not one.name.startswith(others)], [])
        with psycopg.connect(database_url) as owner, waiting() as waited:
            rows = owner.execute("select tablename from pg_tables where schemaname = 'live'")
            for (table,) in rows.fetchall():
                owner.execute(f"lock table live.{table} in access exclusive mode")
                before = waited()
                made = await scrapes.make()
                assert waited() - before < COLLECTOR_SECONDS_MAX / 2, table
                unread[table] = set(made.health["unread"])
                owner.rollback()
    assert "log_size live" in unread["pending"]
    assert "collector_up live.checkpoints" in unread["events"] & unread["log"]


async def test_a_collector_that_hangs_ends(monkeypatch):
    """What it reads is unknown then, and what others read is not."""
    monkeypatch.setattr("service.operations.scrapes.COLLECTOR_SECONDS_MAX", 0.01)

    async def read(gauges) -> None:
        gauges.set("hand_overs", 7)

    async def hang(_gauges) -> None:
        await asyncio.Event().wait()

    reading = Collector("reading", [("hand_overs",)], read)
    hanging = Collector("hanging", [("log_size", "live")], hang)
    health = (await Scrapes([reading, hanging], []).make()).health
    assert set(health["unread"]) == {"log_size live", "collector_up hanging"}
    assert health["figures"]["hand_overs"] == {"": 7}


def _named(collector):
    return {name for name, *_ in collector.figures if not name.startswith("read_model_")}


async def test_a_finding_that_is_gone_is_one_and_hides_no_other(stuck, database_url):
    """Whoever renames or removes its row cannot silence what else is read of the ledger."""
    gone = ("update {}.log_findings set kind = 'x'", "delete from {}.log_findings")
    names = {"actors": "log_actor_faults", "tree_nodes": "tree_nodes_altered"}
    with every_row() as row:
        for ledger in ("accounts", "live", "test"):
            for kind, name in names.items():
                for change in gone:
                    with row(ledger, kind, change):
                        assert await metric(stuck, f"claim_ledger_{name}", ledger=ledger) == 0
                        whose = f"{change.format(ledger)} where kind = '{kind}'"
                        await _change(database_url, whose)
                        assert await metric(stuck, f"claim_ledger_{name}", ledger=ledger) == 1
                        assert (await stuck.scrapes.make()).health["unread"] == []
                        await _change(
                            database_url,
                            f"delete from {ledger}.log_findings where kind = 'x';"  # noqa: S608 - ours
                            f" insert into {ledger}.log_findings values ('{kind}')",
                        )
            await _change(database_url, f"delete from {ledger}.log_verification")  # noqa: S608 - ours
            health = (await stuck.scrapes.make()).health
            assert f"log_altered {ledger}" in health["faults"]
            assert health["unread"] == []


async def test_a_schema_that_was_changed_is_shown(stuck, database_url):
    """Of the ledger that it is of, and until it is undone."""
    for ledger in ("accounts", "live", "test"):
        assert await metric(stuck, "claim_ledger_schema_altered", ledger=ledger) == 0
    hide = "create policy p on {0}.claim_list using (false); alter table {0}.claim_list {1}"
    await _change(database_url, hide.format("live", "enable row level security"))
    health = (await stuck.scrapes.make()).health
    assert (health["faults"], health["unread"]) == (["schema_altered live"], [])
    undo = "drop policy p on {0}.claim_list; alter table {0}.claim_list {1}"
    await _change(database_url, undo.format("live", "disable row level security"))
    assert (await stuck.scrapes.make()).health["faults"] == []


async def test_a_clock_that_is_off_the_database_s_is_shown(stuck):
    """Ahead and behind, by which way it is off; two clocks that agree differ by little."""
    ledger = stuck.service.accounts
    with every_row() as row:
        for hours in (0, 1, -1):
            with row(hours):
                ahead = timedelta(hours=hours)
                collector = ledger_collector(ledger, (), lambda ahead=ahead: system_clock() + ahead)
                figures = (await Scrapes([collector], []).make()).health["figures"]
                offset = figures["clock_offset_seconds"]["accounts"]
                assert abs(offset - ahead.total_seconds()) < PATIENCE_SECONDS


async def _checkpoint(world):
    """Return size and age of the last accounts checkpoint from the metrics."""
    names = ("size", "age_seconds")
    return tuple(
        [await metric(world, f"claim_ledger_checkpoint_{one}", ledger="accounts") for one in names]
    )


async def _age_of_sign_in_mail(world):
    return await metric(world, "claim_ledger_oldest_mail_seconds", kind="sign_in")


async def _shown(world, state):
    """Wait until the metrics show a mail in a state."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await _mails(world, state) < 1:  # noqa: ASYNC110 - polls
            await asyncio.sleep(0.05)


async def _mails(world, state, kind="onboarding"):
    return await metric(world, "claim_ledger_mails", kind=kind, state=state)


async def _change(url, statement, *values):
    """Run a statement, in a thread: the outbox in this loop may hold the row."""

    def change():
        with psycopg.connect(url) as owner:
            owner.execute(statement, values)

    await asyncio.to_thread(change)
