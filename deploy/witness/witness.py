"""A witness for claim-ledger's checkpoints: one file of Python 3.11 and the package `cryptography`.

    python witness.py keygen NAME --key FILE
    python witness.py serve --key FILE --state DIRECTORY --log KEY [--log KEY …]

NAME is your name as a witness, such as `auditor.example.org/witness`; KEY is the public key with
which the ledger's operator signs checkpoints, as you got it from them. See README.md beside this.

It speaks C2SP's tlog-witness: the log posts each checkpoint to `/add-checkpoint`, with the proof
that it continues the one before; the witness remembers the newest of each log, and signs nothing
that contradicts it. Whoever asks for your signature is told that nobody was shown another history.
It shares no code with the service. Read it from the end: `main`, then `Handler`, then `Witness`.
"""

import argparse
import base64
import binascii
import fcntl
import os
import re
import secrets
import ssl
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from socket import SHUT_RDWR, socket
from typing import Any, Final, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

try:
    from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey
except ImportError:  # before cryptography 47
    MLDSA44PrivateKey = None

NOTE: Final = 0x01
ED25519: Final = 0x04
ML_DSA_44: Final = 0x06
HASH_BYTES: Final = 32
PROOF_MAX: Final = 63
BODY_BYTES_MAX: Final = 256 * 1024
"""A proof, and a note with as many signatures as anybody has to take."""
SIGNATURES_MAX: Final = 100
SIZE_MAX: Final = 2**63 - 1
ORIGINS_MAX: Final = 10_000
REFUSED_MAX: Final = 1_000
"""Refused checkpoints that are kept: whoever has the log's key could fill the disk."""
CONNECTIONS_MAX: Final = 64
OF_AN_ADDRESS_MAX: Final = 8
"""Connections of one address, so that a stranger leaves room for the log; not of this machine's,
where a proxy is."""
SECONDS_MAX: Final = 20.0
"""For a connection, which has one request: however slowly its bytes come."""

HASH: Final = re.compile(r"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=")
NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
SIGNATURE: Final = re.compile(r"\u2014 ([^\s+]+) ([A-Za-z0-9+/]+={0,2})")
CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")
NAME: Final = re.compile(r"[^\s+]{1,200}")


class Refused(Exception):
    """A request is not granted: `status` and `text` are the answer, `kind` its type."""

    def __init__(self, status: int, text: str, kind: str = "text/plain; charset=utf-8") -> None:
        """Keep them."""
        super().__init__(text)
        self.status = status
        self.text = text
        self.kind = kind


# -------------------------------------------------------------------------------------------- Keys


def key_id(name: str, raw: bytes) -> bytes:
    """Return the id of a key, whose type is the first byte of `raw` (C2SP signed-note)."""
    return sha256(name.encode() + b"\n" + raw).digest()[:4]


def key_text(name: str, raw: bytes) -> str:
    """Return a public key as it is handed around."""
    return f"{name}+{key_id(name, raw).hex()}+{base64.b64encode(raw).decode()}"


class LogKey(NamedTuple):
    """A public key by which a log signs its checkpoints."""

    name: str
    raw: bytes

    @classmethod
    def parse(cls, text: str) -> "LogKey":
        """Read a key as `claim-ledger audit public-key` prints it; raises ValueError."""
        name, _, rest = text.strip().partition("+")
        number, _, encoded = rest.partition("+")
        raw = base64.b64decode(encoded, validate=True)
        if not NAME.fullmatch(name) or raw[:1] != bytes([NOTE]) or len(raw) != 1 + HASH_BYTES:
            raise ValueError("expected a log's public key: NAME+ID+BASE64, Ed25519")
        if key_id(name, raw).hex() != number:
            raise ValueError("the key's id does not belong to it")
        return cls(name, raw)

    def signs(self, origin: str) -> bool:
        """Return whether this key is that of an origin: its own name, or one below it."""
        return origin == self.name or origin.startswith(f"{self.name}/")

    def check(self, signature: bytes, text: str) -> None:
        """Raise InvalidSignature or ValueError unless the key signed the text."""
        Ed25519PublicKey.from_public_bytes(self.raw[1:]).verify(signature, text.encode())


