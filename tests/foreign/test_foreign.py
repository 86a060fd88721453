"""What we sign and publish is verified by programs that are not ours."""

import base64
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from service.evidence.checkpoint import Checkpoint
from service.evidence.export.receipt_writer import make_receipt, numbered_stream
from service.evidence.export.standard_proofs import FORMATS, proof_files
from service.evidence.tiles.writer import TilesWriter
from tests.evidence.evidence_world import KEY, history, signed
from tests.foreign.environments import node_environment, python_environment, run, succeed
from tests.serving import served
from tests.world import settings_for, world_on

ENTITIES = 300
"""So that the log of live has a full tile."""
SETTINGS = {"CHECKPOINT_KEYS": KEY.private_text}


class Published(NamedTuple):
    """An installation's evidence: two checkpoints, tiles, and files beside a receipt."""

    old: Path
    checkpoint: Checkpoint
    note: str
    receipt: Path
    positions: list[int]

    @property
    def folder(self) -> Path:
        """Where the tiles of the newest lineage are."""
        return self.receipt.parent / "tiles" / self.checkpoint.origin


@pytest.fixture
async def published(database_url, tmp_path) -> Published:
    """Return what an installation has published, and what it gave to an auditor."""
    (tmp_path / "tiles").mkdir()
    places = {name: (tmp_path / name).as_uri() for name in ("archive", "tiles")}
    given = {"ARCHIVE_URL": places["archive"], "TILES_URL": places["tiles"]}
    settings = settings_for(database_url, tmp_path / "mail", **SETTINGS, **given)
    async with world_on(settings, tmp_path / "mail", follow=False) as world:
        _, claim_id = await history(world)
        first = await signed(world.service)
        for _ in range(ENTITIES):
            await world.entity()
        live = world.service.modes["live"]
        row = await live.claim_list.by_id(claim_id)
        assert row is not None
        rows = await numbered_stream(live.ledger, row["stream_id"])
        now = await signed(world.service)
        receipt = await make_receipt(live.ledger, claim_id, rows, now)
        for one in proof_files(receipt, now.checkpoint, FORMATS, KEY):
            (tmp_path / f"receipt.{one.ending}").write_bytes(one.content)
        assert world.service.tiles is not None
        writer = TilesWriter(world.service.checkpoints("live"), world.service.tiles)
        while await writer.write():
            pass
    (tmp_path / "old").write_text(first.note)
    positions = [event.position for event in receipt.events]
    return Published(tmp_path / "old", now.checkpoint, now.note, tmp_path / "receipt", positions)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> Path:
    """Return the programs of the packages for Python."""
    return python_environment(tmp_path_factory.mktemp("foreign") / "python")


@pytest.fixture
def public_pem(tmp_path) -> Path:
    """Return the public key as others' programs take it."""
    key = Ed25519PublicKey.from_public_bytes(KEY.public)
    path = tmp_path / "key.pem"
    path.write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path


def test_tiles_are_read_from_a_served_log(published, foreign, database_url, tmp_path):
    """aics-tlog audits all tiles and entries, and proves an entry and that the log only grew."""
    given = {
        "ARCHIVE_URL": (tmp_path / "archive").as_uri(),
        "TILES_URL": (tmp_path / "tiles").as_uri(),
        "SERVE_TILES": "on",
    }
    lineage = published.checkpoint.origin.rpartition("/")[2]
    tlog, key = foreign / "aics-tlog", ["--log-key", KEY.public_text]
    with served(database_url, tmp_path, **SETTINGS, **given) as server:
        url = f"{server.url}/log/live/{lineage}"
        program = Path(__file__).with_name("audit_tiles.py")
        size = succeed([foreign / "python", program, url, KEY.public_text])
        assert int(size) == published.checkpoint.size > 256
        tiles = ["--tiles", url, *key, "--origin", published.checkpoint.origin]
        for position in published.positions:
            leaf = f"{published.receipt}.{position}.entry"
            at = ["--leaf", leaf, "--index", str(position - 1)]
            succeed([tlog, "verify-inclusion", *at, *tiles])
            other = ["--leaf", leaf, "--index", str(position)]
            assert run(tlog, "verify-inclusion", *other, *tiles).returncode != 0
        succeed([tlog, "verify-consistency", "--old-checkpoint", published.old, *tiles])


def test_tiles_are_read_from_their_directory(published, foreign):
    """As from a bucket; a hash that was altered is found."""
    key, program = ["--log-key", KEY.public_text], foreign / "aics-tlog"
    position = published.positions[0]
    leaf = ["--leaf", f"{published.receipt}.{position}.entry", "--index", str(position - 1)]
    command = [program, "verify-inclusion", *leaf, "--tiles", published.folder, *key]
    succeed(command)
    tile = published.folder / "tile/0/000"
    tile.write_bytes(bytes(32) + tile.read_bytes()[32:])
    assert run(*command).returncode != 0


def test_a_tlog_proof_is_verified(published, foreign, tmp_path):
    """aics-tlog takes its hashes and its checkpoint; nothing but the two is given to it."""
    for position in published.positions:
        head, _, note = (
            Path(f"{published.receipt}.{position}.tlog-proof").read_text().partition("\n\n")
        )
        _, index, *hashes = head.split("\n")
        (tmp_path / "hashes").write_text("".join(f"{one}\n" for one in hashes))
        (tmp_path / "note").write_text(note)
        key = ["--log-key", KEY.public_text]
        succeed([foreign / "aics-tlog", "verify-checkpoint", "--note", tmp_path / "note", *key])
        given = [
            *("--leaf", f"{published.receipt}.{position}.entry"),
            *("--index", index.removeprefix("index "), "--proof", tmp_path / "hashes"),
            *("--size", str(published.checkpoint.size)),
        ]
        command = [foreign / "aics-tlog", "verify-inclusion", *given, "--root"]
        succeed([*command, base64.b64encode(published.checkpoint.root).decode()])
        assert run(*command, base64.b64encode(bytes(32)).decode()).returncode != 0


def test_a_cose_receipt_is_verified_by_scitt_cose(published, foreign, public_pem):
    """By its own command, which has the entry, the receipt and the key; another entry fails."""
    for position in published.positions:
        entry = Path(f"{published.receipt}.{position}.entry").read_bytes()
        receipt = ["--receipt", f"{published.receipt}.{position}.cose"]
        command = [foreign / "scitt-cose", *receipt, "--receipt-log-pubkey", public_pem]
        succeed([*command, "--leaf-entry-hex", entry.hex()])
        assert run(*command, "--leaf-entry-hex", entry[:-1].hex()).returncode == 1


def test_a_cose_receipt_is_verified_by_transmute(published, public_pem, tmp_path):
    """By the package of one of the RFC's authors, in Node."""
    packages = node_environment(tmp_path / "node")
    program = Path(__file__).with_name("verify_cose.mjs")
    for position in published.positions:
        files = [f"{published.receipt}.{position}.{kind}" for kind in ("cose", "entry")]
        command = ["node", program, packages, *files, public_pem]
        assert succeed(command).strip() == published.checkpoint.root.hex()
        Path(files[1]).write_bytes(b"other")
        assert run(*command).returncode != 0
