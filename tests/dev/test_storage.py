"""The local document store that `claim-ledger dev` starts."""

import pytest

from service.cli.dev.storage import OF_PRODUCTION
from tests.dev.uploads import PDF, mint, put
from tests.dev_process import environment, run


@pytest.mark.parametrize("name", OF_PRODUCTION)
def test_settings_of_a_real_store_are_refused(tmp_path, name):
    """With any setting of production's storage, one line says why nothing starts."""
    answer = run(
        "dev", "--port", "0", "--data-dir", tmp_path / "data", env=environment(**{name: "x"})
    )
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == (
        "Error: dev keeps documents in a local store, and the environment sets up a real one: "
        f"unset CLAIM_LEDGER_{name}\n"
    )
    assert not (tmp_path / "data").exists()


def test_the_store_is_private_and_named(dev):
    """The text names its address; only the owner can read key and token."""
    storage = dev.data_dir / "storage"
    port = (storage / "port").read_text().strip()
    modes = {
        name: (storage / name).stat().st_mode & 0o777
        for name in ("service-account.json", "json-api-token")
    }
    assert f"documents    http://127.0.0.1:{port} (a local store" in dev.printed
    assert set(modes.values()) == {0o600}


def test_curl_shows_each_refusal(dev):
    """Unsigned, altered, wrong headers, too large, second PUT: the cloud's own error codes."""
    upload = mint(dev, "refusals", max_bytes=10)
    url, headers = upload["upload_url"], upload["required_headers"]
    no_range = {"Content-Type": PDF}
    outcomes = [
        put(url.partition("?")[0], headers, "%PDF"),
        put(url.replace("documents/doc_0", "documents/doc_1"), headers, "%PDF"),
        put(url.replace("X-Goog-Expires=900", "X-Goog-Expires=901"), headers, "%PDF"),
        put(url, headers | {"Content-Type": "text/html"}, "%PDF"),
        put(url, headers | {"x-goog-content-length-range": "0,99"}, "%PDF"),
        put(url, no_range, "%PDF"),
        put(url, headers, "%PDF-1.7 too long"),
        put(url, headers, "%PDF"),
        put(url, headers, "%PDF"),
    ]
    assert outcomes == [
        ("403", "AccessDenied"),
        *[("403", "SignatureDoesNotMatch")] * 4,
        ("400", "MalformedSecurityHeader"),
        ("400", "EntityTooLarge"),
        ("200", ""),
        ("403", "AccessDenied"),
    ]