class Cosigner(NamedTuple):
    """A key of this witness: its type and its seed."""

    name: str
    kind: int
    seed: bytes

    @property
    def raw(self) -> bytes:
        """The type and the public key."""
        return bytes([self.kind]) + self._private().public_key().public_bytes_raw()

    def cosign(self, checkpoint: "Checkpoint", seconds: int) -> str:
        """Return the signature line for a checkpoint (C2SP tlog-cosignature)."""
        if self.kind == ED25519:
            message = f"cosignature/v1\ntime {seconds}\n{checkpoint.text}".encode()
        else:
            name, origin = self.name.encode(), checkpoint.origin.encode()
            message = b"subtree/v1\n\0" + bytes([len(name)]) + name + struct.pack(">Q", seconds)
            message += bytes([len(origin)]) + origin + struct.pack(">QQ", 0, checkpoint.size)
            message += checkpoint.root
        signature = struct.pack(">Q", seconds) + self._private().sign(message)
        line = base64.b64encode(key_id(self.name, self.raw) + signature).decode()
        return f"\u2014 {self.name} {line}\n"

    def _private(self) -> Any:  # noqa: ANN401 - of two libraries' types
        if self.kind == ED25519:
            return Ed25519PrivateKey.from_private_bytes(self.seed)
        if MLDSA44PrivateKey is None:
            raise ValueError("this `cryptography` has no ML-DSA-44; expected 47 or later")
        return MLDSA44PrivateKey.from_seed_bytes(self.seed)


def read_cosigners(path: Path) -> list[Cosigner]:
    """Read the witness's keys, a line each; raises ValueError, which quotes nothing of them."""
    found: list[Cosigner] = []
    for line in path.read_text().split():
        try:
            kind, seed, name = line.split(":", 2)
            found.append(Cosigner(name, int(kind), base64.b64decode(seed, validate=True)))
            found[-1].raw  # noqa: B018 - a seed that is none is noticed now
        except (ValueError, binascii.Error):
            raise ValueError(f"{path}: not a key file of `keygen`") from None
    if not found:
        raise ValueError(f"{path}: has no key")
    return found


# ------------------------------------------------------------------------------------- Checkpoints


class Checkpoint(NamedTuple):
    """A log's head, and the text that is signed."""

    origin: str
    size: int
    root: bytes
    text: str


def parse_checkpoint(text: str) -> Checkpoint:
    """Read a note's text (C2SP tlog-checkpoint, without extension lines); raises Refused."""
    origin, size, root, *more = (*text.split("\n"), "", "", "")
    is_head = origin and NUMBER.fullmatch(size) and HASH.fullmatch(root)
    if not is_head or int(size) > SIZE_MAX or any(more) or text != f"{origin}\n{size}\n{root}\n":
        raise Refused(400, "not a checkpoint of three lines\n")
    if len(origin.encode()) > 255:  # noqa: PLR2004 - the room in ML-DSA's message
        raise Refused(400, "the origin is too long\n")
    return Checkpoint(origin, int(size), base64.b64decode(root), text)


