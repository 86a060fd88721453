"""Answers from the log rest on events whose hashes were made again, and on a signed checkpoint."""

from datetime import timedelta
from inspect import unwrap

import pytest

from service.archive.port import ArchiveUnavailable
from service.cli.audit.history import history
from service.cli.target import Target
from service.cli.verdict import Findings
from service.evidence.replay.footing import footing, stream_footing
from service.evidence.replay.log_fault import LogFault
from service.evidence.replay.moment import moment_of
from service.evidence.replay.state import replayed
from service.facts.partners import PartnerRevoked, partner_stream
from service.ledger.events import Meta
from service.ledger.following.parking import NOT_OURS
from service.ledger.sequencer import Sequencer
from tests.evidence.checkpointing import ALTER, KEY, REHASH, lose
from tests.ledger.raw_events import RawEvent, append_with_macs, number_past_the_sequencer
from tests.world import STAFF

ALTERED = "position 4: the event is not the one that was hashed there"
REHASHED = "the events are not those that were signed"
DATED = """
update accounts.events set state = convert_to(replace(convert_from(state, 'UTF8'), '"at":"{}',
    '"at":"{}'), 'UTF8')
where append_id in (select append_id from accounts.log where position > {})
"""
HIDE = """
update accounts.events set topic = 'LineageBegun'
where append_id = (select append_id from accounts.log where position = 1)
"""


@pytest.fixture
async def partners(service, checkpoints):
    """Return the partners whose events are at positions 1, 3, 4, 5, 6; signed are 2, 5 and 6.

    The lineage begins at position 2.
    """
    made: list[str] = []
    for count in (1, 3, 1, 1):
        made += [await service.partners.add("P", "a@example.com", STAFF) for _ in range(count)]
        if len(made) < 6:
            await checkpoints.make()
    await Sequencer(service.accounts).number_committed()
    return made


async def replay(ledger, position, keys=(KEY,), published=None):
    """Return what a replay rests on."""
    replaying = replayed(ledger, position, lambda _steps: None, keys, published=published)
    async with replaying as state:
        return state.footing


async def shown(service, subject, prove=None):
    """Return what `audit history` shows."""
    assert history.callback is not None
    with_keys = service.settings.values | {"CHECKPOINT_KEYS": (KEY,)}
    service.settings = type(service.settings)(with_keys)
    return await unwrap(history.callback)(
        Target(service, STAFF), subject, "accounts", 10, prove, force=False
    )


async def test_an_answer_names_the_checkpoint_that_it_rests_on(service, partners):
    """The first that covers all that was used; what came after the last one is counted."""
    accounts = service.accounts
    sizes = [(await replay(accounts, at)).checkpoint.size for at in (1, 2, 3, 5, 6, 7)]
    assert sizes == [2, 2, 5, 5, 6, 6]
    assert [(await replay(accounts, at)).unsigned for at in (6, 7)] == [0, 1]
    rests = [await stream_footing(accounts, [KEY], partner_stream(one)) for one in partners]
    assert [(one.checkpoint and one.checkpoint.size, one.unsigned) for one in rests] == [
        *((2, 0), (5, 0), (5, 0), (5, 0), (6, 0)),
        (None, 1),
    ]
    assert await stream_footing(accounts, [], partner_stream(partners[0])) == (None, 1)
    answer = await shown(service, partners[2])
    assert [one["size"] for one in answer["rests_on"]] == [5]
    assert not isinstance(answer, Findings)


@pytest.mark.usefixtures("partners")
async def test_a_log_that_lost_what_was_published_of_it_is_not_replayed(
    service, checkpoints, owner, attack
):
    """Whoever cut it off removed the checkpoints that said so, but not those in the archive."""
    accounts, at = service.accounts, service.clock()
    published = await checkpoints.newest_published()
    assert (published.size, (await replay(accounts, 7, published=published)).unsigned) == (6, 1)
    assert (await moment_of(accounts, [KEY], at=at, published=published)).position == 7
    await lose(owner, attack, 5)
    assert (await replay(accounts, 5)).size == 5
    assert await checkpoints.newest_published() == published
    with pytest.raises(LogFault, match="position 6: a checkpoint was published there, and the"):
        await replay(accounts, 5, published=published)
    with pytest.raises(LogFault, match="position 6: a checkpoint was published there, and the"):
        await moment_of(accounts, [KEY], at=at, published=published)


