"""A local key service that speaks the part of Google Cloud KMS's REST interface that we use.

It encrypts with AES-GCM under versions of keys that it holds in memory, verifies checksums as the
original does, and can be told to fail.
"""

import base64
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google_crc32c import value as crc32c

NAME = "projects/example/locations/europe-west2/keyRings/ledger/cryptoKeys/master"


@dataclass
class KeyService:
    """The service's keys, by their names, and what is asked of it."""

    url: str = ""
    keys: dict[str, list[bytes]] = field(default_factory=lambda: {NAME: [os.urandom(32)]})
    calls: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    """Answers to give before the next that is right; the last stays while it is not 200."""
    answer: dict[str, Any] = field(default_factory=dict)
    """Fields to answer with in place of the right ones."""
    silent: threading.Event = field(default_factory=threading.Event)
    """Set: calls get a byte now and then, and no answer."""
    over: threading.Event = field(default_factory=threading.Event)

    def encrypt(self, name: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Encrypt under the newest version."""
        plain, bound_to = self._sent(asked, "plaintext")
        nonce, version = os.urandom(12), len(self.keys[name])
        box = AESGCM(self.keys[name][-1]).encrypt(nonce, plain, bound_to)
        sealed = bytes([version]) + nonce + box
        return {
            "name": f"{name}/cryptoKeyVersions/{version}",
            "ciphertext": base64.b64encode(sealed).decode(),
            "ciphertextCrc32c": str(crc32c(sealed)),
            "verifiedPlaintextCrc32c": "plaintextCrc32c" in asked,
        }

    def decrypt(self, name: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Decrypt under the version that encrypted."""
        sealed, bound_to = self._sent(asked, "ciphertext")
        key = self.keys[name][sealed[0] - 1]
        plain = AESGCM(key).decrypt(sealed[1:13], sealed[13:], bound_to)
        return {
            "plaintext": base64.b64encode(plain).decode(),
            "plaintextCrc32c": str(crc32c(plain)),
        }

    def _sent(self, asked: dict[str, Any], content: str) -> tuple[bytes, bytes]:
        found = []
        for name in (content, "additionalAuthenticatedData"):
            value = base64.b64decode(asked[name])
            assert int(asked[f"{name}Crc32c"]) == crc32c(value)
            found.append(value)
        return found[0], found[1]


@contextmanager
def key_service() -> Iterator[KeyService]:
    """Run a key service on loopback."""
    service = KeyService()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name, _, verb = unquote(urlsplit(self.path).path).removeprefix("/v1/").partition(":")
            service.calls.append(verb)
            if service.silent.is_set():
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                with suppress(OSError):  # nobody listens any more
                    while not service.over.wait(0.05):
                        self.wfile.write(b"X-Wait: 1\r\n")
                return
            status, answer = self._answer(name, verb, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _answer(self, name: str, verb: str, body: Any) -> tuple[int, Any]:
            if service.statuses and service.statuses[0] != 200:
                status = service.statuses[0]
                if len(service.statuses) > 1:
                    service.statuses.pop(0)
                return status, {"error": {"code": status, "message": "told to fail"}}
            if name not in service.keys:
                return 404, {"error": {"code": 404, "message": f"{name} not found"}}
            try:
                return 200, getattr(service, verb)(name, body) | service.answer
            except (InvalidTag, IndexError):
                return 400, {"error": {"code": 400, "message": "Decryption failed"}}

        def log_message(self, *_given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield service
    finally:
        service.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
