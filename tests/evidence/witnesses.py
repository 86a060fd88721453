"""Witnesses of a test: the one of deploy/witness, in this process, asked directly or over HTTP."""

import importlib.util
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.evidence.cosignature import WitnessKey
from service.evidence.countersigning.witnessing import Witnessing
from service.evidence.note import NoteKey
from service.evidence.policy import Policy, parse_policy
from service.http.posting import PostAnswer, Unanswered
from tests.evidence.checkpointing import KEY

SCRIPT = Path("deploy/witness/witness.py").resolve()


def _loaded():
    spec = importlib.util.spec_from_file_location("witness", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["witness"] = module
    spec.loader.exec_module(module)
    return module


PROGRAM = _loaded()


class TestWitness:
    """One witness: its keys, its state on the disk, and what it tells."""

    __test__ = False

    def __init__(self, home: Path, number: int, *log_keys, origins=(), kinds=(4, 6)) -> None:
        self.name = f"example.org/witness{number}"
        self.url = f"https://witness{number}.example.org"
        self.told: list[str] = []
        self.now = 1_772_359_530.0
        seed = bytes([number]) * 32
        self.cosigners = [PROGRAM.Cosigner(self.name, kind, seed) for kind in kinds]
        self.keys = [
            WitnessKey.parse(PROGRAM.key_text(one.name, one.raw)) for one in self.cosigners
        ]
        self.logs = [PROGRAM.LogKey.parse(key.public_text) for key in log_keys]
        self.home, self.origins = home / f"witness{number}", origins
        self.state = PROGRAM.State(self.home)
        self.witness = self.started()

    def started(self):
        """Return the program with its state as it is on the disk."""
        return PROGRAM.Witness(
            self.cosigners,
            self.logs,
            self.state,
            self.origins,
            now=lambda: self.now,
            tell=self.told.append,
        )

    def answer(self, body: bytes) -> PostAnswer:
        """PostAnswer as over HTTP."""
        try:
            return PostAnswer(200, "text/plain", self.witness.add_checkpoint(body).encode())
        except PROGRAM.Refused as refused:
            kind = refused.kind.partition(";")[0]
            return PostAnswer(refused.status, kind, refused.text.encode())

    @property
    def key_text(self) -> str:
        """The Ed25519 key as it is handed around."""
        return PROGRAM.key_text(self.name, self.cosigners[0].raw)


def posting(*witnesses: TestWitness):
    """Return what posts to these; a witness whose URL is None is away."""
    at: Mapping[str, TestWitness] = {f"{one.url}/add-checkpoint": one for one in witnesses}

    async def post(url: str, kind: str, body: bytes, bytes_max: int) -> PostAnswer:
        assert (kind, bytes_max > 1000) == ("text/plain", True)
        if url not in at:
            raise Unanswered("no connection")
        return at[url].answer(body)

    return post


def policy_text(least: int, *witnesses: TestWitness) -> str:
    """Return the policy that so many of them have to sign."""
    lines = [f"witness w{at} {one.key_text} {one.url}" for at, one in enumerate(witnesses)]
    names = " ".join(f"w{at}" for at in range(len(witnesses)))
    return "\n".join([*lines, f"group all-of-them {least} {names}", "quorum all-of-them", ""])


def policy_of(least: int, *witnesses: TestWitness) -> Policy:
    """Return it parsed."""
    return parse_policy(policy_text(least, *witnesses).encode())


@contextmanager
def served(witness) -> Generator[str]:
    """Serve a witness on this machine; yield its URL."""
    with PROGRAM.Server(("127.0.0.1", 0), witness) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class Time:
    """A clock that is moved by hand."""

    seconds = 0.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.seconds


@pytest.fixture
def time():
    """Return a clock."""
    return Time()


@contextmanager
def three_witnesses(home: Path, log_key: NoteKey) -> Iterator[list[TestWitness]]:
    """Yield three witnesses of the log that has this key."""
    made = [TestWitness(home, number, log_key) for number in (1, 2, 3)]
    yield made
    for one in made:
        one.state.close()


@pytest.fixture
def witnesses(tmp_path):
    """Yield three witnesses of the log."""
    with three_witnesses(tmp_path, KEY) as made:
        yield made


@pytest.fixture
def asking(checkpoints, place, time, witnesses):
    """Return what asks each of them."""
    post = posting(*witnesses)
    return [
        Witnessing(checkpoints, place, one.url, one.keys, post=post, monotonic=time)
        for one in witnesses
    ]