async def test_no_history_is_shown_as_whole_of_a_log_that_was_cut_back(
    service, checkpoints, partners, place, owner, attack, tmp_path
):
    """What is left of it is shown with the fault, and nothing is said not to have been there."""
    service.archive = place
    kept, gone = partners[0], partners[5]
    assert not isinstance(await shown(service, gone), Findings)
    published, whole = (
        await checkpoints.newest_published(),
        "position 6: a checkpoint was published",
    )
    await lose(owner, attack, 5)
    for subject, events in ((kept, 1), (gone, 0)):
        answer = await shown(service, subject)
        assert isinstance(answer, Findings), subject
        assert [one["position"] for one in answer["faults"]] == [6]
        assert len(list(answer["events"])) == events
        stream = partner_stream(subject)
        with pytest.raises(LogFault, match=whole):
            await stream_footing(service.accounts, [KEY], stream, published)
    attack(ALTER.format(1))
    for subject in (gone, kept):  # nothing can be proved
        assert isinstance(await shown(service, subject, tmp_path / "proof"), Findings)
        assert not (tmp_path / "proof").exists()


async def test_a_history_needs_the_archive_and_the_lineage_that_it_knows(
    service, partners, place, attack
):
    """Where it is away, nothing is shown; where the log lost its lineage, that is the fault."""
    service.archive = place
    place.fails = {"get", "names"}
    with pytest.raises(ArchiveUnavailable):
        await shown(service, partners[0])
    place.fails = set()
    attack("update accounts.events set topic = 'Nothing' where topic = 'LineageBegun'")
    answer = await shown(service, partners[0])
    assert isinstance(answer, Findings)
    assert NOT_OURS in answer["faults"][0]["fault"]


@pytest.mark.usefixtures("partners")
async def test_a_checkpoint_in_place_of_the_published_one_is_a_fault(service, checkpoints, attack):
    """Of the same size, and signed with the key: only the archive shows the difference."""
    published = await checkpoints.newest_published()
    another = published._replace(root=bytes(32)).sign(KEY)
    attack(f"update accounts.checkpoints set note = '{another}' where size = 6")  # noqa: S608 - a note of ours
    with pytest.raises(LogFault, match="stored checkpoint is not the one that was published"):
        await replay(service.accounts, 2, published=published)


async def test_an_event_that_was_altered_in_place_is_in_no_answer(service, partners, attack):
    """Neither as it is, nor once its hash was made again, nor with that of the whole tree."""
    accounts, stream = service.accounts, partner_stream(partners[2])
    for change, said in ((ALTER, ALTERED), (REHASH, REHASHED)):
        attack(change.format(4))
        for position in (4, 7):
            with pytest.raises(LogFault, match=said):
                await replay(accounts, position)
        with pytest.raises(LogFault, match=said):
            await stream_footing(accounts, [KEY], stream)
        answer = await shown(service, partners[2])
        assert isinstance(answer, Findings)
        assert said in answer["faults"][0]["fault"]
    assert (await replay(accounts, 2)).checkpoint.size == 2
    assert not isinstance(await shown(service, partners[4]), Findings)  # of another checkpoint
    attack(HIDE)  # no row of a read model comes of what it is now
    with pytest.raises(LogFault, match="position 1: the event is not the one"):
        await replay(accounts, 2)
    attack(ALTER.format(7))
    with pytest.raises(LogFault, match="position 7: the event is not the one"):
        await moment_of(accounts)
    with pytest.raises(LogFault, match="position 7: the event is not the one"):
        await footing(accounts, [KEY], {7: b"another"})


