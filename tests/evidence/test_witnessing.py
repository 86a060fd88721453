"""Checkpoints are cosigned by witnesses behind their signing, and a policy demands it."""

from types import SimpleNamespace

import click
import pytest
import structlog

from service.cli.audit.absence import absence
from service.cli.audit.checked import checked
from service.cli.audit.countersigned import countersigned_checkpoint
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.signatures import full_note
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.countersigners import NOBODY
from service.evidence.countersigning.pace import LOOK_SECONDS, RETRY_SECONDS_MAX
from service.evidence.countersigning.state import countersigning_state
from service.evidence.countersigning.witnessing import Witnessing
from service.evidence.demands import Demands
from service.evidence.export.export_verifier import verify_export
from service.evidence.export.export_writer import ExportScope, Signed, write_export
from service.evidence.export.format import EvidenceFault, encode
from service.evidence.note import NoteInvalid
from service.evidence.proofs.consistency import make_consistency
from service.evidence.proofs.streams import ClaimName
from service.evidence.report.lines import LogPart, ReportReader, ReportSubject
from service.evidence.report.names import Names
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from tests.evidence.checkpointing import KEY, checkpointed
from tests.evidence.witnesses import PROGRAM, policy_of, policy_text, posting, served
from tests.world import settings_for


async def test_each_checkpoint_is_cosigned_once_by_each_witness(
    checkpoints, asking, witnesses, place, add, time
):
    """Under both of its keys; the lines are kept, published, and part of the note from then on."""
    await add(3)
    for _ in range(2):
        made = await checkpointed(checkpoints, add, 2)
        assert await full_note(checkpoints.ledger.database, made.note, [KEY], NOBODY) == made.note
        assert [await one.step() for one in asking] == [1, 1, 1]
        assert [await one.step() for one in asking] == [None] * 3, "not yet"
        time.seconds += LOOK_SECONDS
        assert [await one.step() for one in asking] == [0, 0, 0], "nothing is new"
        time.seconds += LOOK_SECONDS
    note = await full_note(checkpoints.ledger.database, made.note, [KEY], NOBODY)
    assert Checkpoint.open(note, [KEY]) == made.checkpoint
    policy = policy_of(3, *witnesses)
    assert set(policy.demand(note)) == {"w0", "w1", "w2"}
    with pytest.raises(NoteInvalid, match="quorum all-of-them is not reached: signed by no witn"):
        policy.demand(made.note)
    folder = f"checkpoints/{made.checkpoint.origin}/{made.checkpoint.size:020}"
    lines = [await place.get(name) for name in await place.inner.names(f"{folder}.signatures/")]
    assert len(lines) == 6
    assert sorted(note.encode().splitlines(keepends=True)[5:]) == sorted(lines)
    assert witnesses[0].told[-1] == f"signed {made.checkpoint.origin} {made.checkpoint.size}"


async def test_verifying_the_database_takes_the_newest_checkpoint_of_the_quorum(
    checkpoints, asking, witnesses, accounts, add, time
):
    """Where too few have signed any, nothing verifies under the policy."""
    await checkpointed(checkpoints, add, 2)
    await asking[0].step()

    async def judged(least):
        policy = policy_of(least, *witnesses)
        return await verify_ledger(accounts.database, Evidence([KEY], demands=Demands(policy)))

    lacking = await judged(2)
    assert (lacking.ok, lacking.position) == (False, None)
    assert "signed by w0" in (lacking.fault or "")
    await asking[2].step()
    await checkpointed(checkpoints, add, 1)
    time.seconds += LOOK_SECONDS
    await asking[0].step()
    found = await judged(2)
    assert (found.ok, found.size) == (True, 4)
    assert (found.countersigned.witnesses, found.countersigned.size) == (["w0", "w2"], 3)


async def test_a_worker_that_knows_nothing_learns_the_witness_s_size(
    checkpoints, accounts, place, witnesses, add, time
):
    """By the answer to its first request; a proof from there follows."""
    post = posting(witnesses[0])
    for count in (1, 6, 3):
        await add(count)
        await checkpoints.make()
        fresh = Witnessing(
            Checkpoints(accounts, [KEY], place),
            place,
            witnesses[0].url,
            witnesses[0].keys,
            post=post,
            monotonic=time,
        )
        assert await fresh.step() == 1
    assert len(witnesses[0].told) == 3


