"""What leaves this machine is encrypted: to PostgreSQL, Redis, clamd, mail, a collector, and pages.

Over the loopback, a socket, or to a host that `PLAINTEXT_HOSTS` names, nothing is asked for.
"""

import errno
import os.path
import re
import ssl
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from service.app.warned import warn_once
from service.mail.address import parse_mail_url

_OF_POSTGRESQL: Final = tuple(
    f"{prefix}DATABASE_URL" for prefix in ("", "ACCOUNTS_", "LIVE_", "TEST_")
)
_ENCRYPTED: Final = ("require", "verify-ca", "verify-full")
_VERIFIED: Final = ("verify-ca", "verify-full")
_USUAL_AUTHORITY: Final = "~/.postgresql/root.crt"
_ABSENT: Final = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
_HOST: Final = re.compile(r"^(\[.*\]|[^:]*):[0-9]*$")
_NAMED: Final = "or its host in CLAIM_LEDGER_PLAINTEXT_HOSTS"


def is_this_machine(host: str) -> bool:
    """Return whether a URL's host is the loopback, or a socket's path, or none at all."""
    if not host or host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def unread(path: str | Path, error: OSError) -> str:
    """Return why a file that a setting names is of no use: there is none, or it cannot be read."""
    if error.errno in _ABSENT:
        return f"there is no {path}"
    return f"{path} cannot be read ({error.strerror})"


def encrypt(parsed: dict[str, Any]) -> list[str]:
    """Make the URLs of PostgreSQL verify the server; return a line for each that is not safe.

    It begins with the setting's name.
    """
    faults: list[str] = []
    plaintext = parsed.get("PLAINTEXT_HOSTS") or ()
    checks = dict.fromkeys(_OF_POSTGRESQL, postgresql) | {
        "REDIS_URL": redis,
        "CLAMD_URL": clamd,
        "SMTP_URL": mail,
        "OTLP_URL": collector,
    }
    for name, check in checks.items():
        if parsed.get(name) is not None:
            try:
                parsed[name] = check(parsed[name], plaintext)
            except ValueError as error:
                faults.append(f"{name}: {error}")
    return faults


def postgresql(url: str, plaintext: Collection[str]) -> str:
    """Return a URL of PostgreSQL with `sslmode`, which is verify-full where it names none.

    Raises ValueError where the connection would not be encrypted, or the server not be verified
    although it should; wherever it is, for an authority that it names and that is none.
    """
    options = dict(parse_qsl(url.partition("?")[2]))
    if all(is_this_machine(host) or host in plaintext for host in _hosts(url, options)):
        # Nothing is asked for, but the driver fails by what is named, as it does elsewhere.
        if options.get("sslmode") in _ENCRYPTED:
            _check_authority(options, "sslrootcert")
        return url
    mode = options.get("sslmode", "verify-full")
    if mode not in _ENCRYPTED:
        raise ValueError(
            f"leaves this machine, and not encrypted; expected sslmode={', '.join(_ENCRYPTED)}, "
            f"{_NAMED}"
        )
    # A user of a container may have no home; then the path stays as it is, and is no file.
    authority = options.get("sslrootcert") or os.path.expanduser(_USUAL_AUTHORITY)  # noqa: PTH111 - as said
    # The driver loads one that is named whatever the mode.
    read = mode in _VERIFIED or "sslrootcert" in options
    if read and (fault := _authority_fault(authority)):
        raise ValueError(
            f"leaves this machine with sslmode={mode} (the default is verify-full), and {fault}; "
            "expected sslrootcert=FILE with the authority of the server's certificate, or "
            "sslmode=require alone to encrypt without verifying the server"
        )
    if "sslmode" in options:
        return url
    return f"{url}{'&' if '?' in url else '?'}sslmode={mode}"


def _check_authority(options: Mapping[str, str], name: str) -> None:
    """Raise ValueError if the file of an authority is named, and there is none in it."""
    if name in options and (fault := _authority_fault(options[name])):
        raise ValueError(
            f"{fault}; expected {name}=FILE with the authority of the server's certificate"
        )


def is_excepted(url: str, plaintext: Collection[str]) -> bool:
    """Return whether each host of a URL of PostgreSQL is one that `PLAINTEXT_HOSTS` names."""
    return all(host in plaintext for host in _hosts(url, dict(parse_qsl(url.partition("?")[2]))))


def _authority_fault(path: str) -> str | None:
    try:
        ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        return f"{path} has no certificate in PEM"
    except OSError as error:
        return unread(path, error)
    return None


def redis(url: str, plaintext: Collection[str]) -> str:
    """Return the URL of Redis.

    Raises ValueError where it would not be encrypted, or the authority that it names is none.
    """
    _check_authority(dict(parse_qsl(urlsplit(url).query)), "ssl_ca_certs")
    return _encrypted(url, plaintext, clear="redis", wanted="rediss")


def collector(url: str, plaintext: Collection[str]) -> str:
    """Return the URL of a collector; raises ValueError where it would not be encrypted."""
    return _encrypted(url, plaintext, clear="http", wanted="https")


def _encrypted(url: str, plaintext: Collection[str], *, clear: str, wanted: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == clear and not is_this_machine(host) and host not in plaintext:
        raise ValueError(f"leaves this machine, and not encrypted; expected {wanted}://…, {_NAMED}")
    return url


def clamd(url: str, plaintext: Collection[str]) -> str:
    """Return the URL of a clamd, which speaks no TLS; raises ValueError where that would matter."""
    host = urlsplit(url).hostname or ""
    if not is_this_machine(host) and host not in plaintext:
        raise ValueError(
            "leaves this machine, and not encrypted, which clamd cannot; expected unix:///socket, "
            f"{_NAMED}"
        )
    return url


def mail(url: str, plaintext: Collection[str]) -> str:
    """Return the URL of mail, which requires STARTTLS where it names neither that nor TLS.

    Raises ValueError where mail would go unencrypted once the server, or whoever is on the way to
    it, offers no encryption.
    """
    address = parse_mail_url(url)
    if isinstance(address, Path) or address.implicit_tls or address.starttls:
        return url
    if is_this_machine(address.host) or address.host in plaintext:
        return url
    if urlsplit(url).query:
        raise ValueError(
            "leaves this machine, and not encrypted where the server offers no STARTTLS; expected "
            f"starttls=require, smtps://…, {_NAMED}"
        )
    warn_once(
        "CLAIM_LEDGER_SMTP_URL now requires STARTTLS off this machine: mail waits until the server "
        "offers it, or until its host is in CLAIM_LEDGER_PLAINTEXT_HOSTS; with starttls=require in "
        "the URL this is not said again"
    )
    return f"{url}{'&' if '?' in url else '?'}starttls=require"


def _hosts(url: str, options: dict[str, str]) -> list[str]:
    """Return the hosts of a PostgreSQL URL, which may name several, or one as an option."""
    authority = re.split(r"[/?]", url.partition("://")[2], maxsplit=1)[0]
    named = [options[name] for name in ("host", "hostaddr") if name in options]
    parts = ",".join([authority.rpartition("@")[2], *named]).split(",")
    return [unquote(_HOST.sub(r"\1", part)).strip("[]").lower() for part in parts]
