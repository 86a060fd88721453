"""The hosts under which the service is reached; requests that name another one are not for it.

A page of anybody's can have its own name resolve to our address, and so read what listens on
loopback (DNS rebinding); a cache keeps answers under the name that was asked for.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_AUTHORITY: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Hosts:
    """The hosts that some origins go by.

    An origin on loopback goes by every name of loopback, at any port: developers write `localhost`,
    and reach a machine through tunnels. No name of another's resolves to these.
    """

    def __init__(self, *origins: str) -> None:
        """Take origins as the settings have them: lower case, without a default port."""
        split = [urlsplit(origin) for origin in origins]
        self._allowed = {parts.netloc.encode() for parts in split} | {
            f"{parts.netloc}:{_DEFAULT_PORTS[parts.scheme]}".encode()
            for parts in split
            if parts.port is None
        }
        self._is_loopback = any(is_loopback(parts.hostname or "") for parts in split)

    def include(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Return whether a request with these headers names one of them, once."""
        named = [value for name, value in headers if name == b"host"]
        if len(named) != 1:
            return False
        if (host := named[0].lower()) in self._allowed:
            return True
        if not self._is_loopback:
            return False
        authority = _AUTHORITY.fullmatch(host.decode("latin-1"))
        return authority is not None and is_loopback(authority[1].strip("[]"))


@lru_cache(64)
def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its address or as `localhost`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
