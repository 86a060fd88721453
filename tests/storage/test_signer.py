import asyncio
import base64
import socket
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from google.oauth2 import service_account
from google.oauth2.credentials import Credentials

from service.cli.dev.gcs.credentials import local_credentials
from service.cli.dev.gcs.verifier import Request, verify
from service.storage.deadline import AbortableSession
from service.storage.port import ShareFull, StorageUnavailable
from service.storage.signer import IAM_CALLS_MAX, IAM_CALLS_OF_ONE, IamSigner, KeySigner
from tests.patience import PATIENCE_SECONDS, eventually, waiting
from tests.storage.signing import private_key_of
from tests.tables import every_row

pytestmark = pytest.mark.server

NAME = "entities/ent_1/claims/ck_1/documents/0190a.pdf"
BUCKET = "test-documents"
SECONDS_MAX = 0.5


@pytest.fixture
def local(store_credentials):
    """Return a service account's credentials."""
    return local_credentials(store_credentials)


class Iam:
    """An IAM whose answers a test chooses."""

    def __init__(self, local) -> None:
        self.key = private_key_of(local.key)
        self.answer = self.signed
        self.calls = 0
        self.released = threading.Event()

    def signed(self, handler: BaseHTTPRequestHandler, payload: bytes) -> None:
        """Sign as IAM does."""
        signature = self.key.sign(payload, padding.PKCS1v15(), hashes.SHA256())
        body = b'{"signedBlob": "%s"}' % base64.b64encode(signature)
        self.status(handler, 200, body)

    @staticmethod
    def status(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"{}") -> None:
        """Return a status."""
        handler.send_response(status)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def hang(self, _handler: BaseHTTPRequestHandler, _payload: bytes) -> None:
        """Return nothing until the test ends."""
        self.released.wait()

    def drip(self, handler: BaseHTTPRequestHandler, _payload: bytes) -> None:
        """Return one byte at a time, forever."""
        handler.send_response(200)
        handler.send_header("content-length", "100000")
        handler.end_headers()
        try:
            while not self.released.wait(0.05):
                handler.wfile.write(b" ")
                handler.wfile.flush()
        except OSError:
            return


@contextmanager
def serving(iam: Iam) -> Generator[str]:
    """Serve an IAM; return its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            iam.calls += 1
            body = self.rfile.read(int(self.headers["content-length"]))
            iam.answer(self, base64.b64decode(body.partition(b'"payload": "')[2].rstrip(b'"}')))

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # calls are cut on purpose
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        iam.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def iam(local) -> Generator[Iam]:
    """Return an IAM that signs."""
    one = Iam(local)
    with serving(one) as one.address:
        yield one


@pytest.fixture
def iam_signer(local, iam) -> Generator[IamSigner]:
    """Return a signer that calls the test's IAM."""

    class Session(AbortableSession):
        def request(self, method, url, **kwargs) -> requests.Response:
            address = url.replace("https://iamcredentials.googleapis.com", iam.address)
            return super().request(method, address, **kwargs)

    signer = IamSigner(
        Credentials("token"),
        local.key["client_email"],
        BUCKET,
        seconds_max=PATIENCE_SECONDS,
        new_session=Session,
    )
    yield signer
    signer.close()


@pytest.fixture(params=["key", "iam"])
def signer(request, local):
    """Return each kind of signer; one contract holds for both."""
    if request.param == "key":
        return KeySigner(local.key, BUCKET)
    return request.getfixturevalue("iam_signer")


async def test_what_is_signed_verifies(signer, local):
    """The URL is a PUT of that object with exactly the two required headers."""
    upload = await signer.sign(NAME, "application/pdf", 1000)
    url = urlsplit(upload.url)
    assert f"{url.scheme}://{url.netloc}{url.path}" == (
        f"https://storage.googleapis.com/{BUCKET}/{NAME}"
    )
    headers = [(name.lower(), value) for name, value in upload.required_headers.items()]
    request = Request(
        method="PUT",
        raw_path=url.path,
        raw_query=url.query,
        headers=[("host", url.netloc), *headers],
    )
    signer_of = verify(request, datetime.now(UTC), local.public_key_of)
    assert signer_of == local.key["client_email"]
    names = "content-type;host;x-goog-content-length-range"
    assert parse_qs(url.query)["X-Goog-SignedHeaders"] == [names]


async def test_required_headers_are_two(signer):
    """The library's Host header is not passed on."""
    upload = await signer.sign(NAME, "image/png", 52428800)
    assert dict(upload.required_headers) == {
        "Content-Type": "image/png",
        "x-goog-content-length-range": "0,52428800",
    }