async def test_what_was_not_published_is_shown_to_nobody(checkpoints, asking, place, add, time):
    """It may be of a database that lost a failover; a witness would never forget it."""
    await checkpointed(checkpoints, add, 1)
    await add(1)
    place.fails = {"put next"}
    with pytest.raises(Exception, match="it is away"):
        await checkpoints.make()
    place.fails = set()
    assert await asking[0].step() == 0
    await checkpoints.make()
    time.seconds += LOOK_SECONDS
    assert await asking[0].step() == 1


async def test_a_witness_that_refuses_or_is_away_is_asked_again_ever_later(
    checkpoints, place, witnesses, add, time, owner
):
    """A fork is an error in the log."""
    made = await checkpointed(checkpoints, add, 2)
    away = Witnessing(
        checkpoints, place, "https://x.example", witnesses[0].keys, post=posting(), monotonic=time
    )
    asked = 0
    with structlog.testing.capture_logs() as logs:
        for _ in range(360):
            await away.step()
            time.seconds += LOOK_SECONDS
    asked = [line["event"] for line in logs]
    assert set(asked) == {"witness did not sign"}
    assert 8 <= len(asked) <= 16
    other = Checkpoint(made.checkpoint.origin, 2, bytes(32)).sign(KEY)
    assert witnesses[1].answer(f"old 0\n\n{other}".encode()).status == 200
    forked = Witnessing(
        checkpoints,
        place,
        witnesses[1].url,
        witnesses[1].keys,
        post=posting(witnesses[1]),
        monotonic=time,
    )
    with structlog.testing.capture_logs() as logs:
        assert await forked.step() == 0
    assert [(one["event"], one["log_level"]) for one in logs] == [("witness finds a fork", "error")]
    assert not owner.execute("select from accounts.checkpoint_signatures").fetchall()
    policy = policy_of(1, witnesses[1])
    state = await countersigning_state(checkpoints.ledger, policy, None)
    assert (state.refusals, state.unstamped_since) == (1, None)
    assert state.unwitnessed_since is not None
    (witnesses[1].home / PROGRAM.origin_hash(made.checkpoint.origin) / "checkpoint").unlink()
    for _ in range(3):
        time.seconds += RETRY_SECONDS_MAX
        await forked.step()
    state = await countersigning_state(checkpoints.ledger, policy, None)
    assert state == (None, None, 0, 0), "it has signed again"


async def test_files_can_have_the_newest_checkpoint_that_others_signed(
    checkpoints, asking, witnesses, accounts, add, database_url, tmp_path, owner
):
    """A new one would have nobody's signature yet; where none will do, there is no file."""
    (tmp_path / "policy").write_text(policy_text(2, *witnesses))
    settings = settings_for(database_url, tmp_path, WITNESS_POLICY_FILE=str(tmp_path / "policy"))
    made = await checkpointed(checkpoints, add, 2)
    await asking[0].step()
    with pytest.raises(click.ClickException, match="no checkpoint of 0 events or more will do"):
        await countersigned_checkpoint(settings, checkpoints)
    await asking[1].step()
    await checkpointed(checkpoints, add, 1)
    signed = await countersigned_checkpoint(settings, checkpoints)
    assert signed.checkpoint == made.checkpoint
    with (tmp_path / "export").open("wb") as file:
        await write_export(accounts, signed, ExportScope(), file, lambda _events: None)
    demands = Demands(policy_of(2, *witnesses))
    found = verify_export(tmp_path / "export", [KEY], None, demands=demands)
    assert (found.ok, found.countersigned.witnesses) == (True, ["w0", "w1"])
    (partner,) = owner.execute("select partner_id from accounts.partners limit 1").fetchone()
    part, subject = LogPart("accounts", 0, 2), ReportSubject("partner_id", partner)
    for covering in (signed, None):
        reader = ReportReader(checkpoints, part, subject, Names({}), covering)
        assert [line.event async for line in reader.lines(lambda _events: None)]
        assert demands.met_by(reader.note, signed.checkpoint.size).witnesses == ["w0", "w1"]
    with pytest.raises(click.ClickException, match="no checkpoint of 4 events or more"):
        await countersigned_checkpoint(settings, checkpoints, 4)
    with pytest.raises(click.UsageError, match="name no witness"):
        await countersigned_checkpoint(settings_for(database_url, tmp_path), checkpoints)


