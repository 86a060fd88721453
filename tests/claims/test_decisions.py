from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from service.claims import decisions
from service.claims.decisions import Upload
from service.claims.wire import PARTNER_INVOICE_IDS_BYTES_MAX, ClaimRequest
from service.core.errors import Refusal
from service.facts import replays
from service.facts.access import Access
from service.facts.caller import Caller
from service.facts.claims import (
    STAGES,
    ClaimCreated,
    ClaimReplayMismatched,
    ClaimStageChanged,
    Document,
    DocumentsAttached,
    FirstMessagePosted,
    fold,
)
from service.ledger.encryption import DataKey
from service.ledger.events import Event

NOW = datetime(2026, 3, 1, tzinfo=UTC)
CALLER = Caller("ptn_1", "key_1", "live", 7, False, False, "req_1")
CONNECTED = Access("ent_1", "A business", True, 1, True, NOW)
KEY = DataKey(UUID(int=1), b"k" * 32, b"", "")
CREATED = ClaimCreated(
    claim_id="clm_1",
    partner_id="ptn_1",
    entity_id="ent_1",
    partner_claim_id="case",
    fingerprint="",
)


def request(**more):
    """Return a small valid request."""
    body = {
        "entity_id": "ent_1",
        "partner_claim_id": "case",
        "defendant": {"name": "Debtor"},
        "invoices": [{"due_date": "2026-01-31"}],
    }
    return msgspec.convert(body | more, ClaimRequest)


def create(**more):
    """Decide on a request for a claim that does not exist."""
    command = decisions.create_claim(CALLER, request(**more))
    return decisions.create(command, CONNECTED, KEY, "clm_1", "msg_1")


def test_a_claim_is_created_with_what_is_personal_apart():
    """The natural key and references are in the clear; who owes what is not."""
    events, outcome = create(partner_invoice_ids=["a", "b"], partner_user_id="u")
    (created,) = events
    assert isinstance(created, ClaimCreated)
    assert (created.partner_user_id, created.partner_invoice_ids) == ("u", ["a", "b"])
    assert created.details == {
        "defendant": {"name": "Debtor"},
        "invoices": [{"due_date": "2026-01-31"}],
    }
    assert outcome == decisions.Created("clm_1", None, [], False, None)


