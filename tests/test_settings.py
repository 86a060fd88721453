"""Settings: all faults at once, no secret shown, one table for parser and documentation."""

import base64
import os
import sys
import traceback
from ipaddress import ip_network

import pytest

from service.app.key_service import KmsKey
from service.app.setting import PREFIX, SettingsError
from service.app.setting_values import database_place
from service.app.settings import (
    LEDGER_URLS,
    MIGRATE,
    SERVE,
    SETTINGS,
    TEAM,
    Settings,
    given,
    settings_table,
)
from service.core.extras import extra
from service.evidence.note import NoteKey
from tests.given_settings import GOOD, KEYS, RING, environ, faults, settings
from tests.tables import every_row


def test_unset_settings_have_their_default() -> None:
    """What is not set has the table's default."""
    parsed = settings(REDIS_URL=None)
    assert parsed.database_url == GOOD["DATABASE_URL"]
    assert parsed.master_keys == tuple(KEYS)
    assert parsed.public_url == "https://api.example.com"
    assert parsed.mail_from == "no-reply@api.example.com"
    assert (parsed.host, parsed.port, parsed.workers) == ("127.0.0.1", 8000, 1)
    assert (parsed.pool_size, parsed.rate_limit_per_minute) == (4, 120)
    assert (parsed.trusted_proxies, parsed.log_level, parsed.run_worker) == ((), "info", True)
    assert parsed.redis_url is None
    assert (parsed.transaction_pooler, parsed.plaintext_hosts) == (False, ())


def test_all_faults_are_reported_at_once() -> None:
    """Each line has variable, fault and expectation."""
    found = faults(
        LIVE_DATABASE_URL=None,
        MASTER_KEYS="c2hvcnQ=",
        PUBLIC_URL="api.example.com",
        SMTP_URL="http://mail.example.com",
        WORKERS="none",
        PORT="70000",
        WROKERS="4",
    )
    assert [fault.partition(":")[0] for fault in found] == [
        "WROKERS",
        "MASTER_KEYS",
        "PUBLIC_URL",
        "SMTP_URL",
        "PORT",
        "WORKERS",
        "LIVE_DATABASE_URL",
    ]
    assert "did you mean CLAIM_LEDGER_WORKERS?" in found[0]
    assert "key 1 of 1 has 5 bytes; expected base64 of 32 bytes" in found[1]
    assert "from 1 to 65535, not '70000'" in found[4]
    assert "is not set; expected: the ledger `live` under a login of its own" in found[6]


def test_only_our_prefix_is_checked() -> None:
    """A similar name is suggested only if there is one."""
    assert Settings.from_environment(environ() | {"WORKERS": "x"}, require=SERVE).workers == 1
    assert faults(XYZZY="1") == ["XYZZY: is not a known setting"]


@pytest.mark.parametrize(
    ("require", "absent"),
    [
        (MIGRATE, set()),
        (TEAM, {"PUBLIC_URL"} | LEDGER_URLS),
        (SERVE, {"PUBLIC_URL", "SMTP_URL"} | LEDGER_URLS),
    ],
)
def test_commands_declare_their_settings(require: frozenset[str], absent: set[str]) -> None:
    """A setting that a command did not declare cannot be used by accident."""
    few = environ(PUBLIC_URL=None, SMTP_URL=None, REDIS_URL=None, **dict.fromkeys(LEDGER_URLS))
    if absent:
        with pytest.raises(SettingsError) as caught:
            Settings.from_environment(few, require=require)
        found = {fault.partition(":")[0].removeprefix(PREFIX) for fault in caught.value.faults}
        assert found == absent
    else:
        parsed = Settings.from_environment(few, require=require)
        for name in ("public_url", "smtp_url", "mail_from", "live_database_url"):
            with pytest.raises(SettingsError, match=name.upper()):
                getattr(parsed, name)


def test_tiles_have_a_place_beside_the_archive() -> None:
    """Only what was published is written there, and nothing that is locked or private."""
    place = "file:///tiles"
    for more in ({}, {"ARCHIVE_URL": place}):
        (fault,) = faults(TILES_URL=place, **more)
        assert fault.startswith("TILES_URL: expected together with CLAIM_LEDGER_ARCHIVE_URL")
    with_tiles = {"TILES_URL": place, "ARCHIVE_URL": "gs://archive", "SERVE_TILES": "on"}
    key = {"CHECKPOINT_KEYS": NoteKey.of_seed("example.com/log", bytes(32)).private_text}
    (fault,) = faults(SERVE_TILES="on", **key)
    assert fault == "SERVE_TILES: expected `off` without CLAIM_LEDGER_TILES_URL"
    (fault,) = faults(**with_tiles)
    assert fault == "SERVE_TILES: expected `off` without CLAIM_LEDGER_CHECKPOINT_KEYS"
    parsed = settings(**with_tiles, **key)
    assert (parsed.tiles_url, parsed.serve_tiles) == (place, True)


