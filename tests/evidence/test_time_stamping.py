"""Checkpoints are stamped with the time of an authority, and files are held to it."""

import importlib.util
import json
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner
from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

from service.cli import cli
from service.core.clock import system_clock, timestamp
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.signatures import full_note
from service.evidence.countersigners import NOBODY, Countersigners
from service.evidence.countersigning.pace import LOOK_SECONDS
from service.evidence.countersigning.state import countersigning_state
from service.evidence.countersigning.time_stamping import TimeStamping
from service.evidence.demands import Demands
from service.evidence.export.export_verifier import verify_export
from service.evidence.note import NoteInvalid, NoteSignature
from service.evidence.time_stamp import TimeAnchor, TimeAuthority, stamped_before
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.http.posting import PostAnswer, Unanswered
from tests.evidence.checkpointing import KEY, checkpointed
from tests.evidence.evidence_world import KEY as FILE_KEY
from tests.evidence.memory_log import receipt, sample, whole
from tests.evidence.time_authority import URL, TimeAuthorityServer
from tests.tables import every_row

pytestmark = pytest.mark.server
SCRIPT = Path("deploy/verify_export.py").resolve()
NAME = "time.example.org"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Return an authority."""
    return TimeAuthorityServer(tmp_path_factory.mktemp("time") / "authority")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Return another one, which nobody has configured."""
    return TimeAuthorityServer(tmp_path_factory.mktemp("time") / "other")


@pytest.fixture
def stamping(checkpoints, place, server):
    """Return what asks the authority; time passes by a look at each step."""
    ticks = iter(range(0, 1_000_000, int(LOOK_SECONDS)))
    authority = TimeAuthority(NAME, TimeAnchor.parse(server.anchor))
    return TimeStamping(
        checkpoints, place, URL, authority, post=server.post, monotonic=lambda: next(ticks)
    )


async def test_each_checkpoint_is_stamped_once(checkpoints, stamping, server, place, add):
    """The token is kept, published, part of the note, and demanded of the log where one asks."""
    anchors = [TimeAnchor.parse(server.anchor)]
    database = checkpoints.ledger.database
    made = await checkpointed(checkpoints, add, 1)
    before, server.told = system_clock() - timedelta(seconds=2), 0
    lacking = await verify_ledger(database, Evidence([KEY], demands=Demands(anchors=anchors)))
    assert (lacking.ok, lacking.position) == (False, None)
    assert [await stamping.step() for _ in range(3)] == [1, 0, 0]
    assert server.told == 1
    note = await full_note(database, made.note, [KEY], NOBODY)
    assert Checkpoint.open(note, [KEY]) == made.checkpoint
    assert before < stamped_before(note, anchors) < system_clock() + timedelta(seconds=2)
    folder = f"checkpoints/{made.checkpoint.origin}/{made.checkpoint.size:020}.signatures/"
    (name,) = await place.inner.names(folder)
    assert name.endswith(f"-{NAME}")
    assert note == made.note + (await place.get(name)).decode()
    await checkpointed(checkpoints, add, 1)
    found = await verify_ledger(database, Evidence([KEY], demands=Demands(anchors=anchors)))
    assert (found.ok, found.countersigned.size) == (True, made.checkpoint.size)


async def test_a_line_that_does_not_hold_is_not_the_authority_s(
    checkpoints, stamping, server, add, owner
):
    """Under its name or another one; it is asked all the same, and its own token is kept."""
    await add(1)
    made, anchor = await checkpoints.make(), TimeAnchor.parse(server.anchor)
    for name, token in ((NAME, b"\x30\0"), (NAME, b"no"), ("another.example.org", b"\x30\0")):
        owner.execute(
            "insert into accounts.checkpoint_signatures values (%s, %s, %s, %s, %s, '2000-01-01')",
            [*made.checkpoint[:2], name, anchor.key_id(name), token],
        )
    authority = TimeAuthority(NAME, anchor)
    signers, database = Countersigners(authorities=[authority]), checkpoints.ledger.database
    assert await full_note(database, made.note, [KEY], signers) == made.note
    state = await countersigning_state(checkpoints.ledger, None, authority)
    assert state.unstamped_since is not None
    assert state.forged == 2
    assert [await stamping.step() for _ in range(2)] == [1, 0]
    note = await full_note(database, made.note, [KEY], signers)
    assert stamped_before(note, [anchor])
    found = await verify_ledger(database, Evidence([KEY], demands=Demands(anchors=[anchor])))
    assert (found.ok, found.countersigned.size) == (True, made.checkpoint.size)
    assert (await countersigning_state(checkpoints.ledger, None, authority)).unstamped_since is None


