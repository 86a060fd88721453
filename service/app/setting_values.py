"""Parsers of settings' values: text → value, or a ValueError with what is wrong and expected.

Parsers of secrets never quote the text; URLs are kept as they came, checked.

A parser that needs a library imports it itself: `health`, which containers run again and again,
reads a few settings that need none.
"""

import base64
import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import SplitResult, parse_qs, urlsplit

from service.app.transport import is_this_machine, unread
from service.facts.caller import LEDGERS
from service.mail.address import parse_mail_url

if TYPE_CHECKING:
    from service.app.key_service import KmsKey
    from service.evidence.note import NoteKey
    from service.evidence.policy import Policy
    from service.evidence.time_stamp import TimeAnchor

_T = TypeVar("_T")

Network = IPv4Network | IPv6Network

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_POSTGRESQL: Final = re.compile(
    r"postgres(?:ql)?://(?:[^/?#\s]*@)?([^/?#@\s]*)(/[^?#\s]*)?(?:\?([^#\s]*))?"
)
_HOST_PORT: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*)(?::[0-9]{1,5})?")
_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+/?", re.IGNORECASE)
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_PASSWORD: Final = re.compile(r"(://[^:/@]*):.*@")
_PASSWORD_OPTION: Final = re.compile(r"([?&][^=&]*password)=[^&]*", re.IGNORECASE)


def masked(url: str) -> str:
    """Return a URL without its passwords, fit for a person's eyes."""
    return _PASSWORD_OPTION.sub(r"\1=***", _PASSWORD.sub(r"\1:***@", url))


def database_url(text: str) -> str:
    """Take a PostgreSQL URL; several hosts (h1:5432,h2), and a socket in `?host=`, are allowed."""
    # A pattern of our own: urlsplit cannot read several hosts, the driver can.
    frame = _POSTGRESQL.fullmatch(text)
    if frame is None or not all(_HOST_PORT.fullmatch(part) for part in frame[1].split(",")):
        raise ValueError(
            "expected postgresql://user:password@host:5432/database, / ? # @ and white space in "
            "the password percent-encoded"
        )
    return text


def database_place(url: str) -> str:
    """Return host and database of a PostgreSQL URL, without who logs in."""
    frame = _POSTGRESQL.fullmatch(url)
    hosts, path, query = frame.groups(default="") if frame else ("", "", "")
    return f"{hosts or ','.join(parse_qs(query).get('host', []))}{path}"


def redis_url(text: str) -> str:
    """Take the URL of a Redis, over TCP, TLS or a socket."""
    expected = "redis://host:6379/0, rediss://… or unix:///socket"
    parts = _split(text, ("redis", "rediss", "unix"), expected)
    if not (parts.path if parts.scheme == "unix" else parts.hostname):
        raise ValueError(f"names no server; expected {expected}")
    return text


def clamd_url(text: str) -> str:
    """Take the address of a clamd, over TCP or a socket."""
    expected = "tcp://host:3310 or unix:///socket"
    parts = _split(text, ("tcp", "unix"), expected)
    is_socket = parts.scheme == "unix"
    named = parts.path.strip("/") if is_socket else parts.hostname and parts.port
    if not named or (parts.netloc if is_socket else parts.path.strip("/")) or parts.query:
        raise ValueError(f"names no scanner; expected {expected}")
    return text


def mail_url(text: str) -> str:
    """Take the URL of a mail server or a mail directory."""
    parse_mail_url(text)
    return text


