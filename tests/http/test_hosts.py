"""The hosts under which the service is reached."""

from service.http.every_answer import every_answer
from service.http.hosts import Hosts

OWN = {
    "https://api.example.com": ("api.example.com", "API.example.com", "api.example.com:443"),
    "http://api.example.com": ("api.example.com", "api.example.com:80"),
    "https://api.example.com:8443": ("api.example.com:8443",),
    "http://127.0.0.1:8000": ("127.0.0.1:8000", "localhost:8000", "localhost", "[::1]:9000"),
    "http://localhost": ("localhost", "127.0.0.1", "127.0.0.2:5000"),
}
FOREIGN = (
    *("evil.example", "api.example.com.evil.example", "evil.example:443", "10.0.0.1", "[fe80::1]"),
    *(
        "api.example.com:444",
        "api.example.com.",
        "localhost.evil.example",
        "localhost@evil.example",
    ),
    *("", " ", "127.0.0.1.evil.example", "[::1", "127.0.0.1:8000:1", "0x7f000001", "2130706433"),
)


def named(*hosts: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request to these hosts."""
    return [(b"accept", b"*/*"), *((b"host", host.encode()) for host in hosts)]


def test_an_origin_goes_by_its_own_host():
    """With its scheme's port or without; on loopback, by every name of loopback."""
    for origin, hosts in OWN.items():
        assert [host for host in hosts if not Hosts(origin).include(named(host))] == [], origin


def test_other_hosts_are_not_ours():
    """Neither others' names, nor two at once, nor none."""
    for origin, (own, *_) in OWN.items():
        hosts = Hosts(origin)
        assert [host for host in FOREIGN if hosts.include(named(host))] == [], origin
        assert not hosts.include(named(own, own))
        assert not hosts.include(named())


def test_only_https_promises_https():
    """HSTS is for origins that have TLS; the others are development's."""
    assert "Strict-Transport-Security" in every_answer("https://api.example.com")
    assert "Strict-Transport-Security" not in every_answer("http://127.0.0.1:8000")
