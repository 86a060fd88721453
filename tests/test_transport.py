"""What leaves this machine is encrypted, or goes to a host that the settings except."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from service.app.setting import SettingsError
from service.app.settings import TEAM, Settings
from service.app.warned import warn_once
from tests.certificates import certificate
from tests.databases import with_logins
from tests.tables import every_row
from tests.world import MASTER_KEY, PUBLIC_URL

HERE = "postgresql://claim_ledger:canary@127.0.0.1/d"
AWAY = "postgresql://u:canary@db.example.com:5432/d"
CLEAR = "leaves this machine, and not encrypted"
UNKNOWN = "there is no"


def settings(**given: str) -> Settings:
    """Return the settings of an installation on this machine, but for what is given."""
    values = {"DATABASE_URL": HERE, "MASTER_KEYS": MASTER_KEY, "PUBLIC_URL": PUBLIC_URL} | given
    environment = {f"CLAIM_LEDGER_{name}": value for name, value in with_logins(values).items()}
    return Settings.from_environment(environment, require=TEAM)


def test_what_leaves_this_machine_is_encrypted(tmp_path, monkeypatch):
    """One line says what is wrong and what is expected, and shows no password."""
    monkeypatch.setenv("HOME", str(tmp_path))
    authority, other = certificate(tmp_path, "db.example.com"), tmp_path / "text"
    other.write_text("the authority of the server\n")
    refused = {
        ("LIVE_DATABASE_URL", f"{AWAY}?sslmode=disable"): CLEAR,
        ("LIVE_DATABASE_URL", f"{AWAY}?application_name=x&sslmode=prefer"): CLEAR,
        ("LIVE_DATABASE_URL", f"{HERE}?host=10.0.0.7&sslmode=allow"): CLEAR,
        ("LIVE_DATABASE_URL", f"{HERE}?hostaddr=10.0.0.7&sslmode=allow"): CLEAR,
        ("LIVE_DATABASE_URL", "postgresql://u@localhost,[fd00::1]:5432/d?sslmode=allow"): CLEAR,
        ("LIVE_DATABASE_URL", AWAY): UNKNOWN,
        ("DATABASE_URL", f"{AWAY}?sslmode=verify-ca"): UNKNOWN,
        ("TEST_DATABASE_URL", f"{AWAY}?sslrootcert={authority}.none"): f"no {authority}.none",
        ("TEST_DATABASE_URL", f"{AWAY}?sslrootcert={'x' * 300}"): f"no {'x' * 300}",
        ("TEST_DATABASE_URL", f"{AWAY}?sslrootcert={authority}/x"): f"no {authority}/x",
        ("LIVE_DATABASE_URL", f"{AWAY}?sslrootcert={other}"): f"{other} has no certificate in PEM",
        ("LIVE_DATABASE_URL", f"{AWAY}?sslmode=require&sslrootcert={other}"): "no certificate in",
        ("LIVE_DATABASE_URL", f"{HERE}?sslmode=require&sslrootcert={other}"): "no certificate in",
        ("LIVE_DATABASE_URL", f"{HERE}?sslmode=verify-full&sslrootcert={other}.none"): UNKNOWN,
        ("LIVE_DATABASE_URL", f"{AWAY}?sslrootcert={tmp_path}"): "cannot be read (Is a directory)",
        ("REDIS_URL", "redis://:canary@cache.example.com:6379/0"): CLEAR,
        ("REDIS_URL", "redis://:canary@10.0.0.7"): CLEAR,
        ("REDIS_URL", f"rediss://h?ssl_ca_certs={authority}.none"): f"no {authority}.none",
        ("REDIS_URL", f"rediss://127.0.0.1?ssl_ca_certs={other}"): "no certificate in PEM",
        ("REDIS_URL", f"rediss://:canary@h?ssl_ca_certs={tmp_path}"): "cannot be read (Is a dir",
        ("CLAMD_URL", "tcp://clamd.example.com:3310"): CLEAR,
        ("OTLP_URL", "http://collector.example.com:4318"): CLEAR,
        ("SMTP_URL", "smtp://u:canary@mail.example.com?starttls=offered"): CLEAR,
        ("SMTP_URL", "smtp://10.0.0.7:25?starttls=offered"): CLEAR,
        ("PUBLIC_URL", "http://api.example.com"): "expected https://",
        ("PUBLIC_URL", "http://192.168.0.1:8000"): "expected https://",
        ("PUBLIC_URL", "http://localhost.example.com"): "expected https://",
    }
    accepted = {
        ("LIVE_DATABASE_URL", f"{AWAY}?sslmode=require"): f"{AWAY}?sslmode=require",
        ("LIVE_DATABASE_URL", f"{AWAY}?sslrootcert={authority}"): (
            f"{AWAY}?sslrootcert={authority}&sslmode=verify-full"
        ),
        ("LIVE_DATABASE_URL", f"{HERE}?sslmode=disable"): f"{HERE}?sslmode=disable",
        ("LIVE_DATABASE_URL", f"{HERE}?sslrootcert={other}"): f"{HERE}?sslrootcert={other}",
        ("LIVE_DATABASE_URL", f"{HERE}?sslmode=require&sslrootcert={authority}"): (
            f"{HERE}?sslmode=require&sslrootcert={authority}"
        ),
        ("LIVE_DATABASE_URL", "postgresql://u@[::1]:5432/d"): "postgresql://u@[::1]:5432/d",
        ("LIVE_DATABASE_URL", "postgresql:///d?host=/run/pg"): "postgresql:///d?host=/run/pg",
        ("LIVE_DATABASE_URL", "postgresql://%2Frun%2Fpg/d"): "postgresql://%2Frun%2Fpg/d",
        ("REDIS_URL", "rediss://cache.example.com"): "rediss://cache.example.com",
        ("REDIS_URL", f"rediss://h?ssl_ca_certs={authority}"): (
            f"rediss://h?ssl_ca_certs={authority}"
        ),
        ("REDIS_URL", "redis://127.0.0.1:6379/0"): "redis://127.0.0.1:6379/0",
        ("PUBLIC_URL", "http://localhost:8000"): "http://localhost:8000",
        ("SMTP_URL", "smtp://10.0.0.7:25"): "smtp://10.0.0.7:25?starttls=require",
        ("SMTP_URL", "smtp://u:p@mail.example.com"): "smtp://u:p@mail.example.com",
        ("SMTP_URL", "smtps://mail.example.com"): "smtps://mail.example.com",
        ("SMTP_URL", "smtp://127.0.0.1:25?starttls=offered"): (
            "smtp://127.0.0.1:25?starttls=offered"
        ),
        ("SMTP_URL", "smtp://[::1]:25"): "smtp://[::1]:25",
        ("SMTP_URL", "file:///mails"): "file:///mails",
    }
    with every_row() as row:
        for (name, text), said in refused.items():
            with row(name, text):
                with pytest.raises(SettingsError) as caught:
                    settings(**{name: text})
                faults = [
                    one for one in caught.value.faults if one.startswith(f"CLAIM_LEDGER_{name}: ")
                ]
                assert [said in one for one in faults] == [True]
                assert "canary" not in str(caught.value)
        for (name, text), value in accepted.items():
            with row(name, text):
                assert getattr(settings(**{name: text}), name.lower()) == value


def test_a_verified_server_is_the_default_once_its_authority_is_known(tmp_path, monkeypatch):
    """In the place where PostgreSQL's own programs look for it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".postgresql").mkdir()
    made = certificate(tmp_path, "db.example.com")
    made.rename(tmp_path / ".postgresql" / "root.crt")
    assert settings(LIVE_DATABASE_URL=AWAY).live_database_url == f"{AWAY}?sslmode=verify-full"


