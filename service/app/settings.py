"""Settings: the environment, parsed once; every fault is named before anything starts.

`SETTINGS` is the one table of them: the parser, the documentation and its test are made from it.
A variable that is set to nothing counts as not set, as compose files leave it.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, Self

from service.app import setting_values as values
from service.app.setting_values import Network
from service.evidence.note import NoteKey

PREFIX: Final = "CLAIM_LEDGER_"


class SettingsError(Exception):
    """The settings cannot be used; `faults` has a line each: `NAME: what is wrong, expected`."""

    def __init__(self, faults: list[str]) -> None:
        """Keep the faults; none of them quotes a secret."""
        self.faults = faults
        super().__init__("\n".join(faults))


class _Parse(Protocol):
    def __call__(self, text: str, /) -> object: ...


class Setting(NamedTuple):
    """A row of the table. `default` is text as in the environment; None: there is none.

    `secret` values are masked wherever settings are shown.
    """

    name: str
    parse: _Parse
    default: str | None
    description: str
    secret: bool = False

    @property
    def variable(self) -> str:
        """The environment variable's full name."""
        return PREFIX + self.name

    @property
    def field(self) -> str:
        """The field of Settings that holds the value."""
        later = self.name in _NOT_ALWAYS
        return f"given_{self.name.lower()}" if later else self.name.lower()

    def read(self, environ: Mapping[str, str]) -> object:
        """Return the value, None when there is none; raises ValueError."""
        text = environ.get(self.variable, "").strip() or self.default
        return None if text is None else self.parse(text)


_LEDGER_URL: Final = (
    "database of the ledger `{}` under a login role of its own, for a transaction pooler that "
    "cannot pass a role on; default: `DATABASE_URL` and the ledger's role"
)
_NOT_ALWAYS: Final = frozenset({"PUBLIC_URL", "SMTP_URL", "MAIL_FROM"})
_ON_OFF: Final = {"on": True, "off": False}
_LEVELS: Final = {name: name for name in ("debug", "info", "warning", "error", "critical")}

