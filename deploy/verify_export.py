# fmt: off
"""Verify an export or a receipt with Python 3.11 alone: see --help, and docs/ledger-format.md."""
import argparse
import json
import re
from base64 import b64decode, b64encode
from functools import reduce
from hashlib import sha256, sha512

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, doubt = -121665 * pow(121666, P - 2, P) % P, [None]  # the position that is being read
UNFIT = AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError
LINEAGES = {"88943209-3975-8270-bad6-077bb7a3c8f1", "333011c2-4cc1-89a2-8f7f-d1179f0d6f78",
            "fe2debdc-0a90-8a74-aff6-86d3b26195fc"}  # the streams of accounts, live, test
spell = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
# The lines, as regular expressions of their one spelling
N, B, S = "(?:0|[1-9][0-9]{0,18})", "[A-Za-z0-9+/]", r'"(?:[^"\\]|\\.)*+"'
HASH, ID = "[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=", "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
HASHES, ROOT = rf'\[(?:"{HASH}"(?:,"{HASH}")*+)?\]', rf'"size":{N},"root":"{HASH}"'
EVENT = rf'\{{"position":{N},"append_id":{N},"originator_id":"{ID}","originator_version":{N},'
EVENT += rf'"topic":{S},"state":{S},"leaf_hash":"{HASH}"(?:,"proof":{HASHES})?\}}'
HEADER = rf'\{{"format":"claim-ledger export v1","ledger":{S},"from":{N},{ROOT}(?:,"entity":{S})?'
HEADER += rf'(?:,"tree":{HASHES})?(?:,"consistency":\{{{ROOT},"proof":{HASHES}\}})?\}}'
SIGNED = rf"\u2014 ([^\s+]+) ((?:{B}{{4}}){{2,}}(?:{B}{B}==|{B}{{3}}=)?)"
RECEIPT = rf'\{{"format":"claim-ledger receipt v1","ledger":{S},"claim_id":{S},'
RECEIPT += rf'"events":\[{EVENT}(?:,{EVENT})*\],"checkpoint":{S}\}}'

def demand(holds, position, sentence):
    if not holds:
        raise AssertionError(position, sentence)

