"""Where webhooks may go: the addresses that the hosts of partners' URLs have.

Partners choose the URL, and name servers answer as they like. So a host is resolved once for each
attempt, every address of it is judged, and the connection goes to one of those very addresses.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

import dns.asyncresolver
import dns.exception

from service.webhooks.urls import NotPublic

RESOLVE_SECONDS_MAX: Final = 4.0
ADDRESSES_MAX: Final = 16
"""A host with more is refused: nobody needs them, and each would be judged."""
NOWHERE: Final = "the name of the host did not lead to public addresses alone"
"""Whatever is wrong with a name: the difference would tell which names our network knows."""

IpAddress = IPv4Address | IPv6Address

_UNICAST: Final = IPv6Network("2000::/3")
"""All of IPv6 that is given out; what translates to IPv4 lies in it, or outside."""
_NOT_PUBLIC: Final = tuple(
    ip_network(network)
    for network in (
        "168.63.129.16/32",  # a cloud's metadata and keys, at an address that looks public
        "192.0.0.0/24",  # protocol assignments, and a cloud's metadata
        "192.88.99.0/24",  # relays of 6to4
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",  # documentation
    )
)


def is_public(address: IpAddress) -> bool:
    """Return whether an address is one of the internet's, and of a single machine."""
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False  # with what wraps an IPv4 address: mapped, compatible, NAT64
    if not address.is_global or address.is_multicast:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


async def resolve(host: str, *, allow_private: bool = False) -> Sequence[str]:
    """Return the addresses of a host, all of them public; raises NotPublic.

    By name servers alone, in a bounded time, and without the machine's own names: what resolves
    them for the rest of the process has few threads, which a slow name server would take.
    """
    if allow_private and (known := _here(host)):
        return known
    found = await _look_up(host)
    if not 0 < len(found) <= ADDRESSES_MAX:
        raise NotPublic(NOWHERE, "no address, or too many")
    if not allow_private and not all(is_public(ip_address(one)) for one in found):
        raise NotPublic(NOWHERE, "an address is not public")
    return found


async def _look_up(host: str) -> Sequence[str]:
    try:
        answers = await dns.asyncresolver.resolve_name(
            f"{host}.", lifetime=RESOLVE_SECONDS_MAX, search=False
        )
    except (dns.exception.DNSException, OSError, ValueError) as error:
        raise NotPublic(NOWHERE, f"not resolved: {type(error).__name__}") from error
    return sorted(answers.addresses(), key=lambda one: ":" in one)  # IPv4 is reachable everywhere


def _here(host: str) -> Sequence[str]:
    if host == "localhost":
        return ["127.0.0.1"]
    try:
        return [str(ip_address(host))]
    except ValueError:
        return []