def origin(text: str) -> str:
    """Return an http(s) origin as browsers write it: no slash, no default port, lower case."""
    expected = f"an origin such as https://api.example.com, not {_quoted(text)}"
    parts = _split(text, ("http", "https"), expected)
    if not _ORIGIN.fullmatch(text) or not parts.hostname:
        raise ValueError(f"expected {expected}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = {"http": 80, "https": 443}[parts.scheme]
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def secure_origin(text: str) -> str:
    """Return an origin that nobody reads along with: https, but for this machine."""
    found = origin(text)
    if found.startswith("http:") and not is_this_machine(urlsplit(found).hostname or ""):
        raise ValueError(f"expected https:// for all but this machine, not {_quoted(text)}")
    return found


def local_origin(text: str) -> str:
    """Take an http origin on this machine."""
    found = origin(text)
    if not found.startswith("http:") or not is_this_machine(urlsplit(found).hostname or ""):
        raise ValueError(f"expected http://127.0.0.1:PORT, not {_quoted(text)}")
    return found


def sender(text: str) -> str:
    """Take `user@domain` or `Name <user@domain>`, in ASCII."""
    from email.errors import MessageError
    from email.headerregistry import Address
    from email.utils import parseaddr

    name, spec = parseaddr(text)
    try:
        domain = Address(display_name=name, addr_spec=spec).domain
    except (ValueError, MessageError, IndexError):
        domain = ""
    if not domain or not text.isascii() or not text.isprintable():
        raise ValueError(f"expected an address such as no-reply@example.com, not {_quoted(text)}")
    return text


def email_address(text: str) -> str:
    """Take an email address as people sign in with it."""
    from service.http.scalars import email_fault

    fault = email_fault(text)
    if fault is not None:
        raise ValueError(f"{fault}, not {_quoted(text)}")
    return text


def verification_keys(text: str) -> "tuple[NoteKey, ...]":
    """Return the keys of checkpoints, newest first, private or public."""
    from service.evidence.note import NoteKey

    return tuple(NoteKey.parse(part.strip()) for part in text.split(","))


def note_keys(text: str) -> "tuple[NoteKey, ...]":
    """Return the keys of checkpoints, newest first; that one has to be private."""
    keys = verification_keys(text)
    if not keys[0].can_sign:
        raise ValueError("the first key is a public one; expected the private one that signs")
    return keys


def witness_policy(text: str) -> "Policy":
    """Read the policy in a file; the URLs of its witnesses are such that nobody reads along."""
    from service.evidence.policy import POLICY_BYTES_MAX, parse_policy

    try:
        with readable_file(text).open("rb") as file:
            policy = parse_policy(file.read(POLICY_BYTES_MAX + 1))
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from None
    for witness in policy.witnesses.values():
        if witness.url:
            _secure_url(witness.url)
    return policy


def _secure_url(text: str) -> str:
    """Take a URL with a path that nobody reads along with: https, but for this machine."""
    expected = f"a URL such as https://witness.example.org, not {_quoted(text)}"
    parts = _split(text, ("http", "https"), expected)
    if not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ValueError(f"expected {expected}")
    secure_origin(f"{parts.scheme}://{parts.netloc}")
    return text


def time_anchor(text: str) -> "TimeAnchor":
    """Read the certificate in a file that a time-stamping authority's own leads to."""
    from service.evidence.time_stamp import ANCHOR_BYTES_MAX, TimeAnchor

    try:
        with readable_file(text).open("rb") as file:
            return TimeAnchor.parse(file.read(ANCHOR_BYTES_MAX))
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from None


def time_stamp_url(text: str) -> str:
    """Take a URL with a path; what is answered is signed, so it may go over `http`, too."""
    parts = _split(text, ("http", "https"), "a URL such as http://time.example.org/stamp")
    if not parts.hostname or parts.username or parts.fragment:
        raise ValueError(f"expected http://time.example.org/stamp, not {_quoted(text)}")
    return text


def key_name(text: str) -> str:
    """Take a name that a signature line can have."""
    from service.evidence.note import check_name

    check_name(text)
    return text


def archive_url(text: str) -> str:
    """Take the URL of a directory or of a bucket of the cloud."""
    expected = f"file:///directory or gs://bucket/prefix, not {_quoted(text)}"
    parts = _split(text, ("file", "gs"), expected)
    named = _BUCKET.fullmatch(parts.netloc) if parts.scheme == "gs" else parts.path.strip("/")
    if not named or (parts.scheme == "file" and parts.netloc) or parts.query or parts.fragment:
        raise ValueError(f"expected {expected}")
    return text.rstrip("/")


def master_keys(text: str) -> "tuple[bytes | KmsKey, ...]":
    """Return the ring, newest first, comma separated.

    Each key is base64 (either alphabet) of 32 bytes, or `gcp-kms:NAME:CIPHERTEXT`.
    """
    parts = [part.strip() for part in text.split(",")]
    keys = tuple(_master_key(part, f"key {n} of {len(parts)}") for n, part in enumerate(parts, 1))
    if len(set(keys)) != len(keys):
        raise ValueError("holds the same key twice; expected each key once, newest first")
    return keys


def networks(text: str) -> tuple[Network, ...]:
    """Return comma separated addresses and networks, an address as a network of one."""
    return tuple(_network(part.strip()) for part in text.split(",") if text)


def host(text: str) -> str:
    """Take an address or a host name to listen on."""
    if not re.fullmatch(r"[A-Za-z0-9.:_-]+", text):
        raise ValueError(f"expected an address such as 127.0.0.1 or ::, not {_quoted(text)}")
    return text


def whole(lowest: int, highest: int) -> Callable[[str], int]:
    """Return a parser of whole numbers within bounds, both included."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not lowest <= int(text) <= highest:
            raise ValueError(f"expected a number from {lowest} to {highest}, not {_quoted(text)}")
        return int(text)

    return parse


def choice(options: Mapping[str, _T]) -> Callable[[str], _T]:
    """Return a parser of one of some words."""

    def parse(text: str) -> _T:
        if text.lower() not in options:
            raise ValueError(f"expected one of {', '.join(options)}, not {_quoted(text)}")
        return options[text.lower()]

    return parse


def host_names(text: str) -> tuple[str, ...]:
    """Return comma separated names or addresses of hosts."""
    return tuple(host(part.strip()).lower() for part in text.split(",") if text)


def numbers_of_ledgers(text: str) -> Mapping[str, int]:
    """Return comma separated numbers, each after the ledger that it is of."""
    pairs = [part.strip().partition("=") for part in text.split(",") if text]
    names = [name for name, _, _ in pairs]
    if len({*names} & {*LEDGERS}) < len(names):
        raise ValueError(f"expected each of {', '.join(LEDGERS)} once at most, as in live=1")
    return {name: whole(0, 1_000_000)(number) for name, _, number in pairs}


def bucket(text: str) -> str:
    """Take a bucket's name."""
    if not _BUCKET.fullmatch(text):
        raise ValueError("expected a bucket's name: 3 to 222 of a-z, 0-9, -, _ and .")
    return text


def readable_file(text: str) -> Path:
    """Take the path of a file that we can read."""
    path = Path(text)
    try:
        path.open("rb").close()
    except OSError as error:
        raise ValueError(f"cannot read the file: {error.strerror}") from error
    return path


def built_site(text: str) -> Path:
    """Take the path of a directory of pages."""
    path = Path(text)
    index = path / "index.html"
    try:
        index.open("rb").close()
    except OSError as error:
        expected = "expected a directory with an index.html, as `just site` makes it"
        raise ValueError(f"{unread(index, error)}; {expected}") from error
    return path


def sender_at(public_url: str) -> str:
    """Return the default sender at an origin's host; at localhost where that is no domain."""
    name = urlsplit(public_url).hostname or ""
    try:
        ip_address(name)
    except ValueError:
        return f"no-reply@{name}" if "." in name else "no-reply@localhost"
    return "no-reply@localhost"


def _split(text: str, schemes: tuple[str, ...], expected: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        known = parts.scheme in schemes and parts.port != -1  # reading the port checks it
    except ValueError:  # its text quotes the URL's parts, the password among them
        raise ValueError(f"cannot be read as a URL; expected {expected}") from None
    if not known:
        raise ValueError(f"expected {expected}")
    if parts.fragment:
        raise ValueError("holds a #; percent-encode it (%23) in a password")
    return parts


def _master_key(text: str, which: str) -> "bytes | KmsKey":
    from service.app.key_service import PREFIX, KmsKey
    from service.ledger.encryption import KEY_BYTES

    if text.startswith(PREFIX):
        try:
            return KmsKey.parse(text)
        except ValueError:
            expected = "gcp-kms:NAME:CIPHERTEXT, as `keys-at-rest keygen --kms-key NAME` prints it"
            raise ValueError(f"{which} is malformed; expected {expected}") from None
    expected = f"expected base64 of {KEY_BYTES} bytes"
    standard = text.translate(str.maketrans("-_", "+/"))
    if not _BASE64.fullmatch(standard):
        raise ValueError(f"{which} is not base64; {expected}")
    bare = standard.rstrip("=")
    if len(bare) % 4 == 1:  # no number of bytes has that many characters
        raise ValueError(f"{which} is cut short; {expected}")
    key = base64.b64decode(bare + "=" * (-len(bare) % 4))
    if len(key) != KEY_BYTES:
        raise ValueError(f"{which} has {len(key)} bytes; {expected}")
    return key


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError:
        raise ValueError(
            f"expected addresses and networks such as 10.0.0.0/8, not {_quoted(text)}"
        ) from None


def _quoted(text: str) -> str:
    text = masked(text)  # a URL with a password may stand in the wrong variable
    shown_max = 60
    return repr(text if len(text) <= shown_max else text[:shown_max] + "…")
