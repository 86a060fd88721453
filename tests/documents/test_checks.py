"""Checks of documents' content: what is found is recorded, and nothing is silently dropped."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb
from structlog.testing import capture_logs

from service.core.clock import system_clock
from service.core.retries import ATTEMPTS_MAX
from service.documents import checks
from service.documents.checks import MISSING, DocumentChecks
from service.documents.clamd import Clamd
from service.facts.claims import ClaimCreated, Document, DocumentFlagged, DocumentsAttached
from service.facts.privacy import PersonalDataErased
from service.ledger.events import Cause
from service.ledger.following.parking import parked
from service.ledger.following.runner import Subscription
from service.ledger.queue_runner import CUT_OFF, QueueRunner
from service.ledger.writing import Append
from service.storage.port import StorageUnavailable
from tests.clamd_server import MALICIOUS, NAME, clamd_server
from tests.ledger.samples import CAUSE
from tests.numbering import number

pytestmark = pytest.mark.server
HOUR = timedelta(hours=1)
PDF = b"%PDF-1.7"
GENERATION = 7


class Bucket:
    """A bucket whose objects can be read in parts, and may fail."""

    def __init__(self):
        self.objects, self.failing, self.ends_at = {}, set(), 1 << 30
        self.asked = []

    async def part(self, name, generation, start, size):
        """Return a part of one generation."""
        self.asked.append((name, start, size))
        if name in self.failing:
            raise StorageUnavailable("TimeoutError")
        kept = self.objects.get((name, generation))
        return None if kept is None else kept[start : min(start + size, self.ends_at)]


class Setting:
    """A live ledger that follows nothing by itself, a bucket, and perhaps a scanner."""

    def __init__(self, service):
        self.live, self.now = service.modes["live"].ledger, system_clock()
        self.reader = service.modes["live"].claim_documents
        self.queue = service.parked_by("live", "documents")
        self.bucket = Bucket()
        self.checks = self.with_scanner(None)

    def with_scanner(self, scanner):
        """Return the checks with a scanner."""
        work = DocumentChecks(self.live, self.queue, self.bucket, scanner)
        self.checks = QueueRunner(work, lambda: self.now)
        return self.checks

    async def attach(self, claim, *, cause=CAUSE, **contents):
        """Attach documents with these contents to a claim, and queue their checks."""
        documents = []
        for name, content in contents.items():
            if content is not None:
                self.bucket.objects[name, GENERATION] = content
            size = 10 if content is None else len(content)
            documents.append(
                Document(f"doc_{name}", name, "application/pdf", size, GENERATION, "AAAAAA==")
            )
        claim_id = f"clm_{claim}"
        created = ClaimCreated(claim_id, "ptn_1", "ent_1", claim_id, "fingerprint")
        await self.append(claim, 0, created, DocumentsAttached(claim_id, documents), cause=cause)
        await number(self.live)
        while await Subscription(self.live, self.queue).step():
            pass
        self.now = max(self.now, system_clock())

    async def append(self, claim, after, *events, cause=CAUSE):
        """Append to a claim's stream."""
        async with self.live.transaction() as transaction:
            await transaction.append(Append(UUID(int=claim), after, events, cause))

    async def pass_days(self, days=2):
        """Let so many days pass, making what is due after each hour."""
        for _ in range(days * 24):
            self.now += HOUR
            while await self.checks.step():
                pass

    async def flags(self, claim):
        """Return document, reason and detail of what a claim's stream says was found."""
        async with self.live.transaction() as transaction:
            past = await transaction.read(UUID(int=claim))
        found = [one.event for one in past if isinstance(one.event, DocumentFlagged)]
        return [(one.document_id, one.reason, one.detail) for one in found]

    async def parked(self):
        """Return positions and errors of what is set aside."""
        return [(one.position, one.error) for one in await parked(self.live.database)]


@pytest.fixture
def one(service):
    """Return the setting."""
    return Setting(service)


def left(owner):
    """Return how many checks are queued."""
    return owner.execute("select count(*) from live.document_checks").fetchone()[0]


async def test_what_is_not_the_declared_type_is_recorded_and_shown(one, owner):
    """Once, in its claim's stream and in the list for staff; genuine documents leave no trace."""
    await one.attach(1, a=PDF, b=b"<html>", c=b"")
    await one.checks.step()
    assert sorted(await one.flags(1)) == [
        ("doc_b", "type_mismatch", "text/html"),
        ("doc_c", "type_mismatch", "empty"),
    ]
    shown = await one.reader.flagged()
    assert {(row["document_id"], row["claim_id"]) for row in shown} == {
        ("doc_b", "clm_1"),
        ("doc_c", "clm_1"),
    }
    assert (left(owner), await one.parked()) == (0, [])


