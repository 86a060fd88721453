"""Addresses as proxies and sockets write them, and the networks that they are counted by."""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

Address = IPv4Address | IPv6Address

ADDRESSES_KEPT: Final = 4096

_PARSED_CHARACTERS_MAX: Final = 64
_HOST: Final = re.compile(
    r"""\[(?P<bracketed>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\](?::\d{1,5})?   # [2001:db8::1]:443
    | (?P<with_port>[0-9.]+):\d{1,5}                                  # 192.0.2.1:443
    | (?P<bare>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)""",
    re.VERBOSE | re.ASCII,
)


def address_of(text: str) -> Address | None:
    """Return the address of `host`, `host:port` or `[v6]:port`; None for anything else.

    An IPv4 address in IPv6's clothes is the IPv4 address; a zone says nothing to others and goes.
    """
    text = text.strip(' \t"')
    matched = _HOST.fullmatch(text) if len(text) <= _PARSED_CHARACTERS_MAX else None
    if matched is None:
        return None
    host = matched["bracketed"] or matched["with_port"] or matched["bare"]
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


@lru_cache(ADDRESSES_KEPT)
def network_of_host(host: str) -> str:
    """Return the network of an address: an IPv4 address, or an IPv6 network of 64 bits.

    Whoever has IPv6 has at least such a network, and can use any of its addresses.
    """
    address = address_of(host)
    if isinstance(address, IPv6Address):
        return str(IPv6Address(int(address) >> 64 << 64))
    return host if address is None else str(address)  # None: a socket without addresses