def test_an_empty_variable_is_unset() -> None:
    """White space around values is dropped."""
    parsed = settings(REDIS_URL="", WORKERS=" ", PORT=" 9000\n")
    assert (parsed.redis_url, parsed.workers, parsed.port) == (None, 1, 9000)


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read if no mapping is given."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    for name, value in environ(PORT="8123").items():
        monkeypatch.setenv(name, value)
    assert Settings.from_environment(require=SERVE).port == 8123


@pytest.mark.parametrize("name", [row.name for row in SETTINGS if row.secret])
@pytest.mark.parametrize(
    "text",
    [
        "canary",
        "postgresql://u:canary@h:99999999/d",
        "postgresql://u:ca/nary@h/d",
        "redis://u:canary#@h",
        "smtp://u:canary@[h",
        "redis://u:p@h:canary",
        "http://u:canary@h",
        "Y2FuYXJ5,canary!",
        "redis://u:canary@\u2100/0",
    ],
)
def test_faults_quote_no_secret(name: str, text: str) -> None:
    """A malformed secret is neither printed nor in a chained error."""
    with pytest.raises(SettingsError) as caught:
        settings(**{name: text})
    printed = "".join(traceback.format_exception(caught.value))
    assert f"{PREFIX}{name}: " in str(caught.value)
    assert "nary" not in str(caught.value) + printed.split("SettingsError: ")[-1]


def test_secrets_are_masked() -> None:
    """Neither repr nor str nor a format shows a password or a key."""
    parsed = settings(
        LIVE_DATABASE_URL="postgres:///ledger?host=/run/pg&user=x&password=canary-q&sslmode=off",
        TEST_DATABASE_URL="postgres://x:canary@at@localhost/ledger",
    )
    for shown in (repr(parsed), str(parsed), f"{parsed}"):
        assert "canary" not in shown
        assert RING[:20] not in shown
        assert repr(KEYS[0])[2:20] not in shown
        assert "postgresql://app:***@db.example.com:5432/ledger?sslmode=require" in shown
        assert "password=***&sslmode=off" in shown
        assert "mailer:***@mail.example.com" in shown


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://u:p%2Fw@db.example.com:5432/d?password=x", "db.example.com:5432/d"),
        ("postgres://u@h1:5432,h2:5433/d?sslmode=require", "h1:5432,h2:5433/d"),
        ("postgresql://u:p,w@[::1]:5432/d", "[::1]:5432/d"),
        ("postgresql://u:p@/d?password=x&host=/run/pg", "/run/pg/d"),
    ],
)
def test_a_database_is_named_without_who_logs_in(url, place) -> None:
    """Host and database alone."""
    assert database_place(url) == place