async def test_the_expiry_is_the_urls_own(signer):
    """`expires_at` is the URL's date plus its lifetime of 15 minutes."""
    before = datetime.now(UTC).replace(microsecond=0)
    upload = await signer.sign(NAME, "image/png", 1)
    after = datetime.now(UTC)
    query = parse_qs(urlsplit(upload.url).query)
    signed_at = datetime.strptime(query["X-Goog-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert query["X-Goog-Expires"] == ["900"]
    assert upload.expires_at == signed_at + timedelta(minutes=15)
    assert before <= signed_at <= after


FAILURES = {
    **{
        f"status {status}": lambda handler, _payload, status=status: Iam.status(handler, status)
        for status in (200, 400, 401, 403, 404, 429, 500, 503)
    },
    "no JSON": lambda handler, _payload: Iam.status(handler, 200, b"<html>"),
    "reset": lambda handler, _payload: handler.connection.shutdown(socket.SHUT_RDWR),
}


async def test_an_iam_that_fails_is_unavailability(iam, iam_signer):
    """Whatever it answers, it is called once, and no thread is left."""
    with every_row() as row:
        for name, answer in FAILURES.items():
            with row(name):
                iam.answer, iam.calls = answer, 0
                with pytest.raises(StorageUnavailable):
                    await iam_signer.sign(NAME, "application/pdf", 1000)
                await _idle(iam_signer)
                assert iam.calls == 1


async def test_an_iam_that_does_not_answer_is_given_up(iam, iam_signer):
    """A call ends at its deadline without leaving a thread, also for slow bytes."""
    iam_signer.seconds_max = SECONDS_MAX  # short, for these calls alone
    for answer in (iam.hang, iam.drip):
        iam.answer, iam.calls = answer, 0
        with waiting() as waited_seconds:
            with pytest.raises(StorageUnavailable):
                await iam_signer.sign(NAME, "application/pdf", 1000)
            assert SECONDS_MAX * 0.75 < waited_seconds() <= SECONDS_MAX + 0.1
        await _idle(iam_signer)
        assert iam.calls <= 1


async def test_more_calls_than_threads(iam, iam_signer):
    """Queued calls time out at the deadline too, and later ones succeed."""
    iam.answer = iam.hang
    iam_signer.seconds_max = SECONDS_MAX  # short, for these calls alone
    calls = (iam_signer.sign(NAME, "application/pdf", 1, f"ptn_{number}") for number in range(30))
    with waiting() as waited_seconds:
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert waited_seconds() <= SECONDS_MAX + 0.1
    assert {type(outcome) for outcome in outcomes} == {StorageUnavailable}
    iam.answer = iam.signed
    iam_signer.seconds_max = PATIENCE_SECONDS
    await _idle(iam_signer)
    assert (await iam_signer.sign(NAME, "application/pdf", 1)).required_headers


async def test_one_owners_calls_leave_threads_to_others(iam, iam_signer):
    """However many of them wait for IAM, somebody else's URL is signed at once."""
    iam.answer, iam.calls = iam.hang, 0
    calls = [
        asyncio.create_task(iam_signer.sign(NAME, "application/pdf", 1, "ptn_1"))
        for _ in range(2 * IAM_CALLS_MAX)
    ]
    await eventually(lambda: iam.calls >= IAM_CALLS_OF_ONE)
    iam.answer = iam.signed
    assert (await iam_signer.sign(NAME, "application/pdf", 1, "ptn_2")).required_headers
    assert not any(one.done() for one in calls)
    iam_signer.seconds_max = 0.0  # of those that wait for the others
    with pytest.raises(ShareFull):
        await iam_signer.sign(NAME, "application/pdf", 1, "ptn_1")
    for one in calls:
        one.cancel()
    await asyncio.wait(calls)
    await _idle(iam_signer)


async def test_a_cancelled_request_leaves_no_thread(iam, iam_signer):
    """The call is cut as at the deadline."""
    iam.answer = iam.hang
    task = asyncio.create_task(iam_signer.sign(NAME, "application/pdf", 1))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait([task])
    await _idle(iam_signer)


async def test_a_url_costs_one_signature_and_no_parsing(local, monkeypatch):
    """The key is parsed once, when the signer is made."""
    signer = KeySigner(local.key, BUCKET)
    signatures = []
    sign_bytes = service_account.Credentials.sign_bytes

    def counted(credentials, message: bytes) -> bytes:
        signatures.append(message)
        return sign_bytes(credentials, message)

    def parsed(*_arguments, **_options) -> None:
        pytest.fail("the key was parsed again")

    monkeypatch.setattr(service_account.Credentials, "sign_bytes", counted)
    monkeypatch.setattr(serialization, "load_pem_private_key", parsed)
    for number in range(3):
        await signer.sign(f"{NAME}{number}", "application/pdf", 52428800)
    assert len(signatures) == 3


async def _idle(signer: IamSigner) -> None:
    """Wait until the signer's threads are free; a hanging call would never end by itself."""
    pool: ThreadPoolExecutor = signer._threads  # noqa: SLF001 - nothing outside shows them
    asked = [pool.submit(threading.get_ident) for _ in range(IAM_CALLS_MAX)]
    await eventually(lambda: all(one.done() for one in asked))
