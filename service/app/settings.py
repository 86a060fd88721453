"""Settings: the environment, parsed once; every fault is named before anything starts.

Each setting is declared once, as an attribute of `Settings`; parser, masking and documentation are
made from the declaration. A variable that is set to nothing counts as not set, as compose files
leave it.
"""

import os
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any, Final, Self

from service.app import setting_values as values
from service.app.setting import PREFIX, OptionalSetting, Setting, SettingsError
from service.app.setting_conflicts import conflicts
from service.app.transport import encrypt
from service.facts.caller import LEDGERS

MIGRATE: Final = frozenset({"DATABASE_URL", "MASTER_KEYS"})
"""What `migrate` cannot do without."""

LEDGER_URLS: Final = frozenset(f"{ledger.upper()}_DATABASE_URL" for ledger in LEDGERS)

TEAM: Final = LEDGER_URLS | {"MASTER_KEYS", "PUBLIC_URL"}
"""What the commands of the service's team cannot do without."""

SERVE: Final = TEAM | {"SMTP_URL"}
"""What `serve` and `worker` cannot do without."""

Parsers = Mapping[str, Callable[[str], object]]
_NO_PARSERS: Final[Parsers] = {}

_ON_OFF: Final = {"on": True, "off": False}
_LEVELS: Final = {name: name for name in ("debug", "info", "warning", "error", "critical")}


def _ledger_url(ledger: str) -> Setting[str]:
    return Setting(
        values.database_url,
        f"the ledger `{ledger}` under a login of its own, `postgresql://claim_ledger_{ledger}:"
        "password@host:5432/database`: `migrate` lets that role log in with this password",
        secret=True,
    )


