"""One contract for every mail transport, then each transport's own faults."""

import asyncio
import email
import email.policy
import socket
import stat
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import quote

import pytest

from service.mail.address import SmtpAddress, parse_mail_url
from service.mail.directory import DirectoryTransport
from service.mail.port import (
    LateAnswer,
    MailRefused,
    MailTransport,
    MailUnanswered,
    MailUnavailable,
)
from service.mail.smtp import SmtpTransport
from service.mail.transport import mail_transport
from tests.mail.mail_server import (
    LINK,
    PASSWORD,
    USER,
    MailServer,
    MuteAtData,
    Silent,
    check_password,
    html,
    mail,
    plain,
    tls_contexts,
)
from tests.patience import PATIENCE_SECONDS, waiting

pytestmark = pytest.mark.server


@dataclass
class Post:
    """A transport and what arrived through it."""

    transport: MailTransport
    arrived: Callable[[], list[bytes]]


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    """Return a mail server that is not started yet."""
    server = MailServer()
    yield server
    await server.stop()


@pytest.fixture(params=["directory", "smtp", "smtp without 8BITMIME"])
async def post(request: pytest.FixtureRequest, tmp_path: Path, server: MailServer) -> Post:
    """Return each transport."""
    if request.param == "directory":
        mails = tmp_path / "mails"
        transport = mail_transport(f"file://{mails}")
        post = Post(transport, lambda: [path.read_bytes() for path in mails.glob("*")])
    else:
        port = await server.start(decode_data=False, enable_SMTPUTF8=request.param == "smtp")
        post = Post(mail_transport(f"smtp://127.0.0.1:{port}"), lambda: server.received)
    return post


def parsed(raw: bytes) -> EmailMessage:
    """Parse a message as its recipient does."""
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def files(directory: Path) -> list[Path]:
    """Return everything in a directory, partial files included."""
    return list(directory.iterdir())


async def test_a_message_arrives_unchanged(post: Post) -> None:
    """Headers and body, with names beyond ASCII too."""
    sent = mail()
    await post.transport.send(sent)
    (raw,) = post.arrived()
    arrived = parsed(raw)
    for name in ("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted"):
        assert str(arrived[name]) == str(sent[name])
    assert arrived["To"].addresses[0].display_name == "Zoë Müller"
    assert (plain(arrived), html(arrived)) == (plain(sent), html(sent))
    assert arrived.defects == []


async def test_the_link_is_not_wrapped(post: Post) -> None:
    """With ASCII names the link is in the raw bytes, on a line of its own."""
    await post.transport.send(mail(user_name="Ann", company_name="Paints", partner_name="Books"))
    (raw,) = post.arrived()
    assert LINK.encode() in raw.splitlines()


async def test_a_line_with_a_single_dot_is_kept(post: Post) -> None:
    """It does not end the message (RFC 5321 4.5.2)."""
    message = mail()
    message.clear_content()
    message.set_content("before\n.\n..\nafter\n")
    await post.transport.send(message)
    (raw,) = post.arrived()
    assert parsed(raw).get_content().replace("\r\n", "\n") == "before\n.\n..\nafter\n"


async def test_different_ids_are_different_messages(post: Post) -> None:
    """Both arrive."""
    await post.transport.send(mail(message_id="one@example.com"))
    await post.transport.send(mail(message_id="two@example.com"))
    assert {parsed(raw)["Message-ID"] for raw in post.arrived()} == {
        "<one@example.com>",
        "<two@example.com>",
    }