def test_a_new_claim_has_a_bounded_size_of_references():
    """Counted in bytes of UTF-8, over all of them; a list of claims echoes them."""
    most = ["é" * 128] * (PARTNER_INVOICE_IDS_BYTES_MAX // 256)
    create(partner_invoice_ids=most)
    with pytest.raises(Refusal, match="validation_failed") as refused:
        create(partner_invoice_ids=[*most, "x"])
    assert refused.value.field_errors == {
        "partner_invoice_ids": ["must have at most 65536 bytes together"]
    }


def test_a_claim_that_is_older_than_the_limit_is_replayed():
    """It was created with more references, and its replay matches."""
    sent = request(partner_invoice_ids=["x" * 255] * 1_000)
    made = msgspec.structs.replace(CREATED, fingerprint=replays.fingerprint(KEY, sent, 1))
    command = decisions.create_claim(CALLER, sent)
    mismatch, outcome = decisions.replay(command, CONNECTED, made, KEY)
    assert (mismatch, outcome.matches) == (None, True)


def test_a_message_becomes_the_first_message():
    """A message makes a second event, and its id is answered."""
    events, outcome = create(message="unpaid")
    assert isinstance(events[1], FirstMessagePosted)
    assert events[1].text == "unpaid"
    assert outcome.message_id == "msg_1"


UPLOADS = [
    Upload(Document("doc_b", "path/b", "image/png", 2, 20, "crc-b"), "b.png"),
    Upload(Document("doc_a", "path/a", "application/pdf", 1, 10, "crc-a"), "a.pdf"),
]


def test_documents_alone_make_a_first_message():
    """The first message has no text then; the documents keep their order."""
    command = decisions.create_claim(CALLER, request(), UPLOADS)
    events, outcome = decisions.create(command, CONNECTED, KEY, "clm_1", "msg_1")
    _, attached, posted = events
    assert attached == DocumentsAttached(
        claim_id="clm_1",
        documents=[upload.document for upload in UPLOADS],
        filenames=["b.png", "a.pdf"],
    )
    assert isinstance(posted, FirstMessagePosted)
    assert (posted.message_id, posted.text) == ("msg_1", None)
    assert (outcome.message_id, outcome.document_ids) == ("msg_1", ["doc_b", "doc_a"])
    assert fold(events).attached == attached


def test_references_without_uploads_attach_nothing():
    """What was found in storage counts, not what was asked for."""
    events, outcome = create(document_refs=[])
    assert [type(event) for event in events] == [ClaimCreated]
    assert outcome.document_ids == []


def test_a_decision_is_guarded_by_the_connection_that_it_rests_on():
    """The connection may not change between the decision and its write, whatever its version."""
    command = decisions.create_claim(CALLER, request())
    assert command.guard(CONNECTED) == (command.connection, CONNECTED.version)


def test_an_empty_message_is_none():
    """An empty message and no documents: no first message, `message_id` null (contract 2.6)."""
    events, outcome = create(message="")
    assert (len(events), outcome.message_id) == (1, None)


@pytest.mark.parametrize(
    ("access", "code"),
    [
        (CONNECTED._replace(version=0, connected=False), "entity_not_owned"),
        (CONNECTED._replace(connected=False), "partner_disconnected"),
    ],
)
def test_only_a_connected_partner_writes(access, code):
    """Creating and replaying are both writes (readings)."""
    command = decisions.create_claim(CALLER, request())
    with pytest.raises(Refusal) as refused:
        decisions.create(command, access, KEY, "clm_1", "msg_1")
    assert refused.value.code == code
    with pytest.raises(Refusal) as refused:
        decisions.replay(command, access, CREATED, KEY)
    assert refused.value.code == code


def test_a_replay_with_the_same_body_matches():
    """Field order and white space are not part of a body; its values are."""
    (made,), _ = create()
    assert isinstance(made, ClaimCreated)
    command = decisions.create_claim(CALLER, request())
    mismatch, outcome = decisions.replay(command, CONNECTED, made, KEY)
    assert (mismatch, outcome) == (None, decisions.Created("clm_1", None, [], True, True))


def test_a_replay_with_another_body_is_named():
    """It answers as the first call did, and says what was different by its fingerprint alone."""
    (made,), _ = create()
    assert isinstance(made, ClaimCreated)
    command = decisions.create_claim(CALLER, request(message="another"))
    mismatch, outcome = decisions.replay(command, CONNECTED, made, KEY)
    assert mismatch is not None
    assert isinstance(mismatch.event, ClaimReplayMismatched)
    assert mismatch.event.fingerprint not in {"", made.fingerprint}
    assert (outcome.claim_id, outcome.matches) == ("clm_1", False)


def test_nothing_is_compared_after_an_erasure():
    """Without the data key a replay still answers, and claims no comparison."""
    command = decisions.create_claim(CALLER, request())
    mismatch, outcome = decisions.replay(command, CONNECTED, CREATED, None)
    assert (mismatch, outcome.already_existed, outcome.matches) == (None, True, None)


def test_the_stream_is_the_natural_key():
    """Partner, entity and reference, byte for byte, decide; the body does not."""
    one = decisions.create_claim(CALLER, request())
    same = decisions.create_claim(CALLER, request(message="x"))
    others = [
        decisions.create_claim(CALLER, request(partner_claim_id="Case")),
        decisions.create_claim(CALLER, request(entity_id="ent_2")),
        decisions.create_claim(CALLER._replace(partner_id="ptn_2"), request()),
        decisions.create_claim(CALLER._replace(mode="test"), request()),
    ]
    assert one.key == same.key
    assert len({one.key, *(other.key for other in others)}) == 5


def test_a_sandbox_epoch_starts_over():
    """A reset sandbox knows no old reference; live mode has no epochs."""
    test = CALLER._replace(mode="test")
    epochs = [test._replace(sandbox_epoch=number) for number in (0, 1)]
    keys = {decisions.create_claim(caller, request()).key for caller in epochs}
    assert len(keys) == 2
    assert CALLER.epoch == 0


def test_stages_move():
    """A claim moves to any stage of the list; to its own: nothing happens."""
    claim = fold([CREATED])
    assert decisions.move(claim, "settled") == [
        ClaimStageChanged(claim_id="clm_1", stage="settled")
    ]
    assert decisions.move(claim, STAGES[0]) == []
    moved = fold([CREATED, ClaimStageChanged(claim_id="clm_1", stage="settled")])
    assert (moved.stage, moved.version) == ("settled", 2)


def test_a_move_is_from_the_stage_that_was_seen():
    """Whoever looked before it moved decides again; who moves it where it is has what they want."""
    moved = fold([CREATED, ClaimStageChanged(claim_id="clm_1", stage="settled")])
    with pytest.raises(Refusal, match="form_outdated"):
        decisions.move(moved, "closed", STAGES[0])
    assert decisions.move(moved, "settled", STAGES[0]) == []
    assert len(decisions.move(moved, "closed", "settled")) == 1


def test_a_first_message_is_folded():
    """The claim knows its first message."""
    posted = FirstMessagePosted(
        claim_id="clm_1", message_id="msg_1", partner_id="ptn_1", entity_id="ent_1", text="t"
    )
    assert fold([CREATED, posted]).message == posted


@pytest.mark.parametrize(
    ("facts", "stage", "code"),
    [([CREATED], "no such stage", "validation_failed"), ([], "settled", "claim_not_found")],
)
def test_impossible_moves_are_refused(facts, stage, code):
    """A stage outside the list, and a claim that does not exist."""
    with pytest.raises(Refusal) as refused:
        decisions.move(fold(facts), stage)
    assert refused.value.code == code


def test_a_foreign_fact_is_refused():
    """A stream that holds another noun's event is not read as if nothing were wrong."""

    class Foreign(Event, frozen=True):
        """Of another noun."""

    with pytest.raises(TypeError):
        fold([Foreign()])
