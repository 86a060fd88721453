"""Receipts: a claim's events, proved to whoever has the file and a public key."""

import psycopg
import pytest

from service.audit.evidence import EvidenceFault
from service.audit.receipt import numbered_stream
from service.audit.receipt_check import check_receipt
from tests.audit.evidence_world import KEY, OTHER, history, keyed_settings, received
from tests.world import STAFF, world_on


@pytest.fixture
async def keyed(database_url, tmp_path):
    """Answer a world whose checkpoints are signed, with a little history."""
    settings = keyed_settings(database_url, tmp_path / "mail")
    async with world_on(settings, tmp_path / "mail", follow=False) as one:
        one.about = await history(one)
        yield one


async def test_a_receipt_proves_a_claims_events(keyed, tmp_path):
    """Who, when, what and where in the log; the claim's whole stream so far, numbered for it."""
    entity_id, claim_id = keyed.about
    checkpoint = await received(keyed.service, claim_id, tmp_path / "receipt")
    proved = check_receipt(tmp_path / "receipt", [KEY])
    assert (proved.claim_id, proved.entity_id) == (claim_id, entity_id)
    assert proved.partner_id.startswith("ptn_")
    assert proved.checkpoint == checkpoint.checkpoint
    topics = [event["topic"] for event in proved.events]
    assert topics == ["ClaimCreated", "ClaimStageChanged"]
    assert [event["version"] for event in proved.events] == [1, 2]
    assert proved.events[1]["actor"] == STAFF.actor
    assert proved.events[0]["at"].endswith("Z")


async def test_a_receipt_holds_after_an_erasure(keyed, database_url, tmp_path):
    """It carries the sealed boxes: an old one and a new one are alike, and nothing is readable."""
    _, claim_id = keyed.about
    await received(keyed.service, claim_id, tmp_path / "before")
    with psycopg.connect(database_url, autocommit=True) as owner:
        assert owner.execute("delete from live.data_keys").rowcount
    await received(keyed.service, claim_id, tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert check_receipt(tmp_path / "after", [KEY]).claim_id == claim_id
    assert "Quote" not in (tmp_path / "after").read_text()


async def test_a_receipt_needs_its_key(keyed, tmp_path):
    """Another key of the same name proves nothing; one among several is enough."""
    await received(keyed.service, keyed.about[1], tmp_path / "receipt")
    with pytest.raises(EvidenceFault, match="signed by no key"):
        check_receipt(tmp_path / "receipt", [OTHER])
    assert check_receipt(tmp_path / "receipt", [OTHER, KEY]).events


async def test_events_that_cannot_be_numbered_are_told(keyed, monkeypatch):
    """Another process holds the head: the wait ends with a fault."""
    live = keyed.service.modes["live"]
    row = await live.claim_list.by_id(keyed.about[1])
    monkeypatch.setattr("service.audit.receipt.NUMBERING_SECONDS_MAX", 0.2)
    async with live.ledger.transaction() as transaction:
        await transaction.connection.execute("select from live.head for update")
        with pytest.raises(EvidenceFault, match="not been numbered"):
            await numbered_stream(live.ledger, row["stream_id"])
    assert all(one["position"] for one in await numbered_stream(live.ledger, row["stream_id"]))
