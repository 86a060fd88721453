"""A real SMTP server in the test's own loop, which can be made to misbehave."""

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from ipaddress import ip_address
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from service.mail.messages import greeted, magic_link_letter

USER, PASSWORD = "mailer", "p@ss/word"
LINK = "https://api.example.com/onboarding/" + "t" * 43


def mail(**changes: object) -> EmailMessage:
    """Return a magic-link mail with some values changed."""
    letter = {
        "user_name": "Zoë Müller",
        "company_name": "Łódź Paints Ltd",
        "partner_name": "Books & Co",
        "link": LINK,
        "expires_at": datetime(2026, 3, 8, 14, 30, tzinfo=UTC),
    }
    envelope = {
        "to": "owner@example.com",
        "sender": "no-reply@example.com",
        "message_id": "onb_01-magic-link@example.com",
        "date": datetime(2026, 3, 1, 14, 30, tzinfo=UTC),
    }
    letter |= {name: value for name, value in changes.items() if name in letter}
    envelope |= {name: value for name, value in changes.items() if name not in letter}
    name = greeted(letter["user_name"])
    return magic_link_letter(**letter).message(**envelope, name=name)


def plain(message: EmailMessage) -> str:
    """Return the plain text of a mail, with plain line ends."""
    return _part(message, "plain")


def html(message: EmailMessage) -> str:
    """Return the HTML of a mail, with plain line ends."""
    return _part(message, "html")


def _part(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    assert isinstance(part, EmailMessage)
    return part.get_content().replace("\r\n", "\n")


class MailServer:
    """Keeps what it receives. `on_rcpt` and `on_data` override its answers; None: it accepts.

    It answers DATA when `answers` is set.
    """

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.encrypted: list[bool] = []
        self.on_rcpt: str | None = None
        self.on_data: str | None = None
        self.drop_on_data = False
        self.drop_on_quit = False
        self.answers = asyncio.Event()
        self.answers.set()
        self.server: asyncio.Server | None = None

    async def start(self, make: Callable[[], asyncio.Protocol] | None = None, **options) -> int:
        """Listen on a free port of 127.0.0.1 and return the port."""
        loop = asyncio.get_running_loop()
        tls = options.pop("implicit_tls", None)
        self.server = await loop.create_server(
            make or (lambda: SMTP(self, hostname="mail.example.com", loop=loop, **options)),
            "127.0.0.1",
            0,
            ssl=tls,
        )
        return self.server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening."""
        if self.server is not None:
            self.server.close()
            await self.server.wait_closed()

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Answer RCPT TO."""
        del server, options
        if self.on_rcpt:
            return self.on_rcpt
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """Answer the end of DATA."""
        if self.drop_on_data:
            server.transport.abort()
        elif self.on_data is None:
            assert isinstance(envelope.content, bytes)
            self.received.append(envelope.content)
            self.encrypted.append(session.ssl is not None)
        await self.answers.wait()
        return self.on_data or "250 OK"

    async def handle_QUIT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, _session: Session, _envelope: Envelope
    ) -> str:
        """Answer QUIT."""
        if self.drop_on_quit:
            server.transport.abort()
        return "221 Bye"


def check_password(*arguments: object) -> AuthResult:
    """Return whether the server accepts these credentials."""
    given = arguments[-1]
    known = given == LoginPassword(USER.encode(), PASSWORD.encode())
    return AuthResult(success=known, handled=False)


class Silent(asyncio.Protocol):
    """A server that accepts connections and never answers."""


class MuteAtData(asyncio.Protocol):
    """A server that takes every command but DATA, which it does not answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(b"220 mail.example.com\r\n")

    def data_received(self, data: bytes) -> None:
        """Accept."""
        if data != b"DATA\r\n":
            self.transport.write(b"250 OK\r\n")


def tls_contexts(directory: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the server's and the client's side of a certificate for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, SHA256())
    )
    path = directory / "server.pem"
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + certificate.public_bytes(Encoding.PEM)
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(cafile=str(path))
