"""The disk of `serve`'s machine is full, and not PostgreSQL's."""

import os
import subprocess
from contextlib import suppress

import httpx
import pytest

from tests.cli.test_serve import address_of, scraped, settings, up
from tests.dev_process import PROGRAM
from tests.no_tls import NO_TLS
from tests.processes import end, free_port, start

ROUTES = ("/v1/claims", "/v1/events", "/v1/nothing", "/docs", "/", "/sign-in", "/v1/openapi.json")
CHUNK_BYTES = 4096


@pytest.fixture
def full(tmp_path):
    """Return an empty directory for temporary files, and a function that fills its disk."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", folder]
    if os.geteuid() != 0 or subprocess.run(mounting, check=False).returncode:
        pytest.skip("mounting a small file system is root's way")

    def fill():
        with suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
            while filler.write(bytes(CHUNK_BYTES)):
                pass

    yield folder, fill
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_the_api_needs_no_disk(database_url, tmp_path, full):
    """What was never counted before is answered and counted while no byte is left."""
    folder, fill = full
    port = str(free_port())
    env = settings(database_url, tmp_path, OPERATIONS_PORT=port) | {"TMPDIR": str(folder)}
    with (tmp_path / "log").open("wb") as log:
        process = start([PROGRAM, "serve"], env=env, stdout=log, stderr=log)
    try:
        up(env)
        fill()
        with httpx.Client(base_url=address_of(env), verify=NO_TLS) as http:
            for route in ROUTES:
                assert http.get(route).status_code < httpx.codes.INTERNAL_SERVER_ERROR
                assert http.delete(route).is_client_error
        counted = scraped(env).text
    finally:
        end(process)
    assert "claim_ledger_requests_total{" in counted
    assert "Unexpected exit" not in (tmp_path / "log").read_text()
