"""Receipts: a claim's events, proved to anyone with the file and a public key."""

import re
from uuid import UUID

import psycopg
import pytest

from service.evidence.export import receipt_writer
from service.evidence.export.format import EvidenceFault
from service.evidence.export.receipt_verifier import check_receipt
from service.evidence.export.receipt_writer import begins, find_claim, make_receipt, numbered_stream
from service.ledger.sequencer import SequencingTimeout
from tests.evidence.evidence_world import KEY, OTHER, received, signed
from tests.patience import PATIENCE_SECONDS
from tests.world import STAFF


async def test_a_receipt_proves_a_claims_events(keyed, tmp_path):
    """It has the claim's whole stream, and the events' actors, times and positions."""
    entity_id, claim_id = keyed.about
    checkpoint = await received(keyed.service, claim_id, tmp_path / "receipt")
    proved = check_receipt((tmp_path / "receipt").read_bytes(), [KEY])
    assert (proved.claim_id, proved.entity_id) == (claim_id, entity_id)
    assert proved.partner_id.startswith("ptn_")
    assert proved.checkpoint == checkpoint.checkpoint
    topics = [event["topic"] for event in proved.events]
    assert topics == ["ClaimCreated", "ClaimStageChanged"]
    assert [event["version"] for event in proved.events] == [1, 2]
    assert proved.events[1]["actor"] == STAFF.actor
    assert all(re.fullmatch(r"[0-9T:-]{19}\.[0-9]{3}Z", event["at"]) for event in proved.events)


async def test_a_claim_is_found_by_its_events(keyed):
    """Read models do not matter; other streams and unknown claims are refused."""
    _, claim_id = keyed.about
    live = keyed.service.modes["live"]
    row = await live.claim_list.by_id(claim_id)
    assert await begins(live.ledger, row["stream_id"], claim_id)
    assert not await begins(live.ledger, row["stream_id"], "clm_other")
    assert not await begins(live.ledger, UUID(int=0), claim_id)
    assert await find_claim(live.ledger, claim_id) == row["stream_id"]
    assert await find_claim(live.ledger, "clm_other") is None
    assert await find_claim(keyed.service.modes["test"].ledger, claim_id) is None


async def test_a_receipt_of_another_claim_is_not_made(keyed):
    """A receipt that would fail its check is not written."""
    live, checkpoint = keyed.service.modes["live"], await signed(keyed.service)
    row = await live.claim_list.by_id(keyed.about[1])
    rows = await numbered_stream(live.ledger, row["stream_id"])
    for claim_id, chosen in (("clm_other", rows), (keyed.about[1], rows[1:]), ("clm_other", [])):
        with pytest.raises(EvidenceFault):
            await make_receipt(live.ledger, claim_id, chosen, checkpoint)


async def test_a_receipt_holds_after_an_erasure(keyed, database_url, tmp_path):
    """It has only encrypted fields: old and new receipts are equal, and neither is readable."""
    _, claim_id = keyed.about
    await received(keyed.service, claim_id, tmp_path / "before")
    with psycopg.connect(database_url, autocommit=True) as owner:
        assert owner.execute("delete from live.data_keys").rowcount
    await received(keyed.service, claim_id, tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert check_receipt((tmp_path / "after").read_bytes(), [KEY]).claim_id == claim_id
    assert "Quote" not in (tmp_path / "after").read_text()


async def test_a_receipt_needs_its_key(keyed, tmp_path):
    """Another key of the same name proves nothing; one matching key among several suffices."""
    await received(keyed.service, keyed.about[1], tmp_path / "receipt")
    with pytest.raises(EvidenceFault, match="signed by no key"):
        check_receipt((tmp_path / "receipt").read_bytes(), [OTHER])
    assert check_receipt((tmp_path / "receipt").read_bytes(), [OTHER, KEY]).events


async def test_a_receipt_of_unnumbered_events_times_out(keyed, monkeypatch):
    """Another process holds the head: the wait ends without a verdict."""
    live = keyed.service.modes["live"]
    row = await live.claim_list.by_id(keyed.about[1])
    assert receipt_writer.NUMBERING_SECONDS_MAX == 30
    async with live.ledger.transaction() as transaction:
        await transaction.connection.execute("select from live.head for update")
        monkeypatch.setattr(receipt_writer, "NUMBERING_SECONDS_MAX", 0.2)
        with pytest.raises(SequencingTimeout, match="wait for their numbers"):
            await numbered_stream(live.ledger, row["stream_id"])
    monkeypatch.setattr(receipt_writer, "NUMBERING_SECONDS_MAX", PATIENCE_SECONDS)
    assert all(one["position"] for one in await numbered_stream(live.ledger, row["stream_id"]))


async def test_an_event_that_nobody_queued_is_not_waited_for(keyed, database_url):
    """Its row was taken out of the queue: it will never have a number, and no process is at it."""
    live = keyed.service.modes["live"]
    row = await live.claim_list.by_id(keyed.about[1])
    with psycopg.connect(database_url, autocommit=True) as owner:
        assert owner.execute("delete from live.pending").rowcount
    with pytest.raises(EvidenceFault, match="in neither log nor queue"):
        await numbered_stream(live.ledger, row["stream_id"])