def open_note(note: str, keys: Sequence[LogKey]) -> tuple[Checkpoint, str]:
    """Return a checkpoint and the signature lines of its log; raises Refused."""
    text, _, signatures = note.rpartition("\n\n")
    lines = signatures.removesuffix("\n").split("\n")
    is_note = text and signatures.endswith("\n") and not CONTROL.search(note)
    if not is_note or len(lines) > SIGNATURES_MAX:
        raise Refused(400, "not a signed note\n")
    checkpoint = parse_checkpoint(f"{text}\n")
    ours = [key for key in keys if key.signs(checkpoint.origin)]
    if not ours:
        raise Refused(404, "this witness does not know the log\n")
    known = {(key.name, key_id(key.name, key.raw)): key for key in ours}
    kept = ""
    for line in lines:
        parts = SIGNATURE.fullmatch(line)
        if parts is None:
            raise Refused(400, "not a signature line\n")
        try:
            raw = base64.b64decode(parts[2], validate=True)
        except binascii.Error:
            raise Refused(400, "not a signature line\n") from None
        key = known.get((parts[1], raw[:4]))
        if key is None:
            continue
        try:
            key.check(raw[4:], checkpoint.text)
        except (InvalidSignature, ValueError):
            raise Refused(403, "the log's signature does not hold\n") from None
        if f"{line}\n" not in kept:
            kept += f"{line}\n"
    if not kept:
        raise Refused(403, "no known key of the log signed this\n")
    return checkpoint, kept


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return an inner node (RFC 6962, section 2.1)."""
    return sha256(b"\x01" + left + right).digest()


def is_consistent(old: Checkpoint, new: Checkpoint, proof: Sequence[bytes]) -> bool:
    """Return whether the new tree begins with the old one (RFC 9162, section 2.1.4.2)."""
    if old.size in {0, new.size}:
        return not proof and (old.size == 0 or old.root == new.root)
    node, last, path = old.size - 1, new.size - 1, list(proof)
    while node & 1:
        node, last = node >> 1, last >> 1
    if node == 0:
        path = [old.root, *path]
    if not path:
        return False
    before = after = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            before, after = node_hash(sibling, before), node_hash(sibling, after)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            after = node_hash(after, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and (before, after) == (old.root, new.root)


# --------------------------------------------------------------------------------------- The state


class State:
    """The newest cosigned checkpoint of each log, a file each, replaced whole or not at all.

    One process may have it: two that check against the same file could both sign.
    """

    def __init__(self, directory: Path) -> None:
        """Take the directory; raises BlockingIOError if another process has it."""
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = (directory / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise

    def close(self) -> None:
        """Give the directory back."""
        self._lock.close()

    def read(self, name: str) -> str | None:
        """Return the note that is kept of an origin, by the hash of it; None: there is none."""
        try:
            return (self.directory / name / "checkpoint").read_bytes().decode()
        except FileNotFoundError:
            return None

    def write(self, name: str, note: str) -> None:
        """Replace the note of an origin; it is on the disk when this returns."""
        folder = self.directory / name
        if not folder.is_dir():
            if sum(1 for _ in self.directory.iterdir()) > ORIGINS_MAX:
                raise Refused(503, "this witness knows too many logs\n")
            folder.mkdir()
            _sync(self.directory)
        _replace(folder / "checkpoint", note)

    def keep_refused(self, name: str, text: str, signed: str) -> None:
        """Keep a checkpoint that contradicts the signed one: both prove that there are two logs.

        Once, with the log's own signatures: everybody can add lines to a note.
        """
        path = self._refused(name, text)
        path.parent.mkdir(exist_ok=True)
        if not path.exists() and sum(1 for _ in path.parent.iterdir()) < REFUSED_MAX:
            _replace(path, f"{text}\n{signed}")

    def drop_refused(self, name: str, text: str) -> None:
        """Drop a checkpoint that is signed by now: it came with a wrong proof, from anybody."""
        self._refused(name, text).unlink(missing_ok=True)

    def _refused(self, name: str, text: str) -> Path:
        return self.directory / name / "refused" / f"{sha256(text.encode()).hexdigest()}.txt"


def _replace(path: Path, content: str) -> None:
    """Write a file beside and rename it over: after a crash there is the old one or the new one."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with beside.open("xb") as file:
            file.write(content.encode())
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


# ------------------------------------------------------------------------------------- The witness


class Witness:
    """Signs what continues the checkpoint that it signed last, one request after the other."""

    def __init__(
        self,
        cosigners: Sequence[Cosigner],
        logs: Sequence[LogKey],
        state: State,
        origins: Sequence[str] = (),
        now: Callable[[], float] = time.time,
        tell: Callable[[str], object] = lambda _line: None,
    ) -> None:
        """`origins`: no others are signed; none: all that the keys of `logs` sign."""
        self._cosigners = cosigners
        self._logs = logs
        self._state = state
        self._origins = frozenset(origins)
        self._now = now
        self._tell = tell
        self._one = threading.Lock()

    def add_checkpoint(self, body: bytes) -> str:
        """Return our signature lines for a checkpoint, once it is on the disk; raises Refused."""
        old_size, proof, note = _request(body)
        new, signed = open_note(note, self._logs)
        if self._origins and new.origin not in self._origins:
            raise Refused(404, "this witness does not know the log\n")
        if old_size > new.size:
            raise Refused(400, "the old size is larger than the checkpoint's\n")
        name = origin_hash(new.origin)
        # The comparison and the writing are one step: of two requests, one is refused (409).
        with self._one:
            kept = self._state.read(name)
            old = _parsed(kept) if kept else Checkpoint(new.origin, 0, sha256().digest(), "")
            if old.size != old_size:
                raise Refused(409, f"{old.size}\n", "text/x.tlog.size")
            if new.size == 0 and new.root != sha256().digest():
                raise Refused(422, "the empty tree has another root\n")
            if not is_consistent(old, new, proof):
                # The one that was signed contradicts nothing, whatever proof came with it.
                if kept and new.text != old.text:
                    self._tell(f"REFUSED {new.origin} {new.size}: does not continue {old.size}")
                    self._keep_refused(name, new, signed)
                raise Refused(422, f"not consistent with the checkpoint of {old.size} events\n")
            lines = "".join(one.cosign(new, int(self._now())) for one in self._cosigners)
            self._state.write(name, f"{new.text}\n{signed}{lines}")
            with suppress(OSError):
                self._state.drop_refused(name, new.text)
        self._tell(f"signed {new.origin} {new.size}{'' if kept else ': a log that is new here'}")
        return lines

    def _keep_refused(self, name: str, new: Checkpoint, signed: str) -> None:
        """Keep what may prove a fork, if the disk takes it: the log is refused in either case."""
        try:
            self._state.keep_refused(name, new.text, signed)
        except OSError as error:
            self._tell(f"ERROR what was refused is not kept: {error.strerror or error}")

    def checkpoint(self, name: str) -> str:
        """Return the newest cosigned note of an origin, by the hash of it; raises Refused."""
        note = self._state.read(name)
        if note is None:
            raise Refused(404, "nothing was signed of this log\n")
        return note


