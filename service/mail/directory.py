"""Mail into a directory, a file a message: for development, tests and staging."""

import asyncio
import hashlib
import re
import secrets
from contextlib import suppress
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from pathlib import Path
from typing import Final

from service.core.files import write_new
from service.mail.port import MailUnavailable

_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}")


class DirectoryTransport:
    """Writes `<local part of the Message-ID>.eml`: sending again replaces the same file.

    Files are 0600 and the directory, when made here, 0700: the links in the mails are credentials.
    """

    def __init__(self, path: Path) -> None:
        """Take the directory; it is made at the first message."""
        self._path = path

    async def send(self, message: EmailMessage) -> None:
        """Write one message; raises MailUnavailable when the directory cannot be written."""
        policy = SMTP if message["To"].addresses[0].addr_spec.isascii() else SMTPUTF8
        target = self._path / f"{_file_name(message['Message-ID'])}.eml"
        try:
            await asyncio.to_thread(_replace, target, message.as_bytes(policy=policy))
        except OSError as error:
            raise MailUnavailable(f"{type(error).__name__} in the mail directory") from error


def _file_name(message_id: str) -> str:
    local_part = message_id.strip("<>").rpartition("@")[0]
    if _SAFE_NAME.fullmatch(local_part):
        return local_part
    # A path separator or a leading dot: a name of its own, and still the same one each time.
    return hashlib.sha256(message_id.encode()).hexdigest()[:32]


def _replace(target: Path, content: bytes) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # In the same directory, since a rename is atomic only there; the dot hides half-written files
    # from readers of *.eml.
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        write_new(temporary, content)
        temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