async def test_directory_replaces_the_same_message(tmp_path: Path) -> None:
    """Sending again replaces the file; nobody else can read it or the directory."""
    mails = tmp_path / "made" / "here"
    transport = DirectoryTransport(mails)
    await asyncio.gather(*(transport.send(mail()) for _ in range(8)))
    await transport.send(mail(company_name="Corrected"))
    (path,) = files(mails)
    assert path.name == "onb_01-magic-link.eml"
    assert "Corrected" in parsed(path.read_bytes())["Subject"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(mails.stat().st_mode) == 0o700


async def test_directory_contains_every_message(tmp_path: Path) -> None:
    """A Message-ID with path separators is written inside the directory, to the same file."""
    mails = tmp_path / "mails"
    for _ in range(2):
        await DirectoryTransport(mails).send(mail(message_id="../../up@example.com"))
    (path,) = files(mails)
    assert path.suffix == ".eml"
    assert files(tmp_path) == [mails]


async def test_an_unwritable_directory_is_temporary(tmp_path: Path) -> None:
    """A file in the directory's place is a temporary fault."""
    (tmp_path / "mails").write_text("")
    with pytest.raises(MailUnavailable):
        await DirectoryTransport(tmp_path / "mails").send(mail())


async def test_directory_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk leaves no file behind."""

    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(MailUnavailable):
        await DirectoryTransport(tmp_path).send(mail())
    assert files(tmp_path) == []


async def test_smtp_address_beyond_ascii_needs_smtputf8(server: MailServer) -> None:
    """A server without SMTPUTF8 refuses it for good; one with it accepts it."""
    port = await server.start()
    with pytest.raises(MailRefused):
        await SmtpTransport(f"smtp://127.0.0.1:{port}").send(mail(to="jörg@example.com"))
    await server.stop()
    port = await server.start(enable_SMTPUTF8=True)
    await SmtpTransport(f"smtp://127.0.0.1:{port}").send(mail(to="jörg@example.com"))
    assert "jörg@example.com".encode() in server.received[0]


@pytest.mark.parametrize("kind", ["smtp", "smtps"])
async def test_smtp_encrypts_and_signs_in(kind: str, server: MailServer, tmp_path: Path) -> None:
    """STARTTLS or TLS from the start, and a password with URL characters."""
    theirs, ours = tls_contexts(tmp_path)
    tls = {"tls_context": theirs} if kind == "smtp" else {"implicit_tls": theirs}
    port = await server.start(
        authenticator=check_password,
        auth_required=kind == "smtp",
        auth_require_tls=kind == "smtp",  # what aiosmtpd counts as TLS is STARTTLS alone
        **tls,
    )
    url = f"{kind}://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{port}"
    await SmtpTransport(url, tls_context=ours).send(mail())
    assert len(server.received) == 1
    assert server.encrypted == [kind == "smtp"]


async def test_smtp_takes_encryption_when_offered(server: MailServer, tmp_path: Path) -> None:
    """Without a password STARTTLS is used when offered, and its certificate is verified."""
    theirs, ours = tls_contexts(tmp_path)
    url = f"smtp://127.0.0.1:{await server.start(tls_context=theirs)}"
    await SmtpTransport(url, tls_context=ours).send(mail())
    assert server.encrypted == [True]
    with pytest.raises(MailUnavailable):
        await SmtpTransport(url).send(mail())


@pytest.mark.parametrize("credentials", ["", f"{USER}:secret@"])
async def test_smtp_refuses_to_send_unencrypted(credentials: str, server: MailServer) -> None:
    """With STARTTLS stripped, neither the password nor the mail is sent."""
    port = await server.start(authenticator=check_password, auth_require_tls=False)
    option = "" if credentials else "?starttls=require"
    with pytest.raises(MailUnavailable):
        await SmtpTransport(f"smtp://{credentials}127.0.0.1:{port}{option}").send(mail())
    assert server.received == []


async def test_smtp_wrong_password_keeps_the_mail(server: MailServer) -> None:
    """535 is a fault of our settings, so the mail is not given up."""
    port = await server.start(authenticator=check_password, auth_require_tls=False)
    url = f"smtp://{USER}:wrong@127.0.0.1:{port}?starttls=offered"
    with pytest.raises(MailUnavailable, match="535") as caught:
        await SmtpTransport(url).send(mail())
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize("where", ["on_rcpt", "on_data"])
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("550 5.1.1 <owner@example.com> unknown", MailRefused),
        ("552 5.2.2 mailbox full", MailRefused),
        ("554 5.7.1 spam", MailRefused),
        ("530 5.7.0 sign in first", MailUnavailable),
        ("450 4.2.0 <owner@example.com> greylisted", MailUnavailable),
        ("421 4.3.2 shutting down", MailUnavailable),
        ("452 4.3.1 full", MailUnavailable),
    ],
)
async def test_smtp_5xx_is_final_and_4xx_temporary(
    where: str, answer: str, error: type[Exception], server: MailServer
) -> None:
    """For recipient and message; the server's words are not passed on."""
    setattr(server, where, answer)
    port = await server.start()
    with pytest.raises(error) as caught:
        await SmtpTransport(f"smtp://127.0.0.1:{port}").send(mail())
    assert type(caught.value) is error
    assert "owner" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


async def test_smtp_cut_before_the_answer_leaves_it_unknown(server: MailServer) -> None:
    """Whether the server took the message; no answer can come any more."""
    server.drop_on_data = True
    port = await server.start()
    with pytest.raises(MailUnanswered) as caught:
        await SmtpTransport(f"smtp://127.0.0.1:{port}").send(mail())
    assert caught.value.late is None


async def late_answer(port: int, more_seconds: float = PATIENCE_SECONDS) -> LateAnswer:
    """Hand a message over to a server that does not answer; return its answer to come.

    The deadline is as long as this machine needs to hand it over; the answer has more.
    """
    deadline_seconds = 0.2
    while True:
        transport = SmtpTransport(
            f"smtp://127.0.0.1:{port}",
            deadline_seconds=deadline_seconds,
            answer_seconds=deadline_seconds + more_seconds,
        )
        try:
            await transport.send(mail())
        except MailUnavailable as error:
            if isinstance(error, MailUnanswered) and error.late:
                return error.late
            deadline_seconds *= 2


@pytest.mark.parametrize(
    ("answer", "error"), [(None, None), ("550 no", MailRefused), ("451 later", MailUnavailable)]
)
async def test_smtp_late_answer_is_waited_for(
    answer: str | None, error: type[Exception] | None, server: MailServer
) -> None:
    """A server that has all of a message may take minutes; what it says then counts."""
    server.answers.clear()
    server.on_data = answer
    late = await late_answer(await server.start())
    assert late.message_id == mail()["Message-ID"]
    server.answers.set()
    if error is None:
        assert await late.answer is None
        assert len(server.received) == 1
    else:
        with pytest.raises(error) as caught:
            await late.answer
        assert type(caught.value) is error


async def test_smtp_late_answer_ends_at_its_deadline(server: MailServer) -> None:
    """No answer costs no more than that, and leaves unknown what became of the message."""
    server.answers.clear()
    late = await late_answer(await server.start(), more_seconds=2.0)
    with pytest.raises(MailUnanswered) as caught:
        await late.answer
    assert caught.value.late is None
    server.answers.set()


async def test_smtp_late_answer_can_be_given_up(server: MailServer) -> None:
    """Its connection is closed."""
    server.answers.clear()
    port = await server.start()
    late = await late_answer(port)
    assert isinstance(late.answer, asyncio.Task)
    late.answer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await late.answer
    server.answers.set()
    assert [task for task in asyncio.all_tasks() if "_conversation" in repr(task)] == []


async def test_smtp_silence_before_the_message_leaves_nothing_unknown(server: MailServer) -> None:
    """A server that does not ask for the message has none."""
    port = await server.start(MuteAtData)
    transport = SmtpTransport(f"smtp://127.0.0.1:{port}", deadline_seconds=0.2)
    with pytest.raises(MailUnavailable) as caught:
        await transport.send(mail())
    assert type(caught.value) is MailUnavailable


async def test_smtp_cut_after_the_answer_is_success(server: MailServer) -> None:
    """A cut during QUIT is no fault: the message was accepted."""
    server.drop_on_quit = True
    port = await server.start()
    await SmtpTransport(f"smtp://127.0.0.1:{port}").send(mail())
    assert len(server.received) == 1


async def test_smtp_refused_connection_is_temporary() -> None:
    """Nobody listens: a temporary fault."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(MailUnavailable):
        await SmtpTransport(f"smtp://127.0.0.1:{port}").send(mail())


async def test_smtp_silence_ends_at_the_deadline(server: MailServer) -> None:
    """A silent server costs no more than the deadline."""
    port = await server.start(Silent)
    transport = SmtpTransport(f"smtp://127.0.0.1:{port}", deadline_seconds=0.2)
    with waiting() as waited, pytest.raises(MailUnavailable):
        await transport.send(mail())
    assert waited() < 1.0


async def test_smtp_sending_can_be_cancelled(server: MailServer) -> None:
    """A stopping worker is not delayed."""
    port = await server.start(Silent)
    task = asyncio.create_task(SmtpTransport(f"smtp://127.0.0.1:{port}").send(mail()))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("url", "host", "port", "implicit_tls", "starttls"),
    [
        ("smtp://mail.example.com", "mail.example.com", 587, False, False),
        ("smtp://mail.example.com:25?starttls=require", "mail.example.com", 25, False, True),
        ("smtp://u:p@mail.example.com", "mail.example.com", 587, False, True),
        ("smtp://u:p@mail.example.com?starttls=offered", "mail.example.com", 587, False, False),
        ("smtps://[::1]/", "::1", 465, True, False),
    ],
)
def test_url_defaults(url: str, host: str, port: int, implicit_tls: bool, starttls: bool) -> None:
    """The meaning of a URL that omits parts."""
    address = parse_mail_url(url)
    assert isinstance(address, SmtpAddress)
    assert (address.host, address.port) == (host, port)
    assert (address.implicit_tls, address.starttls) == (implicit_tls, starttls)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mail.example.com",
        "http://mail.example.com",
        "smtp://",
        "smtp://u:canary@mail.example.com:99999",
        "smtp://u:canary#@mail.example.com",
        "smtp://u:canary@mail.example.com#x",
        "smtp://u:canary@mail.example.com/path",
        "smtp://u:canary@mail.example.com?starttls=never",
        "smtp://u:canary@mail.example.com?tls=1",
        "smtp://u:canary@[mail.example.com",
        "file://relative",
        "file:relative",
        "file:///mails?x=1",
    ],
)
def test_invalid_urls_are_refused(url: str) -> None:
    """The message does not quote the password."""
    with pytest.raises(ValueError, match=r"expected|percent-encode") as caught:
        parse_mail_url(url)
    assert "canary" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_smtp_transport_needs_a_server_url() -> None:
    """A directory's URL is refused; a password is not shown."""
    with pytest.raises(ValueError, match="smtp"):
        SmtpTransport("file:///mails")
    assert "canary" not in repr(parse_mail_url("smtp://u:canary@mail.example.com"))