def origin_hash(origin: str) -> str:
    """Return the name that an origin has in paths."""
    return sha256(origin.encode()).hexdigest()


def _parsed(note: str) -> Checkpoint:
    return parse_checkpoint(note.rpartition("\n\n")[0] + "\n")


def _request(body: bytes) -> tuple[int, list[bytes], str]:
    """Return the old size, the proof and the note of a request; raises Refused."""
    try:
        head, _, note = body.decode().partition("\n\n")
    except UnicodeDecodeError:
        raise Refused(400, "not text\n") from None
    first, *lines = head.split("\n")
    size = first.removeprefix("old ")
    if first == size or not NUMBER.fullmatch(size) or len(lines) > PROOF_MAX:
        raise Refused(400, f"expected `old SIZE`, and at most {PROOF_MAX} lines of a proof\n")
    if not all(HASH.fullmatch(line) for line in lines):
        raise Refused(400, "a line of the proof is not a hash in base64\n")
    return int(size), [base64.b64decode(line) for line in lines], note


# -------------------------------------------------------------------------------------------- HTTP


class Handler(BaseHTTPRequestHandler):
    """Answers a connection's request, and ends it.

    What a proxy would send next on the same connection could follow bytes that nobody has read: a
    stranger's, which would be taken for a request, and its answer for that of the log's.
    """

    # The library has it as a BaseServer; nothing but a Server makes a Handler.
    server: "Server"  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version = "witness"
    sys_version = ""
    timeout = SECONDS_MAX

    def do_POST(self) -> None:
        """Take a checkpoint."""
        self._answer(self._posted)

    def do_GET(self) -> None:
        """Show the newest checkpoint of a log, for monitors."""
        found = re.fullmatch(r"/([0-9a-f]{64})/checkpoint", self.path, re.ASCII)
        self._answer(lambda: self.server.witness.checkpoint(found[1] if found else "-"))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Print nothing: the witness tells what it signs."""

    def _posted(self) -> str:
        if self.path != "/add-checkpoint":
            raise Refused(404, "expected /add-checkpoint\n")
        length = self.headers.get("Content-Length", "")
        if not NUMBER.fullmatch(length) or int(length) > BODY_BYTES_MAX:
            raise Refused(413, f"expected a length of at most {BODY_BYTES_MAX} bytes\n")
        return self.server.witness.add_checkpoint(self.rfile.read(int(length)))

    def _answer(self, made: Callable[[], str]) -> None:
        try:
            status, text, kind = 200, made(), "text/plain; charset=utf-8"
        except Refused as refused:
            status, text, kind = refused.status, refused.text, refused.kind
        raw = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(raw)


_Request = socket | tuple[bytes, socket]
"""As the library has it, whose servers of datagrams take the second."""


class Places:
    """How many connections there are, and of whom."""

    def __init__(self) -> None:
        """Begin with none."""
        self._one = threading.Lock()
        self._taken: Counter[str] = Counter()

    def take(self, address: str) -> bool:
        """Return whether an address may have one more."""
        most = CONNECTIONS_MAX if ip_address(address).is_loopback else OF_AN_ADDRESS_MAX
        with self._one:
            if self._taken[address] >= most or self._taken.total() >= CONNECTIONS_MAX:
                return False
            self._taken[address] += 1
            return True

    def give(self, address: str) -> None:
        """Give a place back."""
        with self._one:
            self._taken[address] -= 1
            self._taken += Counter()  # without those that have none


def _address(client: object) -> str:
    """Return the address of a client as the library has it, which is its first member."""
    return str(client[0]) if isinstance(client, tuple) else ""


def _end(connection: _Request) -> None:
    """End a connection that another thread reads; below TLS, which is that thread's."""
    with suppress(OSError):
        if isinstance(connection, socket):
            socket.shutdown(connection, SHUT_RDWR)


