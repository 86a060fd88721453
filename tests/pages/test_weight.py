"""Every page of the gallery: what a browser with an empty cache has to fetch for it."""

import pytest

from service.pages.assets import ASSETS
from service.web.fixed import takes_gzip
from tests.pages.filled import Filled
from tests.pages.gallery import SHOTS, Shot

PAGE_BYTES_MAX = 100_000
CSS_BYTES_MAX = 20_000


@pytest.fixture(scope="module")
def filled(site) -> Filled:
    """Answer an installation with something on every page."""
    return Filled(site)


@pytest.mark.parametrize("shot", SHOTS, ids=[shot.name for shot in SHOTS])
def test_a_page_weighs_less_than_100_kb(shot: Shot, filled: Filled):
    """With its style sheet, scripts and icon, as they are transferred."""
    page = filled.page_of(shot.who)
    shot.show(filled, page)
    page.wait_for_load_state("load")
    weights = page.evaluate(
        "performance.getEntries().filter(one => 'encodedBodySize' in one)"
        ".map(one => [one.name, one.encodedBodySize])"
    )
    names = [name for name, _ in weights]
    assert sum("/assets/" in name for name in names) >= 2, names
    assert all(name.startswith(filled.site.url) for name in names), "fetched from another host"
    assert sum(size for _, size in weights) < PAGE_BYTES_MAX, weights


def test_pages_are_not_packed_and_assets_are(site):
    """A packed page's length would tell of its secrets (BREACH); assets have none."""
    page = site.visitor()
    packed = page.goto("/sign-in")
    assert packed is not None
    assert "content-encoding" not in packed.headers
    asset = page.request.get(ASSETS.path("htmx.min.js"), headers={"Accept-Encoding": "gzip"})
    assert asset.headers["content-encoding"] == "gzip"
    assert asset.headers["vary"] == "Accept-Encoding"
    plain = page.request.get(
        ASSETS.path("htmx.min.js"), headers={"Accept-Encoding": "gzip;q=0, identity"}
    )
    assert "content-encoding" not in plain.headers
    assert plain.body() == asset.body()
    assert plain.headers["etag"] != asset.headers["etag"]


@pytest.mark.parametrize(
    ("given", "unpacks"),
    [
        ("", False),
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip; q=0", False),
        ("gzip;q=0.000", False),
        ("deflate", False),
    ],
)
def test_who_says_to_unpack(given, unpacks):
    """Names and weights of Accept-Encoding count, as RFC 9110 has them."""
    assert takes_gzip(given) is unpacks


def test_the_style_sheet_stays_small(site):
    """It is read by people too."""
    page = site.visitor()
    answer = page.request.get(ASSETS.path("pages.css"))
    assert answer.ok
    assert len(answer.body()) < CSS_BYTES_MAX