async def test_answers_that_do_not_hold_are_not_kept(checkpoints, stamping, server, other, add):
    """The next look asks again."""
    made = await checkpointed(checkpoints, add, 1)
    text = "\n".join((*made.checkpoint.lines, ""))
    kind = "application/timestamp-reply"

    async def by_other(_url, _kind, body, _bytes_max):
        return PostAnswer(200, kind, other.stamp(body))

    async def of_another(*_arguments):
        return PostAnswer(200, kind, server.stamp(_request(b"something else")))

    async def away(*_arguments):
        raise Unanswered("no connection")

    def answering(status, answered, body):
        async def post(*_arguments):
            return PostAnswer(status, answered, body)

        return post

    with every_row() as row:
        for name, post in (
            ("away", away),
            ("another authority", by_other),
            ("another request", of_another),
            ("an error", answering(500, kind, b"")),
            ("a page", answering(200, "text/html", b"<p>")),
            ("no token", answering(200, kind, bytes.fromhex("30053003020102"))),
            ("nothing", answering(200, kind, b"")),
        ):
            with row(name), structlog.testing.capture_logs() as logs:
                stamping._post = post  # noqa: SLF001 - one after the other
                while not logs:
                    assert not await stamping.step()
                assert logs[0]["event"] == "no time stamp"
    assert await full_note(checkpoints.ledger.database, made.note, [KEY], NOBODY) == made.note
    with pytest.raises(NoteInvalid, match="no authority"):
        stamped_before(made.note, [TimeAnchor.parse(server.anchor)])
    assert text in made.note


def _request(data):

    return (
        TimestampRequestBuilder().data(data).hash_algorithm(HashAlgorithm.SHA256).build().as_bytes()
    )


def test_both_verifiers_hold_files_to_a_time(server, other, tmp_path):
    """And say when; a stamp of other words, of another authority or altered is none.

    What was stamped did not exist before a moment at which it had not been shown.
    """
    log, begun = sample(), system_clock()
    log.lines(1)
    text = log.note().partition("\n\n")[0] + "\n"
    lines = {
        "right": _line(server, text),
        "of other words": _line(server, text, of=text.replace("lin_2", "lin_3")),
        "of another authority": _line(server, text, by=other),
        "altered": _line(server, text, alter=True),
    }
    second, keys, path = _second(), {}, tmp_path / "file"
    second.parse_key(FILE_KEY.public_text, keys)
    anchor, others = tmp_path / "anchor.pem", tmp_path / "others.pem"
    anchor.write_bytes(server.anchor)
    others.write_bytes(other.anchor)
    with every_row() as row:
        for name, line, asked, holds in (
            ("none", "", anchor, False),
            ("right", lines["right"], anchor, True),
            ("right, but not asked for", lines["right"], others, False),
            ("of other words", lines["of other words"], anchor, False),
            ("of another authority", lines["of another authority"], anchor, False),
            ("altered", lines["altered"], anchor, False),
        ):
            with row(name):
                note = [one.replace("\n", "\\n") for one in (log.note(), log.note() + line)]
                path.write_text(whole(log).decode().replace(*note))
                demands = Demands(anchors=[TimeAnchor.parse(asked.read_bytes())])
                verdict = verify_export(path, [FILE_KEY], None, demands=demands)
                with path.open("rb") as file:
                    theirs = second.verdict_or_fault(file, keys, None, second.Demands(None, asked))
                assert (verdict.ok, theirs["ok"]) == (holds, holds), (verdict, theirs)
                if holds:
                    at = verdict.countersigned.existed_before
                    assert theirs["existed_before"] == timestamp(at)
                    assert begun <= at <= system_clock() + timedelta(milliseconds=1)