@contextmanager
def anybody() -> Iterator[None]:
    """Go on as a user who may read no file of ours; root may read all."""
    user = os.geteuid()
    os.seteuid(65534 if user == 0 else user)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_file_that_may_not_be_read_is_there(tmp_path):
    """It would look like an outage of PostgreSQL, or like a site that was not built."""
    authority, index = certificate(tmp_path, "db.example.com"), tmp_path / "index.html"
    index.touch()
    given = {"LIVE_DATABASE_URL": f"{AWAY}?sslrootcert={authority}", "SITE_PATH": str(tmp_path)}
    settings(**given)
    for path in (authority, index):
        path.chmod(0)
    with pytest.raises(SettingsError) as caught, anybody():
        settings(**given)
    site, database = caught.value.faults
    assert f"{index} cannot be read (Permission denied)" in site
    assert f"{authority} cannot be read (Permission denied)" in database


def test_hosts_on_an_encrypted_network_are_named():
    """Each by its name; no other host is excepted with it."""
    named = {"PLAINTEXT_HOSTS": "DB.example.com, 10.0.0.7"}
    redis, mail = "redis://10.0.0.7", "smtp://10.0.0.7:25"
    parsed = settings(LIVE_DATABASE_URL=AWAY, REDIS_URL=redis, SMTP_URL=mail, **named)
    assert (parsed.live_database_url, parsed.redis_url, parsed.smtp_url) == (AWAY, redis, mail)
    with pytest.raises(SettingsError, match=CLEAR):
        settings(REDIS_URL="redis://10.0.0.8", **named)
    with pytest.raises(SettingsError, match="there is no /none; expected sslrootcert=FILE"):
        settings(LIVE_DATABASE_URL=f"{AWAY}?sslmode=verify-ca&sslrootcert=/none", **named)


def test_a_mail_server_that_may_not_encrypt_is_named_at_the_start(caplog):
    """One line says which setting lets mail go to it, once, and not where nothing changed."""
    warn_once.cache_clear()  # stands for a new process
    named = {"PLAINTEXT_HOSTS": "10.0.0.9"}
    for url in ("smtp://10.0.0.8", "smtp://10.0.0.8", "smtp://u:p@10.0.0.8", "smtps://10.0.0.8"):
        settings(SMTP_URL=url, **named)
    settings(SMTP_URL="smtp://10.0.0.8?starttls=require", **named)
    settings(SMTP_URL="smtp://10.0.0.9", **named)
    (line,) = [one.message for one in caplog.records]
    for said in ("CLAIM_LEDGER_SMTP_URL", "STARTTLS", "CLAIM_LEDGER_PLAINTEXT_HOSTS"):
        assert said in line
    assert "10.0.0.8" not in line