async def test_over_http_as_between_machines(checkpoints, place, witnesses, add, time):
    """A real server on this machine."""
    made = await checkpointed(checkpoints, add, 1)
    with served(witnesses[0].witness) as url:
        asking = Witnessing(checkpoints, place, url, witnesses[0].keys, monotonic=time)
        assert await asking.step() == 1
    note = await full_note(checkpoints.ledger.database, made.note, [KEY], NOBODY)
    assert list(policy_of(1, witnesses[0]).demand(note)) == ["w0"]


async def test_a_claims_absence_can_rest_on_what_others_signed(
    service, place, time, witnesses, database_url, tmp_path
):
    """As a receipt can; whoever checks it demands the same witnesses."""
    (tmp_path / "policy").write_text(policy_text(1, witnesses[0]))
    settings = settings_for(database_url, tmp_path, WITNESS_POLICY_FILE=str(tmp_path / "policy"))
    live = Checkpoints(service.modes["live"].ledger, [KEY], place)
    made, post = await live.make(), posting(*witnesses)
    ours = Witnessing(live, place, witnesses[0].url, witnesses[0].keys, post=post, monotonic=time)
    target = SimpleNamespace(service=SimpleNamespace(checkpoints=lambda _: live, settings=settings))
    name, out = ClaimName("live", 0, "ptn_1", "ent_1", "case-1"), tmp_path / "absent"
    with pytest.raises(click.ClickException, match="no checkpoint of 0 events or more will do"):
        await absence(target, name, None, out, force=False, is_countersigned=True)
    await ours.step()
    told = await absence(target, name, None, out, force=False, is_countersigned=True)
    assert (told["ok"], told["size"]) == (True, made.checkpoint.size)
    found = checked(out, [KEY], None, Demands(policy_of(1, witnesses[0])))
    assert (found["ok"], found["witnesses"]) == (True, ["w0"])
    with pytest.raises(EvidenceFault, match="the checkpoint"):
        checked(out, [KEY], None, Demands(policy_of(1, witnesses[1])))


async def test_a_checkpoint_that_nobody_signed_is_linked_to_one_that_others_have(
    checkpoints, asking, witnesses, add, tmp_path
):
    """Only the newest one is shown to others; what was missed in an outage stays without."""
    older = await checkpointed(checkpoints, add, 2)
    await add(1)
    newer, policy = await checkpoints.make(), policy_of(1, witnesses[0])
    await asking[0].step()
    ledger, demands, files = checkpoints.ledger, Demands(policy), []
    for made in (older, newer):
        note = await full_note(ledger.database, made.note, [KEY], NOBODY)
        files.append(Signed(made.checkpoint, note))
    with pytest.raises(NoteInvalid, match="quorum"):
        demands.met_by(files[0].note, older.checkpoint.size)
    proof = tmp_path / "proof"
    proof.write_bytes(encode(await make_consistency(ledger, *files, [KEY])))
    found = checked(proof, [KEY], files[0].note, demands)
    assert (found["ok"], found["witnesses"], found["size"]) == (True, ["w0"], newer.checkpoint.size)
    assert found["older"]["size"] == older.checkpoint.size


async def test_the_oldest_checkpoint_that_lacks_signatures_counts(
    checkpoints, asking, witnesses, add, owner
):
    """However many there are after the newest one that has them."""
    policy = policy_of(1, *witnesses)
    for _ in range(10):
        await checkpointed(checkpoints, add, 1)
    query = "select made_at from accounts.checkpoints order by size"
    (first,), *_ = owner.execute(query).fetchall()
    state = await countersigning_state(checkpoints.ledger, policy, None)
    assert state.unwitnessed_since == first
    await asking[0].step()
    for _ in range(9):
        await checkpointed(checkpoints, add, 1)
    made = [row[0] for row in owner.execute(query)]
    state = await countersigning_state(checkpoints.ledger, policy, None)
    assert state.unwitnessed_since == made[10]