class Settings:
    """The values. repr and str mask what is secret."""

    database_url = Setting(
        values.database_url,
        "PostgreSQL 15 or later as the owner of the tables, over a direct connection: "
        "`postgresql://user:password@host:5432/database`; for `migrate`, and for `projections` "
        "`rebuild`, `rollback` and `verify` alone: keep it out of the environment of `serve` and "
        "`worker`. Off this machine `sslmode` is `verify-full`, and `sslrootcert=FILE` has the "
        "authority; `sslmode=require` encrypts without verifying the server",
        secret=True,
    )
    accounts_database_url = _ledger_url("accounts")
    live_database_url = _ledger_url("live")
    test_database_url = _ledger_url("test")
    transaction_pooler = Setting(
        values.choice(_ON_OFF),
        "`on` or `off`: whether the ledgers' URLs lead through a pooler that lends connections by "
        "the transaction, such as PgBouncer",
        default="off",
    )
    master_keys = Setting(
        values.master_keys,
        "ring of master keys, newest first: comma-separated base64 of 32 random bytes each "
        "(`openssl rand -base64 32`), or `gcp-kms:NAME:CIPHERTEXT` for one that Google Cloud KMS "
        "wraps (`keys-at-rest keygen --kms-key NAME`); keep an older key until it wraps nothing "
        "any more",
        secret=True,
    )
    kms_endpoint = OptionalSetting(
        values.local_origin,
        "origin of a local key service in place of Google Cloud KMS, in development",
    )
    public_url = Setting(
        values.secure_origin,
        "origin at which the service is reached, without a path: `https://api.example.com`; "
        "`http` on this machine alone",
    )
    backoffice_url = OptionalSetting(
        values.secure_origin,
        "origin of the back office alone, at a host below that of `PUBLIC_URL`: "
        "`https://team.api.example.com`; default: none, and the back office is at `PUBLIC_URL`",
    )
    smtp_url = Setting(
        values.mail_url,
        "mail server: `smtp://user:password@host:587`, `smtps://…`, or `file:///directory` to "
        "write each mail to a file. STARTTLS is required off this machine, and with a password; on "
        "this machine, and of a host in `PLAINTEXT_HOSTS`, it is used when offered; override by "
        "`?starttls=require`, and there by `?starttls=offered`",
        secret=True,
    )
    mail_from = Setting(
        values.sender,
        "sender of mails; default: `no-reply@` the host of `PUBLIC_URL`, or `localhost` if "
        "that is not a domain",
    )
    site_path = OptionalSetting(
        values.built_site,
        "directory of the documentation that `just site` built, served under `/docs/`; the image "
        "has it; default: none, and `/docs` is the reference alone",
    )
    live_bucket = OptionalSetting(
        values.bucket,
        "bucket of live mode's documents; default: none, and documents are unavailable",
    )
    test_bucket = OptionalSetting(values.bucket, "bucket of test mode's documents")
    storage_key_file = OptionalSetting(
        values.readable_file,
        "service account key for the buckets; default: workload identity, signing through IAM",
    )
    storage_service_account = OptionalSetting(
        str, "with workload identity, the account that signs; default: the identity's own"
    )
    storage_endpoint = OptionalSetting(
        values.secure_origin,
        "origin of the local store, in development; default: Google Cloud Storage",
    )
    clamd_url = OptionalSetting(
        values.clamd_url,
        "`clamd` that scans uploads: `unix:///socket`, or `tcp://host:3310` without encryption; "
        "default: none, and only an upload's first bytes are compared with its declared type",
    )
    checkpoint_keys = OptionalSetting(
        values.note_keys,
        "ring of the keys that sign checkpoints, newest first, comma-separated: "
        "`PRIVATE+KEY+…` as `audit keygen` prints it, older ones also by their public key; "
        "default: none, and no checkpoint is made",
        secret=True,
    )
    checkpoint_interval_seconds = Setting(
        values.whole(1, 86_400),
        "how often the worker signs a checkpoint of each ledger that has grown, 1 to 86,400",
        default="300",
        formerly="CHECKPOINT_SECONDS",
    )
    verification_interval_seconds = Setting(
        values.whole(60, 604_800),
        "within which time the worker verifies each whole log, in slices, again and again, 60 to "
        "604,800",
        default="86400",
    )
    explained_actors = Setting(
        values.numbers_of_ledgers,
        "how many events of somebody who could not act an operator has explained, by ledger: "
        "`accounts=1,live=2`; `audit verify` and `projections status` exit with 0 up to these "
        "numbers, and with 1 beyond; default: none",
        default="",
    )
    archive_url = OptionalSetting(
        values.archive_url,
        "where checkpoints, erasures and notes of sent mails are kept outside the database: "
        "`file:///directory` or `gs://bucket/prefix`, best with object lock; default: nowhere",
        formerly="PUBLISH_TO",
    )
    tiles_url = OptionalSetting(
        values.archive_url,
        "where the worker writes each log as C2SP tlog-tiles, for standard clients: "
        "`file:///directory` or `gs://bucket/prefix`, another place than `ARCHIVE_URL`, without a "
        "retention policy, since `checkpoint` is replaced; default: nowhere",
    )
    serve_tiles = Setting(
        values.choice(_ON_OFF),
        "`on`: `serve` has the logs of `TILES_URL` under `/log/`, for everybody; with "
        "`CHECKPOINT_KEYS`, under whose names they are",
        default="off",
    )
    witness_policy_file = OptionalSetting(
        values.witness_policy,
        "file that says whose cosignatures checkpoints are to have, as C2SP's tlog-policy has it: "
        "`witness NAME KEY URL` for each witness, which the worker asks, `group`, and `quorum`; "
        "default: none, and nobody is asked",
    )
    time_stamp_url = OptionalSetting(
        values.time_stamp_url,
        "time-stamping authority (RFC 3161) that the worker has each checkpoint stamped by: "
        "`https://time.example.org/stamp`, or `http`, since it signs what it answers and sees a "
        "hash alone; default: none",
    )
    time_stamp_anchor_file = OptionalSetting(
        values.time_anchor,
        "PEM file of the certificate that the authority's own leads to; with `TIME_STAMP_URL`",
    )
    time_stamp_name = OptionalSetting(
        values.key_name,
        "name of the authority in notes, such as `time.example.org`; with `TIME_STAMP_URL`",
    )
    redis_url = OptionalSetting(
        values.redis_url,
        "Redis for the rate limits (`rediss://`, `unix://`, and on this machine `redis://`); "
        "default: in memory, which allows one worker",
        secret=True,
    )
    plaintext_hosts = Setting(
        values.host_names,
        "comma-separated hosts of PostgreSQL, Redis, `clamd`, mail or a collector that are reached "
        "without TLS, because the network between encrypts already; default: none, and this "
        "machine",
        default="",
    )
    host = Setting(values.host, "address that `serve` listens on", default="127.0.0.1")
    port = Setting(values.whole(1, 65_535), "port that `serve` listens on", default="8000")
    operations_host = Setting(
        values.host,
        "address that the operations listener of `serve` and `worker` listens on",
        default="127.0.0.1",
    )
    operations_port = Setting(
        values.whole(0, 65_535),
        "port of `/metrics` and `/health` for operators, never for the public; `0`: no such "
        "listener, as for all but one `serve` or `worker` of a machine",
        default="9464",
    )
    workers = Setting(
        values.whole(1, 64),
        "API processes, 1 to 64; more than one needs `REDIS_URL`",
        default="1",
    )
    pool_size = Setting(
        values.whole(1, 100),
        "database connections for reads, and as many for writes, per ledger and process, 1 to 100; "
        "with the 4 for background work a process has at most 3 * (2 * `POOL_SIZE` + 4)",
        default="4",
    )
    rate_limit_per_minute = Setting(
        values.whole(1, 1_000_000),
        "requests a partner may send in any 60 seconds, 1 to 1,000,000",
        default="120",
    )
    session_idle_minutes = Setting(
        values.whole(1, 720),
        "minutes after which a session of the pages ends when it is not used, 1 to 720",
        default="60",
    )
    trusted_proxies = Setting(
        values.networks,
        "comma-separated addresses and networks whose `X-Forwarded-For` is trusted; default: none",
        default="",
    )
    staff = OptionalSetting(
        values.email_address,
        "address of the member of the team who runs the team's commands, which `--as` names too",
    )
    private_webhooks = Setting(
        values.choice(_ON_OFF),
        "`on`, in development: webhooks may go to this machine and to private networks, too, and "
        "over `http`; refused unless `PUBLIC_URL` is this machine",
        default="off",
    )
    log_level = Setting(values.choice(_LEVELS), f"one of {', '.join(_LEVELS)}", default="info")
    otlp_url = OptionalSetting(
        values.origin,
        "origin of an OpenTelemetry collector that takes traces over HTTP, such as "
        "`http://127.0.0.1:4318`; needs the extra `tracing`; default: none, and nothing is traced",
    )
    traced_percent = Setting(
        values.whole(0, 100),
        "of so many requests in a hundred, and steps of the worker, a trace is kept; 0 to 100",
        default="10",
    )
    run_worker = Setting(
        values.choice(_ON_OFF),
        "`on` or `off`: whether `serve` runs a worker, too, as a process of its own",
        default="on",
        formerly="BACKGROUND",
    )

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        """Keep a value, or None, for every setting by its name."""
        self.values = parsed

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        require: Collection[str],
        parsers: Parsers = _NO_PARSERS,
    ) -> Self:
        """Parse the environment (None: the process's own) for a command that needs `require`.

        `parsers` take the place of settings' own, by name, for a command that can do with less.

        Raises:
            SettingsError: every fault at once, unknown CLAIM_LEDGER_ variables among them.

        """
        if environ is None:
            environ = os.environ  # noqa: TID251 - this module is its one home
        faults = [
            _unknown(name)
            for name in sorted(environ)
            if name.startswith(PREFIX) and name not in _VARIABLES
        ]
        parsed: dict[str, Any] = {}
        for setting in SETTINGS:
            try:
                parsed[setting.name] = setting.read(environ, parsers.get(setting.name))
            except ValueError as error:
                faults.append(f"{setting.variable}: {error}")
        faults += [f"{PREFIX}{fault}" for fault in encrypt(parsed)]
        faults += _absent(parsed, require)
        faults += conflicts(parsed)
        if faults:
            raise SettingsError(faults)
        return cls(parsed)

    def __repr__(self) -> str:
        shown = (f"{item.name.lower()}={item.shown(self.values[item.name])}" for item in SETTINGS)
        return f"Settings({', '.join(shown)})"