async def test_partners_take_turns(one):
    """However many documents one of them attaches first, by whatever keys; all are checked.

    Whose turn it is is drawn: the other one comes last by a chance of one in a billion.
    """
    for claim in (1, 2):
        cause = Cause(f"partner:ptn_1/key_{claim}", "req_1")
        await one.attach(claim, cause=cause, **{f"a{claim}_{nr}": PDF for nr in range(30)})
    await one.attach(3, cause=Cause("partner:ptn_2/key_3", "req_1"), b=PDF)
    while await one.checks.step():
        pass
    names = [name for name, _, _ in one.bucket.asked]
    assert (len(names), len(set(names))) == (61, 61)
    assert names.index("b") < 60


async def test_reads_are_ranged_and_bounded(one, monkeypatch):
    """Without a scanner only the head is read; with one, part by part, up to the linked size."""
    monkeypatch.setattr(checks, "PART_BYTES", 1000)
    monkeypatch.setattr(checks, "HEAD_BYTES", 100)
    content = PDF + bytes(2500 - len(PDF))
    await one.attach(1, a=content)
    await one.checks.step()
    assert one.bucket.asked == [("a", 0, 100)]
    async with clamd_server() as clamd:
        one.with_scanner(Clamd(clamd.url))
        await one.attach(2, b=content)
        await one.checks.step()
    assert one.bucket.asked[1:] == [
        ("b", 0, 100),
        ("b", 0, 1000),
        ("b", 1000, 1000),
        ("b", 2000, 500),
    ]
    assert clamd.scanned == [content]
    assert clamd.chunk_bytes_max == 1000


async def test_a_scanners_finding_is_recorded_beside_the_type(one):
    """Both are facts about the document."""
    async with clamd_server() as clamd:
        one.with_scanner(Clamd(clamd.url))
        await one.attach(1, a=b"MZ" + MALICIOUS, b=PDF + MALICIOUS, c=PDF)
        await one.pass_days(1)
    assert sorted(await one.flags(1)) == [
        ("doc_a", "malware", NAME),
        ("doc_a", "type_mismatch", "application/vnd.microsoft.portable-executable"),
        ("doc_b", "malware", NAME),
    ]


async def test_a_check_that_fails_is_retried_and_then_set_aside(one, owner):
    """After about a day of growing waits; others are checked meanwhile; a command retries it."""
    one.bucket.failing = {"a"}
    await one.attach(1, a=b"x", b=b"x")
    await one.attach(2, c=b"x")
    await one.pass_days()
    assert await one.parked() == [(2, "StorageUnavailable")]
    assert [name for name, _, _ in one.bucket.asked].count("a") == ATTEMPTS_MAX
    assert [await one.flags(claim) for claim in (1, 2)] == [
        [("doc_b", "type_mismatch", "unknown")],
        [("doc_c", "type_mismatch", "unknown")],
    ]
    one.bucket.failing = set()
    assert await one.queue.retry(one.live) == 1
    await one.pass_days(1)
    assert sorted(await one.flags(1)) == [
        ("doc_a", "type_mismatch", "unknown"),
        ("doc_b", "type_mismatch", "unknown"),
    ]
    assert (left(owner), await one.parked()) == (0, [])


async def test_a_scanner_that_is_away_does_not_hide_what_is_known(one):
    """The first bytes are compared before it is asked, and its verdict follows later."""
    one.with_scanner(Clamd("tcp://127.0.0.1:1"))
    await one.attach(1, a=b"MZ" + MALICIOUS)
    await one.checks.step()
    assert [reason for _, reason, _ in await one.flags(1)] == ["type_mismatch"]
    async with clamd_server() as clamd:
        one.with_scanner(Clamd(clamd.url))
        await one.pass_days(1)
    assert [reason for _, reason, _ in await one.flags(1)] == ["type_mismatch", "malware"]


