"""`deploy/compose/prepare.py`, run again: what it draws, and what it leaves."""

import datetime as dt
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from service.core.clock import system_clock

SCRIPT = Path(__file__).parents[1] / "deploy/compose/prepare.py"
OLD = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
OLD += ["-subj", "/CN=claim-ledger on this machine", "-addext", "subjectAltName=DNS:api.localhost"]
"""How releases before made the certificate, which was its own authority."""


class Prepared:
    """A folder in which the script has run."""

    def __init__(self, folder: Path) -> None:
        self.script = folder / "compose/prepare.py"
        self.script.parent.mkdir(parents=True)
        shutil.copy(SCRIPT, self.script)
        self.variables = folder / ".env"
        self.state = self.script.parent / "state"
        self.secrets = self.state / "secrets"
        self.run()

    def run(self) -> str:
        """Run the script, and return what it refuses."""
        done = subprocess.run(
            [sys.executable, self.script], capture_output=True, text=True, check=False
        )
        assert (done.returncode != 0) == bool(done.stderr), done.stderr
        return done.stderr

    def texts(self) -> dict[str, str]:
        """Return the secrets by their names."""
        return {path.name: path.read_text() for path in self.secrets.iterdir()}

    def without(self, *names: str) -> dict[str, str]:
        """Delete files, and return the others."""
        for name in names:
            (self.secrets / name).unlink()
        return self.texts()

    def presents(self, days: int, *made: str) -> None:
        """Have a certificate that ends in some days, by the authority unless `made` says how."""
        key, text = self.secrets / "made_key", self.secrets / "made"
        signed = ["-CA", self.secrets / "authority", "-CAkey", self.secrets / "authority_key"]
        words = [*OLD, "-days", str(days), "-keyout", key, "-out", text, *(made or signed)]
        subprocess.run(["openssl", *words], check=True, capture_output=True)
        path = self.secrets / "certificate"
        path.unlink()
        path.write_text(text.read_text() + key.read_text())
        key.unlink()
        text.unlink()

    def days_left(self) -> int:
        """Return after how many whole days the certificate ends, which the authority has signed."""
        context = ssl.create_default_context(cafile=self.secrets / "authority")
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        served, client = (ssl.MemoryBIO(), ssl.MemoryBIO())
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(self.secrets / "certificate")
        ours = context.wrap_bio(served, client, server_hostname="storage.localhost")
        theirs = server.wrap_bio(client, served, server_side=True)
        for _ in range(3):
            for side in (ours, theirs):
                try:
                    side.do_handshake()
                except ssl.SSLWantReadError:
                    continue
        found = ours.getpeercert()
        assert found is not None
        ends = dt.datetime.fromtimestamp(ssl.cert_time_to_seconds(str(found["notAfter"])), dt.UTC)
        return (ends - system_clock()).days


pytestmark = pytest.mark.server


@pytest.fixture
def prepared(tmp_path):
    """Return a folder in which the script has run once."""
    return Prepared(tmp_path)


def test_a_second_run_changes_nothing(prepared):
    """Not a byte of a secret, nor the certificate, whose time is not over."""
    before = prepared.texts()
    assert prepared.run() == ""
    assert prepared.texts() == before
    assert prepared.days_left() >= 364


def test_the_certificate_is_renewed_by_itself(prepared):
    """On demand, and near its end, by the authority that clients know; no secret is drawn anew."""
    others = prepared.without("certificate")
    assert prepared.run() == ""
    first = prepared.texts()
    assert others.items() <= first.items()
    prepared.presents(days=31)
    kept = prepared.texts()
    prepared.run()
    assert prepared.texts() == kept
    prepared.presents(days=29)
    prepared.run()
    renewed = prepared.texts()
    assert others.items() <= renewed.items()
    assert renewed["certificate"] != first["certificate"]
    assert prepared.days_left() >= 364


def test_a_certificate_of_an_earlier_release_has_its_time(prepared):
    """It was its own authority, so that the one that follows has a new one."""
    prepared.without("authority_key", "authority")
    prepared.presents(40, "-batch")
    own = (prepared.secrets / "certificate").read_text()
    (prepared.secrets / "authority").write_text(own.partition("-----BEGIN PRIVATE")[0])
    prepared.run()
    assert (prepared.secrets / "certificate").read_text() == own
    secrets = prepared.without("certificate")
    del secrets["authority"]
    prepared.run()
    assert {name: prepared.texts()[name] for name in secrets} == secrets
    assert prepared.days_left() >= 364


@pytest.mark.parametrize("lost", ["master_keys", "live_database_url", "pgbouncer_users"])
def test_what_a_database_was_made_with_is_not_drawn_anew(prepared, lost):
    """Neither is the rest of it, nor anything else: the copy of the folder has it."""
    (prepared.state / "postgres/PG_VERSION").write_text("18\n")
    others = prepared.without(lost)
    refused = prepared.run()
    assert f"Missing in {prepared.secrets}: {lost}. {prepared.state}/postgres was made" in refused
    assert prepared.texts() == others


def test_a_part_of_a_group_is_not_drawn_anew(prepared):
    """Two files with one password: the other would not fit."""
    others = prepared.without("redis_url")
    assert "delete what belongs to them: redis_configuration" in prepared.run()
    assert prepared.texts() == others
    prepared.without("redis_configuration")
    assert prepared.run() == ""
    found = prepared.texts()
    password = found["redis_url"].partition("default:")[2].partition("@")[0]
    assert f'requirepass "{password}"' in found["redis_configuration"]


def test_variables_of_others_stay(prepared):
    """Compose reads images from the same file."""
    pinned = "# ours\nPOSTGRES_IMAGE=registry.example.com/postgres@sha256:00"
    own = prepared.variables.read_text()
    prepared.variables.write_text(f"CLAIM_LEDGER_USER=1:1\n{pinned}\n")
    prepared.run()
    assert prepared.variables.read_text() == f"{pinned}\n{own}"
    prepared.run()
    assert prepared.variables.read_text() == f"{pinned}\n{own}"
