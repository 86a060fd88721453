"""A path has one form; every other way to write it is unknown."""

from urllib.parse import unquote

from service.http.paths import BYTES_MAX, is_canonical

OURS = (
    *("/", "/metrics", "/v1/claims", "/assets/pages.css", "/a/b.c-d_e~f", "/.well-known/x"),
    *("/backoffice/timeline/claim%3Aclm_1", "/timeline/a%20b", "/timeline/%C3%BC", "/a/..b/c.."),
)
ALIASES = (
    *("//metrics", "/%6detrics", "/%6Detrics", "/metrics/", "/metrics//", "///", "/v1//claims"),
    *("/x/../metrics", "/./metrics", "/metrics/.", "/metrics/..", "/%2e%2e/metrics", "/%2Fmetrics"),
    *("/metrics%2F", "/metrics%00", "/metrics%0A", "/%0d%0aX", "/%0D%0AX", "/%E2%80%AE", "/a:b"),
    *("/%e2%80%ae", "/%C3%BC%", "/%zz", "/%FF", "/\u00fc", "/\\metrics", "/metrics;x", "metrics"),
    *(
        "/" + "a" * BYTES_MAX,
        "/" + "a%20" * BYTES_MAX,
        "*",
        "",
        "/ ",
        "/a b",
        "/%E2%80%8B",
        "/%ED%A0%80",
    ),
)


def is_ours(raw: str) -> bool:
    """Return whether a path is canonical that a server is sent, and decodes."""
    return is_canonical(unquote(raw, errors="replace"), raw.encode())


def test_a_path_has_one_form():
    """Ours are canonical; aliases are not, whatever they would be normalised to."""
    assert [path for path in OURS if not is_ours(path)] == []
    assert [path for path in ALIASES if is_ours(path)] == []