SETTINGS: Final = (
    Setting(
        "DATABASE_URL",
        values.database_url,
        None,
        "PostgreSQL 15 or later: `postgresql://user:password@host:5432/database`",
        secret=True,
    ),
    *(
        Setting(
            f"{ledger.upper()}_DATABASE_URL",
            values.database_url,
            None,
            _LEDGER_URL.format(ledger),
            secret=True,
        )
        for ledger in ("accounts", "live", "test")
    ),
    Setting(
        "MASTER_KEYS",
        values.master_keys,
        None,
        "ring of master keys, newest first: comma separated base64 of 32 random bytes each "
        "(`openssl rand -base64 32`); an older key stays until nothing is wrapped by it",
        secret=True,
    ),
    Setting(
        "PUBLIC_URL",
        values.origin,
        None,
        "origin under which the service is reached, without a path: `https://api.example.com`",
    ),
    Setting(
        "SMTP_URL",
        values.mail_url,
        None,
        "mail server, `smtp://user:password@host:587` (STARTTLS: required with a password, else "
        "taken when offered; `?starttls=require` or `?starttls=offered` says otherwise), "
        "`smtps://…`, or `file:///directory` for a file a mail",
        secret=True,
    ),
    Setting(
        "MAIL_FROM",
        values.sender,
        None,
        "sender of mails; default: `no-reply@` the host of `PUBLIC_URL`, or `localhost` when "
        "that is no domain",
    ),
    Setting(
        "LIVE_BUCKET",
        values.bucket,
        None,
        "bucket of live mode's documents; default: none, and documents are unavailable",
    ),
    Setting("TEST_BUCKET", values.bucket, None, "bucket of test mode's documents"),
    Setting(
        "STORAGE_KEY_FILE",
        values.readable_file,
        None,
        "service account's key for the buckets; default: workload identity, signing through IAM",
    ),
    Setting(
        "STORAGE_SERVICE_ACCOUNT",
        str,
        None,
        "with workload identity, the account that signs; default: the identity's own",
    ),
    Setting(
        "STORAGE_ENDPOINT",
        values.origin,
        None,
        "the local store's origin, in development; default: the cloud",
    ),
    Setting(
        "CHECKPOINT_KEYS",
        values.note_keys,
        None,
        "ring of the keys that checkpoints are signed with, newest first, comma separated: "
        "`PRIVATE+KEY+…` as `audit keygen` prints it, older ones also by their public key; "
        "default: none, and no checkpoint is made",
        secret=True,
    ),
    Setting(
        "CHECKPOINT_SECONDS",
        values.whole(1, 86_400),
        "300",
        "how often the worker signs a checkpoint of each ledger that has grown, 1 to 86,400",
    ),
    Setting(
        "PUBLISH_TO",
        values.publication,
        None,
        "where checkpoints, erasures and notes of sent mails are kept outside the database: "
        "`file:///directory` or `gs://bucket/prefix`, best with objects locked; default: nowhere",
    ),
    Setting(
        "REDIS_URL",
        values.redis_url,
        None,
        "Redis for the rate limits (`redis://`, `rediss://`, `unix://`); default: in memory, "
        "which allows one worker",
        secret=True,
    ),
    Setting("HOST", values.host, "127.0.0.1", "address that `serve` listens on"),
    Setting("PORT", values.whole(1, 65_535), "8000", "port that `serve` listens on"),
    Setting(
        "WORKERS",
        values.whole(1, 64),
        "1",
        "API processes, 1 to 64; more than one needs `REDIS_URL`",
    ),
    Setting(
        "POOL_SIZE",
        values.whole(1, 100),
        "4",
        "database connections a ledger and process, 1 to 100",
    ),
    Setting(
        "RATE_LIMIT_PER_MINUTE",
        values.whole(1, 1_000_000),
        "120",
        "requests a partner may send in any 60 seconds, 1 to 1,000,000",
    ),
    Setting(
        "TRUSTED_PROXIES",
        values.networks,
        "",
        "comma separated addresses and networks whose `X-Forwarded-For` is believed; default: none",
    ),
    Setting("LOG_LEVEL", values.choice(_LEVELS), "info", f"one of {', '.join(_LEVELS)}"),
    Setting(
        "BACKGROUND",
        values.choice(_ON_OFF),
        "on",
        "`on` or `off`: whether `serve` runs the sequencer and subscribers too",
    ),
)

MIGRATE: Final = frozenset({"DATABASE_URL", "MASTER_KEYS"})
"""What `migrate` cannot do without."""

TEAM: Final = MIGRATE | {"PUBLIC_URL"}
"""What the commands of the service's team cannot do without."""

SERVE: Final = TEAM | {"SMTP_URL"}
"""What `serve` and `worker` cannot do without."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """The values, a field for every row. repr and str mask what is secret.

    What is `given_…` not every command requires: its property answers it, or raises SettingsError.
    """

    database_url: str
    accounts_database_url: str | None
    live_database_url: str | None
    test_database_url: str | None
    master_keys: tuple[bytes, ...]
    given_public_url: str | None
    given_smtp_url: str | None
    given_mail_from: str | None
    live_bucket: str | None
    test_bucket: str | None
    storage_key_file: Path | None
    storage_service_account: str | None
    storage_endpoint: str | None
    checkpoint_keys: tuple[NoteKey, ...] | None
    checkpoint_seconds: int
    publish_to: str | None
    redis_url: str | None
    host: str
    port: int
    workers: int
    pool_size: int
    rate_limit_per_minute: int
    trusted_proxies: tuple[Network, ...]
    log_level: str
    background: bool

    @property
    def public_url(self) -> str:
        """The service's origin, without a slash at its end."""
        return _given("PUBLIC_URL", self.given_public_url)

    @property
    def smtp_url(self) -> str:
        """The mail server or directory, for `service.mail.transport.mail_transport`."""
        return _given("SMTP_URL", self.given_smtp_url)

    @property
    def mail_from(self) -> str:
        """The sender of mails."""
        return _given("MAIL_FROM", self.given_mail_from)

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] | None = None, *, require: Collection[str]
    ) -> Self:
        """Parse the environment (None: the process's own) for a command that needs `require`.

        Raises:
            SettingsError: every fault at once, unknown CLAIM_LEDGER_ variables among them.

        """
        if environ is None:
            environ = os.environ  # noqa: TID251 - this module is its one home
        faults = [_unknown(name) for name in sorted(environ) if _is_unknown(name)]
        given: dict[str, Any] = {}
        for setting in SETTINGS:
            try:
                given[setting.name] = setting.read(environ)
            except ValueError as error:
                faults.append(f"{setting.variable}: {error}")
        faults += _absent(given, MIGRATE.union(require))
        faults += _at_odds(given)
        if faults:
            raise SettingsError(faults)
        return cls(**{setting.field: given[setting.name] for setting in SETTINGS})

    def __repr__(self) -> str:
        shown = (
            f"{setting.field}={_shown(setting, getattr(self, setting.field))}"
            for setting in SETTINGS
        )
        return f"Settings({', '.join(shown)})"


