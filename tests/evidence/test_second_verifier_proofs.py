"""Proofs in formats of others: the second verifier and the service's own agree on each."""

import tracemalloc
from contextlib import suppress
from functools import partial

import cbor2
import click
import pytest

from service.cli.audit.checked import checked
from service.evidence.demands import NO_DEMANDS
from service.evidence.export.format import EvidenceFault
from tests.evidence import standard_files
from tests.evidence.evidence_world import KEY, OTHER
from tests.evidence.second_verifier import judged, second

STANDARD = ("tlog-proof", "cose")


def both(path, *keys, older=None):
    """Return what both verifiers say of a file: whether it holds, and the first one's words."""
    try:
        answer = checked(path, keys or (KEY,), older, NO_DEMANDS)
    except EvidenceFault as fault:
        answer = {"ok": False, "fault": str(fault)}
    except click.UsageError as error:
        answer = {"ok": False, "fault": str(error)}
    with suppress(SystemExit):  # 2, for a file that is not there
        assert judged(path, *keys, older=older)[0] == answer["ok"], answer
    return answer


@pytest.mark.parametrize("kind", STANDARD)
def test_proofs_in_formats_of_others(tmp_path, kind):
    """Both take them with the entry beside, name the same event, and hold it to what was kept."""
    for count, position in ((1, 1), (13, 6), (300, 300)):
        made, checkpoint = standard_files.files_of(count, [position], STANDARD)
        path = tmp_path / f"receipt.json.{position}.{kind}"
        path.write_bytes(made[f"{position}.{kind}"])
        assert ".entry is not there" in both(path)["fault"]
        path.with_suffix(".entry").write_bytes(made[f"{position}.entry"])
        kept = checkpoint.sign(KEY)
        for older in (None, kept):
            answer, theirs = both(path, older=older), second(path, older=older)[1]
            assert (answer["ok"], answer["size"]) == (True, count), answer
            for name in ("position", "stream", "topic", "state_sha256", "origin", "size", "root"):
                assert answer[name] == theirs[name], name
        for other in (checkpoint._replace(size=count + 1), checkpoint._replace(root=bytes(32))):
            assert not both(path, older=other.sign(KEY))["ok"]
        assert "no key that is known here" in both(path, OTHER)["fault"]
        path.with_suffix(".entry").write_bytes(made[f"{position}.entry"].replace(b"C", b"D", 1))
        assert not both(path)["ok"]


@pytest.mark.parametrize("kind", STANDARD)
def test_no_byte_of_a_proof_can_be_altered(tmp_path, kind):
    """Nor one of the entry; what is added, left out, or spelled otherwise is refused, too."""
    made, _ = standard_files.files_of(5, [2], STANDARD)
    path, raw, entry = tmp_path / f"2.{kind}", made[f"2.{kind}"], made["2.entry"]
    path.with_suffix(".entry").write_bytes(entry)
    begins = b"\xd2" if kind == "cose" else b"c2sp.org/tlog-proof@v1\n"
    altered = [raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :] for at in range(len(raw))]
    for one in (*altered, raw[:-1], raw + b"\n", raw + b"\xf6"):
        path.write_bytes(one)
        if one.startswith(begins):  # else it is of no kind, and so no proof
            assert not both(path)["ok"], one
    path.write_bytes(raw)
    assert both(path)["ok"]
    for at in range(len(entry)):
        path.with_suffix(".entry").write_bytes(
            entry[:at] + bytes([entry[at] ^ 1]) + entry[at + 1 :]
        )
        assert not both(path)["ok"]


def respelled():
    """Return COSE receipts that say the same in other bytes, and what was made of them."""
    made, _ = standard_files.files_of(2, [2], STANDARD)
    raw = made["2.cose"]
    protected, unprotected, _, signature = cbor2.loads(raw).value
    ((proof,),) = (one[-1] for one in unprotected.values())
    size, at, path = cbor2.loads(proof)
    tagged = partial(cbor2.CBORTag, 18)
    for parts in (
        [protected, unprotected, b"", signature],
        [protected, {**unprotected, 1: -8}, None, signature],
        [protected, {396: {-1: [proof, proof]}}, None, signature],
        [protected, {396: {-1: [proof], -2: []}}, None, signature],
        [protected, {396: {-1: [cbor2.dumps([size, True, path])]}}, None, signature],
        [protected, {396: {-1: [cbor2.dumps([3, at, path])]}}, None, signature],
        [protected, {396: {-1: [cbor2.dumps([size, at, [*path, bytes(32)]])]}}, None, signature],
        [protected, {396: {-1: [cbor2.dumps([size, at, ["x"]])]}}, None, signature],
        [protected, {396: {-1: [cbor2.dumps([size, at, dict.fromkeys(path)])]}}, None, signature],
        [protected, {396: {-1: [cbor2.dumps([size, -1, path])]}}, None, signature],
        [protected, {}, None, signature],
        [b"", unprotected, None, signature],
        [cbor2.dumps({15: {1: 7}}), unprotected, None, signature],
        [protected, unprotected, None, signature, None],
    ):
        yield cbor2.dumps(tagged(parts), canonical=True)
    yield cbor2.dumps(tagged(7))
    yield raw.replace(b"\xa1\x19\x01\x8c", b"\xa1\x1a\x00\x00\x01\x8c")
    twice = raw[raw.index(b"\x19\x01\x8c") : -67]
    yield raw.replace(b"\xa1" + twice, b"\xa2" + twice + twice)


def test_a_cose_receipt_has_one_spelling(tmp_path):
    """Both refuse any other: what is not signed there can be neither added nor written anew."""
    made, _ = standard_files.files_of(2, [2], STANDARD)
    path = tmp_path / "2.cose"
    path.with_suffix(".entry").write_bytes(made["2.entry"])
    refused = list(respelled())
    assert len({*refused, made["2.cose"]}) == len(refused) + 1
    for raw in refused:
        path.write_bytes(raw)
        assert not both(path)["ok"], raw


def test_a_receipt_of_arrays_takes_bounded_memory(tmp_path):
    """One is in the other: what is behind the beginning of each is not copied."""
    path, inner = tmp_path / "2.cose", b"\x81" * 1_000_000
    path.write_bytes(b"\xd2" + inner)
    tracemalloc.start()
    try:
        assert second(path)[0] == 1
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 200 * len(inner)  # 64 MiB to read into; the arrays are a thousand deep
