"""The URL of the mail transport: an SMTP server, or a directory that collects messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

_PORTS: Final = {"smtp": 587, "smtps": 465}  # RFC 6409 submission, RFC 8314 implicit TLS
_EXPECTED: Final = "smtp://user:password@host:port, smtps://… or file:///directory"


@dataclass(frozen=True, slots=True)
class SmtpAddress:
    """A mail server. `implicit_tls`: TLS from the first byte; `starttls`: refuse to go without."""

    host: str
    port: int
    user: str | None
    password: str | None = field(repr=False)
    implicit_tls: bool
    starttls: bool


def parse_mail_url(url: str) -> SmtpAddress | Path:
    """Return the server, or the directory of a `file:` URL.

    `?starttls=require` insists on encryption, `?starttls=offered` takes it when offered. With a
    password the default is to insist: otherwise an attacker who strips the offer gets the password.

    Raises:
        ValueError: what is wrong and what is expected, without quoting any of the URL.

    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # its text quotes the URL's parts, the password among them
        raise ValueError(f"cannot be read as a URL; expected {_EXPECTED}") from None
    if parts.fragment:
        raise ValueError("holds a #; percent-encode it (%23) in the password")
    if parts.scheme == "file":
        return _directory(parts)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(f"expected {_EXPECTED}")
    return _server(parts, parts.hostname, port)


def _server(parts: SplitResult, host: str, port: int | None) -> SmtpAddress:
    if parts.path not in ("", "/"):
        raise ValueError(f"has a path; expected {_EXPECTED}")
    password = None if parts.password is None else unquote(parts.password)
    return SmtpAddress(
        host=host,
        port=_PORTS[parts.scheme] if port is None else port,
        user=unquote(parts.username) if parts.username else None,
        password=password,
        implicit_tls=parts.scheme == "smtps",
        starttls=_starttls(parse_qs(parts.query, keep_blank_values=True), password is not None),
    )


def _starttls(options: Mapping[str, list[str]], default: bool) -> bool:
    if not options:
        return default
    if set(options) != {"starttls"} or options["starttls"][0] not in ("require", "offered"):
        raise ValueError("has an unknown option; expected starttls=require or starttls=offered")
    return options["starttls"][0] == "require"


def _directory(parts: SplitResult) -> Path:
    path = Path(unquote(parts.path))
    if parts.netloc or parts.query or not path.is_absolute() or "\0" in str(path):
        raise ValueError("expected file:///absolute/directory for a mail directory")
    return path