def given(*names: str) -> dict[str, str]:
    """Return those of these settings that the process's environment has, as they stand in it."""
    variables = [PREFIX + name for name in names]
    environ = os.environ  # noqa: TID251 - this module is its one home
    return {variable: environ[variable] for variable in variables if variable in environ}


def settings_table() -> str:
    """Return the documentation's list of settings, a Markdown table."""
    lines = ["| variable | default | what it is |", "|---|---|---|"]
    for setting in SETTINGS:
        default = f"`{setting.default}`" if setting.default else ""
        lines.append(f"| `{setting.variable}` | {default} | {setting.description} |")
    return "\n".join(lines) + "\n"


def _given(name: str, value: str | None) -> str:
    if value is None:
        raise SettingsError([f"{PREFIX}{name}: is not set, and this command needs it"])
    return value


def _is_unknown(variable: str) -> bool:
    return variable.startswith(PREFIX) and variable not in _VARIABLES


def _unknown(variable: str) -> str:
    # Compared without the prefix, which would make every name look much like every other.
    names = [setting.name for setting in SETTINGS]
    nearest = get_close_matches(variable.removeprefix(PREFIX), names, n=1)
    meant = f"; did you mean {PREFIX}{nearest[0]}?" if nearest else ""
    return f"{variable}: is no setting of ours{meant}"


def _absent(given: dict[str, Any], required: Collection[str]) -> list[str]:
    """Name what is required and not set; give MAIL_FROM its default."""
    public_url = given.get("PUBLIC_URL")
    if "MAIL_FROM" in given and given["MAIL_FROM"] is None and public_url is not None:
        given["MAIL_FROM"] = values.sender_at(public_url)
    return [
        f"{setting.variable}: is not set; expected: {setting.description}"
        for setting in SETTINGS
        if setting.name in required and setting.name in given and given[setting.name] is None
    ]


def _at_odds(given: Mapping[str, Any]) -> list[str]:
    faults: list[str] = []
    if given.get("WORKERS", 1) > 1 and "REDIS_URL" in given and given["REDIS_URL"] is None:
        # Each process would count for itself, and a partner get its limit several times over.
        faults.append(
            f"{PREFIX}WORKERS: more than 1 without {PREFIX}REDIS_URL; expected 1, or a Redis"
        )
    live, test = given.get("LIVE_BUCKET"), given.get("TEST_BUCKET")
    if (live is None) != (test is None) or (live is not None and live == test):
        faults.append(
            f"{PREFIX}TEST_BUCKET: expected together with {PREFIX}LIVE_BUCKET, and another one"
        )
    return faults


def _shown(setting: Setting, value: object) -> str:
    if not setting.secret or value is None:
        return repr(value)
    return repr(values.masked(value)) if isinstance(value, str) else "***"


_VARIABLES: Final = frozenset(setting.variable for setting in SETTINGS)