# Ed25519 (RFC 8032, sections 5.1 and 6)
def signs(public, signature, text):
    def add(p, q):
        product = D * p[0] * q[0] * p[1] * q[1]
        x = (p[0] * q[1] + q[0] * p[1]) * pow(1 + product, -1, P) % P
        return x, (p[1] * q[1] + p[0] * q[0]) * pow(1 - product, -1, P) % P
    def times(scalar, point):
        total = times(scalar >> 1, add(point, point)) if scalar else (0, 1)
        return add(total, point) if scalar & 1 else total
    def to_point(raw):
        y, sign = int.from_bytes(raw, "little") & (1 << 255) - 1, raw[31] >> 7
        x2 = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
        x = pow(x2, (P + 3) // 8, P)
        x = x if (x * x - x2) % P == 0 else x * pow(2, (P - 1) // 4, P) % P
        demand(y < P and (x * x - x2) % P == 0 and (x or not sign), None, "the key is no point")
        return (x if x & 1 == sign else P - x), y
    s, base = int.from_bytes(signature[32:], "little"), to_point(bytes.fromhex("58" + "66" * 31))
    h = int.from_bytes(sha512(signature[:32] + public + text).digest(), "little") % L
    x, y = add(times(s % L, base), times(L - h, to_point(public)))
    return s < L and signature == (y | (x & 1) << 255).to_bytes(32, "little") + signature[32:64]

# The tree (RFC 6962). A proof's hashes are taken from its end, which is nearest to the root.
def node(left, right):
    return sha256(b"\1" + left + right).digest()

def root_of(tree):
    end = tree[-1] if tree else sha256().digest()
    return reduce(lambda right, left: node(left, right), tree[-2::-1], end)

def included(index, size, leaf, proof):
    if size < 2:
        return leaf
    half, other = 1 << (size - 1).bit_length() - 1, proof.pop() if proof else b""
    if index < half:
        return node(included(index, half, leaf, proof), other)
    return node(other, included(index - half, size - half, leaf, proof))

def grown(old_size, size, old_root, proof):
    if old_size == size:
        return [old_root or (proof.pop() if proof else b"")] * 2
    half, other = 1 << (size - 1).bit_length() - 1, proof.pop() if proof else b""
    if old_size <= half:
        old, new = grown(old_size, half, old_root, proof)
        return [old, node(new, other)]
    return [node(other, root) for root in grown(old_size - half, size - half, None, proof)]

def read(raw, position, pattern):
    doubt[0] = position  # below, a number beyond 2**63 comes out as another
    line = json.loads(raw, parse_int=lambda digits: int(digits) % 2**63)
    holds = f"{spell(line)}\n".encode() == raw and re.fullmatch(pattern, spell(line))
    demand(holds, position, "a line is cut, not of this format, or not in its one spelling")
    return line

def open_note(note, keys, where=None):
    (text, _, signatures), signed = note.rpartition("\n\n"), False
    for line in signatures.removesuffix("\n").split("\n"):
        found = re.fullmatch(SIGNED, line)
        raw = b64decode(found[2]) if found else b""
        demand(found and b64encode(raw).decode() == found[2], where, "not a signed note")
        if (found[1], raw[:4]) in keys:
            signed = signs(keys[found[1], raw[:4]], raw[4:], text.encode() + b"\n")
            demand(signed, where, "the signature does not hold")
    demand(signed and signatures.endswith("\n"), where, "signed by no key that was given")
    return text.split("\n")

def open_checkpoint(note, keys, where=None):
    origin, size, root, *_ = *open_note(note, keys, where), "", ""
    demand(re.fullmatch(N, size) and re.fullmatch(HASH, root) and origin, where, "no checkpoint")
    return origin, int(size), b64decode(root)

def begin(begun, event, keys):
    data, where = json.loads(event["state"])["data"], event["position"]
    said, followed, size = ["claim-ledger lineage v1", data["origin"], *["-"] * 4], "", 0
    if data.get("previous") is not None:
        followed, size, root = open_checkpoint(data["previous"], keys, where)
        said[2:] = followed, f"{size}", b64encode(root).decode(), f"{data['shared_size']}"
    signed = open_note(data["authorisation"], keys, where)
    demand(signed == said and said[1] not in begun, where, "the lineage is not authorised")
    begun[said[1]] = followed, int(said[5]) if followed else 0, size

def verify(file, keys, older):
    raw, lines, receipt, stream, begun = file.readline(), iter(file.readline, b""), None, "", {}
    if raw.startswith(b'{"format":"claim-ledger receipt v1"'):
        receipt = read(raw + file.read(), None, RECEIPT)
        origin, size, root = open_checkpoint(note := receipt["checkpoint"], keys)
        header = receipt | {"from": 1, "size": size, "root": b64encode(root), "entity": None}
        lines = (f"{spell(one)}\n".encode() for one in [*receipt["events"], {"checkpoint": note}])
    else:
        header = read(raw, None, HEADER)
    start, size, whole = header["from"], header["size"], "entity" not in header
    last, count, root = start - 1, 0, b64decode(header["root"])
    tree = [b64decode(one) for one in header.get("tree", [])]
    holds = 0 <= last <= size and ("tree" in header) == (whole and last > 0)
    demand(holds and len(tree) == last.bit_count() * whole, None, "the header does not fit itself")
    known = {last: root_of(tree)} if whole else {}
    while not (raw := next(lines, b"")).startswith(b'{"checkpoint":'):
        expected = last + 1 if whole else None
        demand(raw, expected, "the file ends without a checkpoint")
        event = read(raw, expected, EVENT)
        at, last, count, doubt[0] = last, event["position"], count + 1, event["position"]
        demand(not whole or last == expected, expected, "events are missing or out of order")
        demand(at < last <= size, last, "events are out of order, or beyond the checkpoint")
        state = sha256(event["state"].encode()).hexdigest()
        record = ["claim-ledger event v1", *map(str, list(event.values())[:5]), state, ""]
        new = sha256(b"\0" + "\n".join(record).encode()).digest()
        demand(new == b64decode(event["leaf_hash"]), last, "the event has another hash")
        demand(whole != ("proof" in event), last, "a proof for each event, or for none")
        proof = [b64decode(one) for one in event.get("proof", [])]
        holds = whole or (included(last - 1, size, new, proof) == root and not proof)
        demand(holds, last, "the event's proof does not lead to the root")
        while whole and at & 1:
            new, at = node(tree.pop(), new), at >> 1
        tree += [new] if whole else []
        known |= {last: root_of(tree)} if whole and older and older[1] == last else {}
        stream = stream or event["originator_id"]
        holds = not receipt or list(event.values())[2:4] == [stream, count]
        demand(holds, last, "no whole stream")
        if receipt and count == 1:
            begins = event["topic"], json.loads(event["state"])["data"]["claim_id"]
            demand(begins == ("ClaimCreated", receipt["claim_id"]), last, "no claim")
        if event["topic"] == "LineageBegun" and event["originator_id"] in LINEAGES:
            begin(begun, event, keys)
    demand(not file.read(1), None, "there is something behind the checkpoint")
    origin, *rest = open_checkpoint(read(raw, None, rf'\{{"checkpoint":{S}\}}')["checkpoint"], keys)
    demand(not whole or last == size, last + 1, "events are missing before the checkpoint")
    demand([origin.split("/")[-2:-1], *rest] == [[header["ledger"]], size, root], None, "not ours")
    start = older[1] + 1 if older and known.get(older[1]) == older[2] else start
    demand(not whole or root_of(tree) == root, start, "events from here on do not make the root")
    if proof := header.get("consistency"):
        old_size, old_root = proof["size"], b64decode(proof["root"])
        left = [b64decode(one) for one in proof["proof"]]
        holds = 0 < old_size <= size and grown(old_size, size, old_root, left) == [old_root, root]
        demand(holds and not left, None, "the proof of consistency does not hold")
        known = {old_size: old_root} | known
    lost = [one[2] for one in begun.values() if one[0] and one[1] < one[2]]
    shared, at = size, origin
    while older and at != older[0]:  # from a lineage to the one before it
        at, common, _ = begun.pop(at, ("", 0, 0))
        demand(at, None, "nothing here links the older checkpoint's origin")
        shared = min(shared, common)
    if older:
        demand(older[1] <= shared, shared + 1, "the older checkpoint counts more events")
        demand(older[1] in known, None, "the older checkpoint is too old: export from before it")
        demand(known[older[1]] == older[2], 1, "the older checkpoint is of other events")
    verdict = {"ok": True, "origin": origin, "size": size, "root": b64encode(root).decode()}
    part = {one: header[one] for one in ("from", "entity") if header.get(one)} | {"events": count}
    return verdict | part | ({"set_aside": len(lost), "set_aside_size": max(lost)} if lost else {})

parser = argparse.ArgumentParser(description="Verify an export or a receipt.")
parser.error = lambda said: parser.exit(2, f"verify_export.py: {said}\n")
parser.add_argument("file", type=argparse.FileType("rb"))
parser.add_argument("--public-key", action="append", required=True)
parser.add_argument("--checkpoint", type=argparse.FileType("rb"), help="an older signed one")
given, keys = parser.parse_args(), {}
try:
    for name, number, key in (text.split("+", 2) for text in given.public_key):
        keys[name, bytes.fromhex(number)] = (raw := b64decode(key, validate=True))[1:]
        demand(sha256(f"{name}\n".encode() + raw).hexdigest()[:8] == number, None, "no key")
    note = given.checkpoint and given.checkpoint.read().decode(errors="replace")
    older = None if note is None else open_checkpoint(note, keys)
except UNFIT:
    parser.error("expected public keys as `audit keygen` prints, a checkpoint that they signed")
try:
    verdict = verify(given.file, keys, older)
except UNFIT as error:
    told = error.args if isinstance(error, AssertionError) else (doubt[0], "of no known shape")
    verdict = {"ok": False, "position": told[0], "fault": told[1]}
print(json.dumps(verdict))
raise SystemExit(not verdict["ok"])