def test_a_password_in_another_setting_is_masked() -> None:
    """In the fault of a setting that is no secret."""
    (fault,) = faults(PUBLIC_URL="https://user:canary@api.example.com")
    assert "canary" not in fault


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        (
            "DATABASE_URL",
            "postgres://u@h1:5432,h2:5433/d?sslmode=require",
            "postgres://u@h1:5432,h2:5433/d?sslmode=require",
        ),
        ("DATABASE_URL", "postgresql://u:p,w@[::1]:5432/d", "postgresql://u:p,w@[::1]:5432/d"),
        ("DATABASE_URL", "postgresql:///d?host=/run/pg", "postgresql:///d?host=/run/pg"),
        ("TEST_DATABASE_URL", "postgresql://u@localhost/d", "postgresql://u@localhost/d"),
        ("TRANSACTION_POOLER", "on", True),
        ("PLAINTEXT_HOSTS", "Db, 10.0.0.1", ("db", "10.0.0.1")),
        ("REDIS_URL", "rediss://h:6380/1", "rediss://h:6380/1"),
        ("REDIS_URL", "unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
        ("CLAMD_URL", "tcp://127.0.0.1:3310", "tcp://127.0.0.1:3310"),
        ("CLAMD_URL", "unix:///run/clamav/clamd.ctl", "unix:///run/clamav/clamd.ctl"),
        ("PUBLIC_URL", "https://API.example.com:443/", "https://api.example.com"),
        ("PUBLIC_URL", "http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("PUBLIC_URL", "HTTP://[::1]:80", "http://[::1]"),
        ("SMTP_URL", "file:///var/mail%20s", "file:///var/mail%20s"),
        ("SMTP_URL", "smtps://h", "smtps://h"),
        ("MAIL_FROM", "Claim Ledger <a@example.com>", "Claim Ledger <a@example.com>"),
        ("MASTER_KEYS", base64.urlsafe_b64encode(KEYS[0]).decode().rstrip("="), (KEYS[0],)),
        ("MASTER_KEYS", RING.replace(",", " , "), tuple(KEYS)),
        ("WORKERS", "64", 64),
        ("RATE_LIMIT_PER_MINUTE", "1000000", 1_000_000),
        ("POOL_SIZE", "100", 100),
        ("HOST", "::", "::"),
        ("TRUSTED_PROXIES", "10.0.0.0/8, ::1", (ip_network("10.0.0.0/8"), ip_network("::1"))),
        ("EXPLAINED_ACTORS", "accounts=1, live=20", {"accounts": 1, "live": 20}),
        ("LOG_LEVEL", "DEBUG", "debug"),
        ("RUN_WORKER", "off", False),
        ("OTLP_URL", "https://collector.example.com:4318", "https://collector.example.com:4318"),
        ("TRACED_PERCENT", "0", 0),
    ],
)
def test_accepted_values(name: str, text: str, value: object) -> None:
    """What each setting accepts, and its parsed value."""
    changes = {"MAIL_FROM": "a@example.com"} | {name: text}
    assert getattr(settings(**changes), name.lower()) == value


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("DATABASE_URL", "mysql://u@h/d", "expected postgresql://"),
        ("DATABASE_URL", "postgresql://u:p@h:port/d", "expected postgresql://"),
        ("DATABASE_URL", "postgresql://u:p@h/d#x", "percent-encoded"),
        ("SITE_PATH", "/nowhere", "expected a directory with an index.html"),
        ("SITE_PATH", "x" * 300, "expected a directory with an index.html"),
        ("REDIS_URL", "redis://", "names no server"),
        ("REDIS_URL", "unix://", "names no server"),
        ("REDIS_URL", "memcached://h", "expected redis://"),
        ("REDIS_URL", "redis://h#x", "percent-encode"),
        ("CLAMD_URL", "tcp://clamd.internal", "names no scanner"),
        ("CLAMD_URL", "unix://clamd.ctl", "names no scanner"),
        ("CLAMD_URL", "http://clamd.internal:3310", "expected tcp://"),
        ("PUBLIC_URL", "https://example.com/api", "expected an origin"),
        ("PUBLIC_URL", "https://example.com?x", "expected an origin"),
        ("PUBLIC_URL", "https://example.com//", "expected an origin"),
        ("PUBLIC_URL", "https://", "expected an origin"),
        ("PUBLIC_URL", "https://münchen.example", "expected an origin"),
        ("PUBLIC_URL", "ftp://example.com", "expected an origin"),
        ("PUBLIC_URL", "https://example.com:99999", "expected an origin"),
        ("PUBLIC_URL", "http://example.com", "expected https://"),
        ("PUBLIC_URL", "http://10.0.0.1:8000", "expected https://"),
        ("STORAGE_ENDPOINT", "http://storage.example.com", "expected https://"),
        ("PLAINTEXT_HOSTS", "a b", "expected an address"),
        ("EXPLAINED_ACTORS", "lives=1", "expected each of accounts, live, test once"),
        ("EXPLAINED_ACTORS", "live=1,live=2", "expected each of accounts, live, test once"),
        ("EXPLAINED_ACTORS", "live", "from 0 to 1000000"),
        ("SMTP_URL", "file:relative", "absolute"),
        ("MAIL_FROM", "nobody", "expected an address"),
        ("MAIL_FROM", "a@example.com\r\nBcc: b@example.com", "expected an address"),
        ("MASTER_KEYS", f"{RING},{RING}", "the same key twice"),
        ("MASTER_KEYS", f"{RING},", "key 3 of 3 is not base64"),
        ("MASTER_KEYS", "a" * 41, "key 1 of 1 is cut short"),
        ("MASTER_KEYS", "a=" * 22, "is not base64"),
        ("MASTER_KEYS", base64.b64encode(bytes(33)).decode(), "has 33 bytes"),
        ("WORKERS", "0", "from 1 to 64"),
        ("WORKERS", "65", "from 1 to 64"),
        ("WORKERS", "٣", "from 1 to 64"),
        ("RATE_LIMIT_PER_MINUTE", "1000001", "from 1 to 1000000"),
        ("POOL_SIZE", "-1", "from 1 to 100"),
        ("PORT", "1e3", "from 1 to 65535"),
        ("HOST", "a b", "expected an address"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "such as 10.0.0.0/8"),
        ("TRUSTED_PROXIES", "10.0.0.0/8,", "not ''"),
        ("LOG_LEVEL", "loud", "one of debug, info"),
        ("RUN_WORKER", "yes", "one of on, off"),
        ("OTLP_URL", "http://127.0.0.1:4318/v1/traces", "expected an origin"),
        ("TRACED_PERCENT", "101", "from 0 to 100"),
    ],
)
def test_refused_values(name: str, text: str, said: str) -> None:
    """What each setting refuses, with a helpful message."""
    (fault,) = faults(**{"MAIL_FROM": "a@example.com"} | {name: text})
    assert fault.startswith(f"{name}: ")
    assert said in fault


