"""Which addresses a partner's customers may return to."""

import pytest

from service.core.errors import Refusal
from service.http.decoding import check
from service.partners.wire import PartnerApproval, leads_to, return_url_fault, website_of

GOOD = (
    *("", "https://example.com", "https://www.example.com/", "https://a.example.com/x/y.html"),
    *("https://example.com/back?tenant=7&x=%20", "https://xn--bcher-kva.example/connected"),
)
BAD = (
    *("http://example.com/", "https:/example.com", "//example.com/x", "javascript:alert(1)"),
    *("https://", "https://localhost/x", "https://127.0.0.1/x", "https://[::1]/x"),
    *("https://example.com:8443/x", "https://user@example.com/x", "https://example.com/#x"),
    *("https://bücher.example/x", "https://example.com/ü", "https://example.com/a b"),
    *("https://example.com/\n", " https://example.com/", "https://example.com\\x", "HTTPS://A.B/"),
    *('https://example.com/"x', "https://example.com/<x>", "https://example.com/{x}"),
    *("https://example.com/?entity_id=ent_1", "https://example.com/?a=1&entity%5fid="),
)


@pytest.mark.parametrize("url", GOOD)
def test_pages_on_named_hosts_are_taken(url):
    """Over TLS, with a query of their own; or none at all."""
    assert return_url_fault(url) is None


@pytest.mark.parametrize("url", BAD)
def test_all_else_is_refused(url):
    """Other schemes and hosts, what hides where it leads, and what has an entity already."""
    assert return_url_fault(url) is not None


@pytest.mark.parametrize(
    ("website", "hosts"),
    [
        ("www.example.com", {"www.example.com", "a.www.example.com", "example.com"}),
        ("WWW.Example.com", {"www.example.com", "a.www.example.com", "example.com"}),
        (
            "example.com",
            {"example.com", "www.example.com", "a.www.example.com", "shop.example.com"},
        ),
        ("shop.example.com", {"shop.example.com"}),
        ("www.com", set()),
    ],
)
def test_a_website_is_the_same_with_and_without_www(website, hosts):
    """And below it; not its other neighbours, and no top-level domain."""
    tried = (
        *("example.com", "www.example.com", "a.www.example.com", "shop.example.com", "com"),
        *("notexample.com", "www.notexample.com", "wwwexample.com", "example.com.evil.example"),
    )
    assert {host for host in tried if leads_to(f"https://{host}/back", website)} == hosts


@pytest.mark.parametrize(
    "website", ["example.com\n", "\n", "example.com\nx", " example.com", "com"]
)
def test_a_verified_website_is_a_host_and_nothing_behind_it(website):
    """With a line end behind it, it would be no address's, and no return URL would be taken."""
    with pytest.raises(Refusal, match="validation"):
        check(PartnerApproval, website=website)


@pytest.mark.parametrize(
    ("entered", "website"),
    [
        *[(one, one) for one in ("", "www.example.com", "www.example.com/shop", "ftp://a.example")],
        *[(f"{one}://WWW.Example.com/", "www.example.com") for one in ("http", "HTTPS")],
    ],
)
def test_a_website_may_be_entered_as_its_address(entered, website):
    """Its host is what counts; anything more is left for its check to refuse."""
    assert website_of(entered) == website
