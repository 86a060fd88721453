"""Compression and size of pages and assets."""

import pytest

from service.http.static import accepts_gzip
from service.pages.assets import asset_path

CSS_BYTES_MAX = 20_000


def test_only_assets_are_compressed(site):
    """A compressed page's length would reveal secrets (BREACH); assets have none."""
    page = site.visitor()
    packed = page.goto("/sign-in")
    assert packed is not None
    assert "content-encoding" not in packed.headers
    asset = page.request.get(asset_path("htmx.min.js"), headers={"Accept-Encoding": "gzip"})
    assert asset.headers["content-encoding"] == "gzip"
    assert asset.headers["vary"] == "Accept-Encoding"
    plain = page.request.get(
        asset_path("htmx.min.js"), headers={"Accept-Encoding": "gzip;q=0, identity"}
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
def test_accept_encoding_is_honoured(given, unpacks):
    """Names and weights of Accept-Encoding count, as RFC 9110 defines."""
    assert accepts_gzip(given) is unpacks


def test_the_style_sheet_stays_small(site):
    """It is read by people too."""
    page = site.visitor()
    answer = page.request.get(asset_path("pages.css"))
    assert answer.ok
    assert len(answer.body()) < CSS_BYTES_MAX
