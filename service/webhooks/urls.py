"""URLs that partners enter for webhooks: of a host of the internet, over TLS."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

URL_CHARACTERS_MAX: Final = 500

_HOST: Final = re.compile(
    r"(?=.{4,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])"
)
_PRINTABLE: Final = re.compile(r"[!-~]+")
_TLS_PORT: Final = 443
"""At another port a handshake of TLS could pass for something else; and egress is for this one."""


class NotPublic(Exception):
    """A webhook may not go there. `str()` tells the partner why, and names no address.

    `reason` is for our log alone, where the partner is not told.
    """

    def __init__(self, fault: str, reason: str = "") -> None:
        super().__init__(fault)
        self.reason: Final = reason


def check_url(text: str, *, allow_private: bool = False) -> SplitResult:
    """Return the parts of an endpoint's URL; raise NotPublic unless webhooks may go there.

    With `allow_private`, in development, `http://localhost:PORT` and such are taken, too.
    """
    if len(text) > URL_CHARACTERS_MAX or not _PRINTABLE.fullmatch(text) or "\\" in text:
        raise NotPublic(f"expected a URL of at most {URL_CHARACTERS_MAX} ASCII characters")
    try:
        url, port = urlsplit(text), urlsplit(text).port
    except ValueError as error:
        raise NotPublic("expected a URL such as https://example.com/webhooks") from error
    host = url.hostname or ""
    if url.username is not None or "#" in text:
        raise NotPublic("expected a URL without a user name and without a fragment")
    if allow_private and url.scheme in {"http", "https"} and host:
        return url
    if url.scheme != "https":
        raise NotPublic("expected https://")
    if not _HOST.fullmatch(host):
        raise NotPublic("expected the name of a host, such as example.com")
    if port not in {None, _TLS_PORT}:
        raise NotPublic("expected port 443")
    return url