async def test_what_storage_cuts_short_is_not_clean(one):
    """What was not read would count as looked at: it is read again."""
    async with clamd_server() as clamd:
        one.with_scanner(Clamd(clamd.url))
        await one.attach(1, a=PDF + bytes(1000) + MALICIOUS)
        one.bucket.ends_at = 1000
        await one.checks.step()
        assert (await one.flags(1), clamd.scanned) == ([], [])
        one.bucket.ends_at = 1 << 30
        await one.pass_days(1)
    assert [reason for _, reason, _ in await one.flags(1)] == ["malware"]


async def test_a_check_that_never_ends_is_left_at_its_deadline(one, monkeypatch):
    """A store or scanner that drips holds up nothing for longer."""
    monkeypatch.setattr(checks, "CHECK_SECONDS_MAX", 0.05)
    one.with_scanner(_Silent())
    await one.attach(1, a=PDF)
    assert await one.checks.step() == 1
    monkeypatch.undo()
    one.with_scanner(None)
    await one.pass_days(1)
    assert (await one.flags(1), await one.parked()) == ([], [])


async def test_an_object_that_is_gone_is_set_aside_unless_its_claim_was_erased(one, owner):
    """An erasure deletes the objects: then there is nothing to check."""
    await one.attach(1, a=None)
    await one.attach(2, b=None)
    erased = PersonalDataErased("clm_2", UUID(int=2), "asked")
    await one.append(2, 2, erased)
    owner.execute("update live.claim_documents set erased = not erased")  # no row decides that
    await one.pass_days(1)
    assert (left(owner), await one.parked()) == (0, [(2, MISSING)])


FORGED = "insert into live.document_checks select (jsonb_populate_record(d, %s)).* from {} as d"
ALTERED = {
    "mime_type": "image/png",
    "storage_path": "b",
    "size": 3,
    "generation": 8,
    "claim_id": "clm_3",
    "stream_id": str(UUID(int=3)),
}
SAID = "Mr Smith is a fraud"
ANOTHER = {"document_id": SAID}


@pytest.mark.parametrize(
    "row",
    [ALTERED, ALTERED | ANOTHER, ANOTHER | {"position": 999}, ANOTHER | {"position": 1}, ANOTHER],
)
async def test_a_row_decides_nothing_that_an_event_says(one, owner, row):
    """What is checked is what the claim's event attached; a row without one is dropped."""
    await one.attach(1, a=PDF)
    owner.execute("set role claim_ledger_live")
    owner.execute("create temporary table queued as table live.document_checks")
    owner.execute("delete from live.document_checks")
    owner.execute(FORGED.format("queued"), [Jsonb(row)])
    one.bucket.objects["b", 8] = b"MZ" + MALICIOUS
    await one.attach(3)
    with capture_logs() as logged:
        await one.pass_days(1)
    assert [await one.flags(claim) for claim in (1, 3)] == [[], []]
    assert (left(owner), await one.parked()) == (0, [])
    assert one.bucket.asked == ([] if ANOTHER.items() <= row.items() else [("a", 0, len(PDF))])
    told = [line["event"] for line in logged if line["event"].startswith("document check")]
    assert told == (["document check dropped"] if ANOTHER.items() <= row.items() else [])
    assert SAID not in str(logged)


async def test_a_row_decides_nothing_about_what_is_set_aside(one, owner):
    """The event that attached a document is parked in its own stream."""
    one.bucket.failing = {"a"}
    await one.attach(1, a=PDF)
    owner.execute("update live.document_checks set stream_id = gen_random_uuid()")
    await one.pass_days()
    assert await one.parked() == [(2, "StorageUnavailable")]
    streams = owner.execute("select stream_id from live.parked").fetchall()
    assert streams == [(UUID(int=1),)]


async def test_another_generation_is_not_what_was_linked(one):
    """What replaced an object is not checked in its place."""
    await one.attach(1, a=PDF)
    one.bucket.objects["a", GENERATION + 1] = one.bucket.objects.pop(("a", GENERATION))
    await one.pass_days(1)
    assert await one.parked() == [(2, MISSING)]


async def test_a_check_that_is_cut_off_each_time_is_set_aside(one, owner):
    """Attempts are counted before anything is read."""
    await one.attach(1, a=PDF)
    owner.execute("update live.document_checks set attempts = %s", (ATTEMPTS_MAX,))
    await one.checks.step()
    assert (one.bucket.asked, await one.parked()) == ([], [(2, CUT_OFF)])


class _Silent:
    """A scanner that never has a verdict."""

    async def scan(self, chunks):
        """Read, and wait for ever."""
        async for _ in chunks:
            pass
        await asyncio.Event().wait()
