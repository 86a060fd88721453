"""Which client a request is counted as: ports, brackets, chains of proxies, IPv6 networks."""

from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from structlog.testing import capture_logs

from service.app.serve import warn_of_untrusted_proxy
from service.http.client_address import HOPS_MAX, ForwardedClients
from service.http.networks import address_of, network_of_host
from tests.tables import every_row
from tests.world import settings_for

TRUSTED = [ip_network("10.0.0.0/8"), ip_network("2001:db8:ffff::/48")]


async def client_of(
    peer: str, *forwarded: str, trusted: Sequence[Any] = tuple(TRUSTED), protocol: str = ""
) -> tuple[str, str]:
    """Return the client and the scheme that the application behind the proxies sees."""
    seen: list[Any] = []

    async def application(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope)

    headers = [(b"x-forwarded-for", one.encode("latin-1")) for one in forwarded]
    headers += [(b"x-forwarded-proto", protocol.encode())] if protocol else []
    scope: Any = {"type": "http", "client": (peer, 4711), "headers": headers, "scheme": "http"}
    await ForwardedClients(application, trusted)(scope, None, None)
    return seen[0]["client"][0], seen[0]["scheme"]


async def test_the_client_behind_trusted_proxies() -> None:
    """Read from the right, no further than our own proxies go, whatever form they write."""
    rows = [
        ("10.0.0.1", ["192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", ["192.0.2.7:51234"], "192.0.2.7"),
        ("10.0.0.1", ["[2001:db8::7]:51234"], "2001:db8::7"),
        ("10.0.0.1", ["[2001:db8::7]"], "2001:db8::7"),
        ("10.0.0.1", ['"[2001:db8::7]:51234"'], "2001:db8::7"),
        ("10.0.0.1", ["2001:db8::7"], "2001:db8::7"),
        ("10.0.0.1", ["fe80::1%eth0"], "fe80::1"),
        ("10.0.0.1", ["::ffff:192.0.2.7"], "192.0.2.7"),
        ("::ffff:10.0.0.1", ["192.0.2.7"], "192.0.2.7"),
        ("10.0.0.1", ["198.51.100.1, 192.0.2.7:80, 10.1.2.3:443"], "192.0.2.7"),
        ("10.0.0.1", ["198.51.100.1", "192.0.2.7", "10.1.2.3"], "192.0.2.7"),
        ("2001:db8:ffff::1", ["192.0.2.7, [2001:db8:ffff::2]:443"], "192.0.2.7"),
        ("10.0.0.1", ["10.2.0.1, 10.1.0.1"], "10.2.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.7, unknown, 10.1.0.1"], "10.1.0.1"),
        ("10.0.0.1", ["192.0.2.7, "], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.7:port"], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.7\u00b2"], "10.0.0.1"),
        ("10.0.0.1", [f"192.0.2.7{', 10.1.0.1' * (HOPS_MAX - 1)}"], "192.0.2.7"),
        ("10.0.0.1", [f"192.0.2.7{', 10.1.0.1' * HOPS_MAX}"], "10.1.0.1"),
        ("192.0.2.9", ["198.51.100.1"], "192.0.2.9"),
        ("/run/socket", ["198.51.100.1"], "/run/socket"),
    ]
    with every_row() as row:
        for peer, forwarded, expected in rows:
            with row(peer, *forwarded):
                assert (await client_of(peer, *forwarded))[0] == expected


async def test_the_scheme_is_taken_from_trusted_proxies_alone() -> None:
    """Nobody else's word counts, and no word but the two schemes."""
    assert await client_of("10.0.0.1", "192.0.2.7", protocol="https") == ("192.0.2.7", "https")
    assert await client_of("10.0.0.1", "192.0.2.7", protocol="ftp") == ("192.0.2.7", "http")
    assert await client_of("192.0.2.9", "192.0.2.7", protocol="https") == ("192.0.2.9", "http")


def test_what_is_no_address() -> None:
    """Long, empty and misshapen texts have none, and cost nothing to refuse."""
    texts = [
        "",
        "unknown",
        "_hidden",
        "1.2.3",
        "1.2.3.4:",
        "[::1",
        "::1]",
        "[::1]x",
        "[::1]:999999",
    ]
    assert [address_of(text) for text in [*texts, "1" * 30_000, ":" * 64]] == [None] * 11
    assert address_of(" [::1]:65535 ") == ip_address("::1")


def test_networks() -> None:
    """An IPv4 address counts for itself, one of IPv6 as the 64 bits of its network."""
    assert network_of_host("192.0.2.7") == "192.0.2.7"
    assert network_of_host("::ffff:192.0.2.7") == "192.0.2.7"
    assert network_of_host("2001:db8:0:1:aaaa::1") == network_of_host("2001:db8:0:1::")
    assert network_of_host("2001:db8:0:1::1") != network_of_host("2001:db8:0:2::1")
    assert network_of_host("") == ""


async def test_an_untrusted_proxy_is_noticed() -> None:
    """The first forwarded request of a process is logged, without any address; no other one is."""

    async def application(*_of_asgi: Any) -> None:
        """Answer nothing."""

    forwarding: Any = {
        "type": "http",
        "client": ("192.0.2.9", 1),
        "headers": [(b"x-forwarded-for", b"198.51.100.1")],
    }
    direct: Any = forwarding | {"headers": [(b"host", b"localhost")]}
    serve = ForwardedClients(application, TRUSTED)
    with capture_logs() as lines:
        for scope in (direct, forwarding, forwarding):
            await serve(scope, None, None)
    assert [line["log_level"] for line in lines] == ["warning"]
    assert "CLAIM_LEDGER_TRUSTED_PROXIES" in lines[0]["event"]
    assert "192.0.2.9" not in str(lines)


@pytest.mark.parametrize(
    ("public_url", "proxies", "warnings"),
    [
        ("https://api.example.com", "", 1),
        ("https://api.example.com", "10.0.0.0/8", 0),
        ("http://localhost:8000", "", 0),
    ],
)
def test_a_missing_proxy_is_noticed_at_the_start(tmp_path, public_url, proxies, warnings) -> None:
    """An https origin has a proxy in front: `serve` warns if none is trusted."""
    given = {"PUBLIC_URL": public_url, "TRUSTED_PROXIES": proxies}
    with capture_logs() as lines:
        warn_of_untrusted_proxy(settings_for("postgresql://localhost/x", tmp_path, **given))
    assert len([line for line in lines if "TRUSTED_PROXIES" in line["event"]]) == warnings