async def test_what_this_service_did_not_write_is_in_no_answer(service, partners, owner):
    """Nor where it waits for a number, nor where the login numbers it: it has no MAC that holds."""
    accounts, stream = service.accounts, partner_stream(partners[4])
    meta = Meta(service.clock(), STAFF.actor, STAFF.request_id, accounts.name)
    revoked = PartnerRevoked(partner_id=partners[4])
    state = accounts.codec.encode(stream, 2, revoked, meta, None)
    forged = RawEvent(stream, 2, "PartnerRevoked", state)
    async with accounts.transaction() as transaction:
        (append_id,) = await append_with_macs(transaction, [forged], [b"\1" + bytes(32)])
    for position in (None, 8):
        if position is not None:
            assert number_past_the_sequencer(owner, append_id) == position
        answer = await shown(service, partners[4])
        assert isinstance(answer, Findings)
        assert [one["position"] for one in answer["faults"]] == [position]
        assert "this service did not write it" in answer["faults"][0]["fault"]
        assert [one.get("fault") for one in answer["events"]] == [None, NOT_OURS]
    for keys in ([KEY], []):  # with and without a checkpoint before it
        with pytest.raises(LogFault, match="position 8: this service did not write it"):
            await replay(accounts, 8, keys)
        assert (await replay(accounts, 7, keys)).unsigned == (1 if keys else 7)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("update accounts.head set size = 5", "position 6: the log ends at 7, and its head says 5"),
        ("update accounts.events set state = '\\xff' where append_id = 7", "position 7: .*not the"),
        ("update accounts.events set state = '{}' where append_id = 7", "position 7: .*not the"),
        ("delete from accounts.events where append_id = 7", "position 7: its event is gone"),
    ],
)
@pytest.mark.usefixtures("partners")
async def test_no_time_hides_the_end_of_the_log(service, attack, change, said):
    """What a head, or an event without its time, would leave out is a fault."""
    last = await moment_of(service.accounts)
    attack(change)
    for at in (last.at - timedelta(days=1), last.at):
        with pytest.raises(LogFault, match=said):
            await moment_of(service.accounts, at=at)


@pytest.mark.usefixtures("partners")
async def test_no_time_that_was_altered_has_events_left_out(service, attack):
    """As of a moment: what is passed over because of its time is what was hashed and signed."""
    accounts = service.accounts
    third = (await moment_of(accounts, [KEY], position=3)).at
    assert (await moment_of(accounts, [KEY], at=third)).position >= 3
    for changes, said in (
        ([DATED.format(2, 3, 3)], "position 7: the event is not the one"),
        ([REHASH.format(position) for position in range(4, 8)], f"position 7: {NOT_OURS}"),
        ([DATED.format(3, 2, 6), REHASH.format(7)], REHASHED),  # the last one as it was
    ):
        attack(*changes)
        with pytest.raises(LogFault, match=said):
            await moment_of(accounts, [KEY], at=third)


@pytest.mark.parametrize("how", ["set topic = 'Nothing'", "set originator_version = 9, state = ''"])
async def test_a_lineage_that_is_altered_does_not_take_the_footing_away(
    service, partners, attack, how
):
    """What it begins has signed the events: they are not shown as if nobody had."""
    attack(
        REHASH.format(4),
        f"update accounts.events {how} where topic = 'LineageBegun'",
    )
    answer = await shown(service, partners[2])
    assert isinstance(answer, Findings)
    assert "of a lineage that the log has lost" in answer["faults"][0]["fault"]
    attack(
        "delete from accounts.checkpoints where size < 6",
        "update accounts.checkpoints set note = 'x'",
    )
    assert not isinstance(await shown(service, partners[4]), Findings)  # anybody can put that in


@pytest.mark.usefixtures("partners")
async def test_a_checkpoint_that_nobody_signed_bears_nothing(service, attack):
    """An altered note is a fault, not a reason to rest on another; a tree is only a short cut."""
    accounts = service.accounts
    attack("update accounts.checkpoints set tree = null where size = 2")
    assert (await footing(accounts, [KEY], {})).checkpoint is None
    assert (await replay(accounts, 5)).checkpoint.size == 5
    attack("update accounts.checkpoints set note = replace(note, '— ', '— x') where size = 5")
    with pytest.raises(LogFault, match="its stored checkpoint is not sound"):
        await replay(accounts, 5)
