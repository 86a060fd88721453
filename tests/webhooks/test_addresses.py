"""Where webhooks may go: hosts of the internet alone, whatever name servers say of them."""

from ipaddress import ip_address

import dns.asyncresolver
import dns.resolver
import pytest

from service.webhooks import addresses
from service.webhooks.addresses import ADDRESSES_MAX, RESOLVE_SECONDS_MAX, is_public, resolve
from service.webhooks.urls import NotPublic, check_url
from tests.tables import every_row

PUBLIC = ("93.184.215.14", "8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4009::200e")
NOT_PUBLIC = (
    *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200"),
    *("0.0.0.0", "255.255.255.255", "224.0.0.1", "239.1.1.1", "240.0.0.1", "192.0.0.192"),
    *("192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "168.63.129.16"),
    *("::", "::1", "fe80::1", "fec0::1", "fd00:ec2::254", "ff02::1", "ff0e::1", "100::1"),
    *("::ffff:8.8.8.8", "::ffff:127.0.0.1", "::8.8.8.8", "64:ff9b::10.0.0.1", "64:ff9b:1::1"),
    *("2002:7f00:1::", "2001::1", "2001:db8::1", "3fff::1", "5f00::1"),
)
GOOD = (
    "https://example.com",
    "https://example.com/hooks?tenant=1",
    "https://hooks.example.com:443/a",
    "https://EXAMPLE.com/",
    "https://xn--bcher-kva.example/",
)
BAD = (
    *("http://example.com/", "ftp://example.com/", "https:///x", "https://", "example.com", ""),
    *("https://127.0.0.1/", "https://2130706433/", "https://0x7f.1/", "https://[::1]/"),
    *("https://localhost/", "https://user@example.com/", "https://u:p@example.com/"),
    *(
        "https://@example.com/",
        "https://example.com#x",
        "https://example.com/#",
        "https://a b.example/",
    ),
    *("https://example.com:25/", "https://example.com:8443/", "https://example.com:99999/"),
    *("https://example.com\\@10.0.0.1/", "https://exämple.com/", "https://example.com/\r\nx: y"),
    *("https://example.1/", "https://-a.example/", "https://a..example/", "https://example.com./"),
    *("https://example.com/" + "a" * 500, "https://example.com/\\x"),
)


def test_addresses_of_the_internet_are_told_from_all_others():
    """Private, shared, reserved, multicast, documentation; and IPv4 wrapped in IPv6."""
    with every_row() as row:
        for address in PUBLIC:
            with row(address):
                assert is_public(ip_address(address))
        for address in NOT_PUBLIC:
            with row(address):
                assert not is_public(ip_address(address))


def test_a_url_names_a_host_of_the_internet_over_tls():
    """Whatever another program could read differently is refused."""
    with every_row() as row:
        for url in GOOD:
            with row(url):
                assert check_url(url).hostname
        for url in BAD:
            with row(url), pytest.raises(NotPublic):
                check_url(url)
    assert check_url("http://localhost:9000/x", allow_private=True).port == 9000


async def test_one_address_that_is_not_public_refuses_the_host(monkeypatch):
    """And a host without any, or with more than anybody needs.

    All are refused alike: what differs would tell partners which names our network knows.
    """
    answers = list(PUBLIC)

    async def look_up(_host):
        return answers

    refusals = []
    monkeypatch.setattr(addresses, "_look_up", look_up)
    assert list(await resolve("example.com")) == answers
    for found in (["8.8.8.8", "10.0.0.1"], ["10.0.0.1"], [], ["8.8.8.8"] * (ADDRESSES_MAX + 1)):
        answers[:] = found
        with pytest.raises(NotPublic) as refused:
            await resolve("example.com")
        refusals.append(refused.value)
    monkeypatch.undo()

    async def unknown(name, *, lifetime, search):
        assert (name[-1], lifetime, search) == (".", RESOLVE_SECONDS_MAX, False)
        raise dns.resolver.NXDOMAIN

    monkeypatch.setattr(dns.asyncresolver, "resolve_name", unknown)
    with pytest.raises(NotPublic) as refused:
        await resolve("example.com")
    refusals.append(refused.value)
    for ours in ("localhost", "127.0.0.1"):
        with pytest.raises(NotPublic):
            await resolve(ours)
    assert len({str(one) for one in refusals}) == 1
    assert [one.reason for one in refusals] == [
        *["an address is not public"] * 2,
        *["no address, or too many"] * 2,
        "not resolved: NXDOMAIN",
    ]