class Server(ThreadingHTTPServer):
    """A thread for each connection, and not more than so many."""

    daemon_threads = True
    request_queue_size = CONNECTIONS_MAX

    def __init__(
        self, address: tuple[str, int], witness: Witness, tls: ssl.SSLContext | None = None
    ) -> None:
        """Listen."""
        super().__init__(address, Handler)
        self.witness = witness
        self._places = Places()
        if tls is not None:  # the handshake is made in the connection's thread
            self.socket = tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def process_request(self, request: _Request, client_address: object) -> None:
        """Start a thread, or end the connection where there are too many."""
        if not self._places.take(_address(client_address)):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the system has no thread for it
            self._places.give(_address(client_address))
            raise

    def process_request_thread(self, request: _Request, client_address: object) -> None:
        """Serve a connection for a bounded time, and give its place back."""
        ends = threading.Timer(SECONDS_MAX, _end, (request,))
        ends.daemon = True
        try:
            ends.start()
            super().process_request_thread(request, client_address)
        finally:
            ends.cancel()
            self._places.give(_address(client_address))

    def handle_error(self, request: _Request, client_address: object) -> None:  # noqa: ARG002 - the library passes them
        """Say what went wrong, in a line; a connection that ended is nothing to tell."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError | ssl.SSLError):
            print(f"ERROR {type(error).__name__}: {error}", file=sys.stderr, flush=True)


# -------------------------------------------------------------------------------- The command line


def keygen(name: str, path: Path) -> list[str]:
    """Write new keys to a file that nobody else may read; return the public ones."""
    kinds = [ED25519] if MLDSA44PrivateKey is None else [ED25519, ML_DSA_44]
    if not NAME.fullmatch(name) or len(name.encode()) > 200:  # noqa: PLR2004 - as services take
        raise ValueError("a witness's name has neither spaces nor +; expected example.org/witness")
    cosigners = [Cosigner(name, kind, secrets.token_bytes(HASH_BYTES)) for kind in kinds]
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(opened, "w") as file:
        for one in cosigners:
            file.write(f"{one.kind}:{base64.b64encode(one.seed).decode()}:{name}\n")
        file.flush()
        os.fsync(file.fileno())
    return [key_text(one.name, one.raw) for one in cosigners]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="witness.py", description="A witness of checkpoints.")
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("keygen", help="write new keys, print the public ones")
    made.add_argument("name")
    made.add_argument("--key", type=Path, required=True)
    shown = commands.add_parser("keys", help="print the public keys")
    shown.add_argument("--key", type=Path, required=True)
    served = commands.add_parser("serve", help="take checkpoints")
    served.add_argument("--key", type=Path, required=True)
    served.add_argument("--state", type=Path, required=True)
    served.add_argument("--log", action="append", required=True, help="a log's public key")
    served.add_argument("--origin", action="append", default=[], help="sign these origins alone")
    served.add_argument("--host", default="127.0.0.1")
    served.add_argument("--port", type=int, default=8090)
    served.add_argument("--tls-certificate", type=Path)
    served.add_argument("--tls-key", type=Path)
    return parser


def _tell(line: str) -> None:
    """Print a line; who cannot be told anything any more still gets signatures."""
    with suppress(OSError):
        print(line, flush=True)


def main() -> int:
    """Do what the arguments say; return the exit code."""
    given = _parser().parse_args()
    try:
        if given.command == "keygen":
            print("\n".join(keygen(given.name, given.key)))
            return 0
        cosigners = read_cosigners(given.key)
        if given.command == "keys":
            print("\n".join(key_text(one.name, one.raw) for one in cosigners))
            return 0
        logs = [LogKey.parse(text) for text in given.log]
        state = State(given.state)
    except (OSError, ValueError) as error:
        print(f"witness.py: {error}", file=sys.stderr)
        return 2
    tls = None
    if given.tls_certificate:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(given.tls_certificate, given.tls_key)
    witness = Witness(cosigners, logs, state, given.origin, tell=_tell)
    with Server((given.host, given.port), witness, tls) as server:
        print(f"listening on {given.host}:{server.server_address[1]}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