def test_workers_need_a_redis() -> None:
    """Several processes cannot share a limit in memory (decision 13)."""
    (fault,) = faults(WORKERS="2", REDIS_URL=None)
    assert fault.startswith("WORKERS: more than 1 without CLAIM_LEDGER_REDIS_URL")
    assert settings(WORKERS="2").workers == 2


def test_the_back_office_is_at_a_host_below_the_public_one() -> None:
    """Passkeys of a host hold there, and at no other host."""
    for url in (
        "https://api.example.com",
        "https://team.example.com",
        "https://xapi.example.com",
        "https://team.api.example.com:8443",
    ):
        (fault,) = faults(BACKOFFICE_URL=url)
        assert fault.startswith("BACKOFFICE_URL: expected"), url
    url = "https://team.api.example.com"
    assert settings(BACKOFFICE_URL=url).backoffice_url == url
    assert settings().backoffice_url is None


def test_webhooks_go_to_private_addresses_in_development_alone() -> None:
    """Partners choose where they go: elsewhere than on this machine nothing starts."""
    (fault,) = faults(PRIVATE_WEBHOOKS="on")
    assert fault.startswith("PRIVATE_WEBHOOKS: expected `off`")
    for here in ("http://127.0.0.1:8000", "http://localhost"):
        assert settings(PRIVATE_WEBHOOKS="on", PUBLIC_URL=here).private_webhooks
    assert not settings().private_webhooks


def test_traces_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it nothing starts that would trace, and the fault says what to install."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)  # as if it were not installed
    (fault,) = faults(OTLP_URL="http://127.0.0.1:4318")
    assert fault == f"OTLP_URL: {extra('tracing')}"
    assert settings().otlp_url is None


@pytest.mark.parametrize("url", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]"])
def test_the_default_sender_needs_a_domain(url: str) -> None:
    """If the host is not a domain, the sender uses localhost."""
    assert settings(PUBLIC_URL=url).mail_from == "no-reply@localhost"
    assert settings(PUBLIC_URL=url, MAIL_FROM="a@example.com").mail_from == "a@example.com"


def test_given_settings_are_returned_verbatim() -> None:
    """As they are in the process's environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(f"{PREFIX}PORT", "1")
        patch.delenv(f"{PREFIX}WORKERS", raising=False)
        assert given("PORT", "WORKERS") == {f"{PREFIX}PORT": "1"}


KMS = "gcp-kms:projects/p/locations/l/keyRings/r/cryptoKeys/k"


def test_a_master_key_may_be_wrapped_by_kms() -> None:
    """Beside keys in the clear; a malformed one is named by its number alone."""
    parsed = settings(MASTER_KEYS=f"{KMS}:Y2lwaGVy,{RING.split(',')[0]}")
    name = KMS.removeprefix("gcp-kms:")
    assert parsed.master_keys == (KmsKey(name, b"cipher"), KEYS[0])
    assert KmsKey(name, b"cipher").text == f"{KMS}:Y2lwaGVy"
    with every_row() as row:
        for text in (KMS, f"{KMS}:", f"{KMS}:%", "gcp-kms:keys/k:Y2lwaGVy", f"{KMS}/../x:Y2lwaGVy"):
            with row(text):
                (fault,) = faults(MASTER_KEYS=f"{RING},{text}")
                assert fault.startswith("MASTER_KEYS: key 3 of 3 is malformed; expected gcp-kms:")
    for url in ("https://127.0.0.1:1", "http://kms.example.com"):
        (fault,) = faults(KMS_ENDPOINT=url)
        assert "expected http://127.0.0.1:PORT" in fault


def test_settings_are_frozen() -> None:
    """They do not change after parsing."""
    with pytest.raises(AttributeError):
        settings().port = 1


def test_the_document_lists_every_setting() -> None:
    """The table has a row for each setting, and each declaration is a setting."""
    assert {row.name.lower() for row in SETTINGS} == {
        name for name in vars(Settings) if not name.startswith("_") and name != "from_environment"
    }
    table = settings_table()
    for row in SETTINGS:
        assert f"| `{row.variable}` |" in table
    assert len(table.splitlines()) == len(SETTINGS) + 2
    assert all(line.count(" | ") == 2 for line in table.splitlines()[2:])


def test_required_names_exist() -> None:
    """All settings that commands require are in the table."""
    assert {row.name for row in SETTINGS} >= SERVE | MIGRATE
    assert SERVE > TEAM > LEDGER_URLS