SETTINGS: Final[tuple[OptionalSetting[object], ...]] = tuple(
    one for one in vars(Settings).values() if isinstance(one, OptionalSetting)
)
"""Every setting, in the order of the documentation."""

_VARIABLES: Final = frozenset(name for setting in SETTINGS for name in setting.variables)


def given(*names: str) -> dict[str, str]:
    """Return the environment's variables of these settings, unparsed; unset ones are left out."""
    environ = os.environ  # noqa: TID251 - this module is its one home
    variables = [name for one in SETTINGS if one.name in names for name in one.variables]
    return {variable: environ[variable] for variable in variables if variable in environ}


def some(*names: str) -> dict[str, Any]:
    """Return what the environment has for these settings alone, by name; None where it has none.

    For a command that needs no installation. Raises SettingsError.
    """
    found: dict[str, Any] = {}
    for setting in SETTINGS:
        if setting.name in names:
            try:
                found[setting.name] = setting.read(given(setting.name))
            except ValueError as error:
                raise SettingsError([f"{setting.variable}: {error}"]) from error
    return found


def settings_table() -> str:
    """Return the documentation's list of settings, a Markdown table."""
    lines = ["| variable | default | what it is |", "|---|---|---|"]
    for setting in SETTINGS:
        default = f"`{setting.default}`" if setting.default else ""
        file = f"; or `{setting.file_variable}`" if setting.file_variable else ""
        lines.append(f"| `{setting.variable}` | {default} | {setting.description}{file} |")
    return "\n".join(lines) + "\n"


def _unknown(variable: str) -> str:
    # Compared without the prefix, which would make every name look much like every other.
    names = [setting.name for setting in SETTINGS]
    nearest = get_close_matches(variable.removeprefix(PREFIX), names, n=1)
    meant = f"; did you mean {PREFIX}{nearest[0]}?" if nearest else ""
    return f"{variable}: is not a known setting{meant}"


def _absent(parsed: dict[str, Any], required: Collection[str]) -> list[str]:
    """Name what is required and not set; give MAIL_FROM its default."""
    public_url = parsed.get("PUBLIC_URL")
    if "MAIL_FROM" in parsed and parsed["MAIL_FROM"] is None and public_url is not None:
        parsed["MAIL_FROM"] = values.sender_at(public_url)
    return [
        f"{setting.variable}: is not set; expected: {setting.description}"
        for setting in SETTINGS
        if setting.name in required and setting.name in parsed and parsed[setting.name] is None
    ]