def test_both_take_the_earliest_stamp_and_one_of_whole_seconds(tmp_path):
    """An authority need not tell parts of a second; a file of two anchors is none."""
    server = TimeAuthorityServer(tmp_path / "authority", digits=0)
    log, anchor, path = sample(), tmp_path / "anchor.pem", tmp_path / "file"
    log.lines(1)
    text = log.note().partition("\n\n")[0] + "\n"
    anchor.write_bytes(server.anchor)
    demands, second, keys = Demands(anchors=[TimeAnchor.parse(server.anchor)]), _second(), {}
    second.parse_key(FILE_KEY.public_text, keys)

    def told(stamps):
        note = [one.replace("\n", "\\n") for one in (log.note(), log.note() + stamps)]
        path.write_text(whole(log).decode().replace(*note))
        with path.open("rb") as file:
            return second.verdict_or_fault(file, keys, None, second.Demands(None, anchor))

    def both(stamps):
        theirs = told(stamps)
        verdict = verify_export(path, [FILE_KEY], None, demands=demands)
        assert theirs["existed_before"] == timestamp(verdict.countersigned.existed_before)
        return theirs["existed_before"]

    stamp = _line(server, text)
    earlier, later = both(stamp), None
    while later in {None, earlier}:
        another = _line(server, text)
        later = both(another)
    assert both(another + stamp) == both(stamp + another) == earlier
    anchor.write_bytes(server.anchor * 2)
    assert not told(stamp)["ok"]
    with pytest.raises(ValueError, match="certificate"):
        TimeAnchor.parse(server.anchor * 2)


def test_a_receipt_shows_between_which_times_it_came(server, tmp_path):
    """By two stamped checkpoints; of an event that the earlier one covers only the later counts."""
    log = sample()
    log.lines(1)
    earlier, text = log.note(5), log.note().partition("\n\n")[0] + "\n"
    stamp = _line(server, text)
    (tmp_path / "earlier").write_text(earlier + _line(server, earlier.partition("\n\n")[0] + "\n"))
    (tmp_path / "bare").write_text(earlier)
    note = [one.replace("\n", "\\n") for one in (log.note(), log.note() + stamp)]
    (tmp_path / "receipt").write_text(receipt(log).decode().replace(*note))
    (tmp_path / "anchor").write_bytes(server.anchor)

    def run(*options):
        paths = [str(tmp_path / one) if one.isalpha() else one for one in options]
        key = ("--public-key", FILE_KEY.public_text, "--json")
        arguments = ["audit", "check", str(tmp_path / "receipt"), *key, *paths]
        done = CliRunner().invoke(cli, arguments)
        return done.exit_code, done.output

    asked = ("--time-anchor", "anchor")
    code, told = run(*asked, "--earlier", "earlier")
    answer = json.loads(told)
    assert (code, answer["countersigned_size"]) == (0, log.tree.size)
    assert answer["existed_before"].endswith("Z")
    assert [one["position"] for one in answer["events"]] == [3, 6]
    assert ["not_covered_at" in one for one in answer["events"]] == [False, True]
    assert run(*asked)[0] == 0
    assert run("--earlier", "earlier")[0] == 2
    assert run(*asked, "--earlier", "bare")[0] == 2


def _line(server, text, *, of=None, by=None, alter=False):
    """Return the line of a token under the first authority's name and anchor."""
    anchor = TimeAnchor.parse(server.anchor)
    reply = (by or server).stamp(_request((of or text).encode()))
    token = reply[9:]  # behind the lengths and the status
    if alter:
        token = token[:-3] + bytes([token[-3] ^ 1]) + token[-2:]
    return NoteSignature(NAME, anchor.key_id(NAME), token).line


@cache
def _second():
    spec = importlib.util.spec_from_file_location("verify_export", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
