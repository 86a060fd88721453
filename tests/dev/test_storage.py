"""The local document store that `claim-ledger dev` starts."""

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service.cli.dev.storage import OF_PRODUCTION
from tests.dev_process import Dev, environment, run, until

PDF = "application/pdf"


@pytest.fixture(scope="module")
def dev(tmp_path_factory) -> Iterator[Dev]:
    """Return a running dev."""
    one = Dev(tmp_path_factory.mktemp("dev") / "data")
    yield one
    one.end()


def mint(dev: Dev, reference: str, max_bytes: int = 100) -> dict[str, Any]:
    """Return a minted upload."""
    facts = dev.facts
    answer = httpx.post(
        f"{facts['base_url']}/documents/upload-url",
        headers={"Authorization": f"Bearer {facts['live_key']}"},
        json={
            "entity_id": facts["entity_id"],
            "partner_claim_id": reference,
            "filename": "a.pdf",
            "mime_type": PDF,
            "max_bytes": max_bytes,
        },
    )
    assert answer.status_code == 201, answer.text
    return answer.json()


def put(url: str, headers: dict[str, str], content: str) -> tuple[str, str]:
    """PUT by curl; answer the status and the code of the store's refusal."""
    words = [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
    done = subprocess.run(
        ["curl", "-sS", "-X", "PUT", *words, "--data-binary", content, "-w", "\n%{http_code}", url],
        capture_output=True,
        text=True,
        check=True,
    )
    body, _, status = done.stdout.rpartition("\n")
    code = re.search("<Code>(.*)</Code>", body)
    return status, code[1] if code else ""


@pytest.mark.parametrize("name", OF_PRODUCTION)
def test_settings_of_a_real_store_are_refused(tmp_path, name):
    """With any setting of production's storage nothing is started, and one line says why."""
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
    """The text names its address; key and token can be read by their owner alone."""
    storage = dev.data_dir / "storage"
    port = (storage / "port").read_text().strip()
    modes = {
        name: (storage / name).stat().st_mode & 0o777
        for name in ("service-account.json", "json-api-token")
    }
    assert f"documents    http://127.0.0.1:{port} (a local store" in dev.printed
    assert set(modes.values()) == {0o600}


def test_each_refusal_is_seen_by_curl(dev):
    """Unsigned, altered, differing headers, too large, and a second PUT: the cloud's own codes."""
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


def test_a_restart_keeps_the_address_and_the_documents(tmp_path):
    """A URL minted before a stop works after the next start; a taken port is left alone."""
    used = tmp_path / "data"
    dev = Dev(used)
    upload = mint(dev, "restart")
    port = int((used / "storage" / "port").read_text())
    dev.end()
    again = Dev(used)
    try:
        assert int((used / "storage" / "port").read_text()) == port
        assert put(upload["upload_url"], upload["required_headers"], "%PDF") == ("200", "")
        assert put(upload["upload_url"], upload["required_headers"], "%PDF")[0] == "403"
        assert again.end()[:2] == (0, "")
        with socket.create_server(("127.0.0.1", port)):
            elsewhere = Dev(used)
            other = mint(elsewhere, "elsewhere")["upload_url"]
            audit = run("documents", "verify", "--json", "--data-dir", used)
            elsewhere.end()
    finally:
        if again.process.poll() is None:
            again.end()
    assert not other.startswith(f"http://127.0.0.1:{port}/")
    assert json.loads(audit.stdout)["findings"] == []


def test_half_an_upload_does_not_hold_up_the_stop(tmp_path):
    """A PUT under way is cut off, and leaves nothing in the store's directory."""
    used = tmp_path / "data"
    one = Dev(used)
    upload = httpx.URL(mint(one, "half")["upload_url"])
    with socket.create_connection(("127.0.0.1", upload.port or 0)) as half:
        half.sendall(
            b"PUT %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/pdf\r\n"
            b"x-goog-content-length-range: 0,100\r\nContent-Length: 50\r\n\r\n%%PDF"
            % (upload.raw_path, upload.port)
        )
        incoming = used / "storage" / "objects" / "incoming"
        until(lambda: list(incoming.iterdir()) != [])
        code, said, seconds = one.end()
    assert (code, said) == (0, "")
    assert seconds < 4
    assert list(incoming.iterdir()) == []
