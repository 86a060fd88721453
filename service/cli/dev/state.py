"""What `claim-ledger dev` keeps in its directory: its secrets, and the facts of a running one."""

import base64
import json
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from service.app.settings import SERVE, Settings
from service.cli.dev import storage
from service.cli.dev.postgres.directory import replace
from service.evidence.note import NoteKey
from service.facts.caller import LEDGERS

SECRETS = "secrets.json"
FACTS = "dev.json"

PEOPLE: Final = {
    "customer": "customer@example.com",
    "developer": "developer@example.com",
    "team": "team@example.com",
}
"""Who can sign in to the demonstration; their mail is in the mail directory."""

Facts = dict[str, Any]
"""What dev.json holds: the addresses, ids and keys of a running dev."""

Announce = Callable[[Facts, str], None]
"""Takes the facts, and the origin of the document store."""


class DevState(NamedTuple):
    """The directory's secrets, and where its database is while it runs."""

    data_dir: Path
    master_keys: str
    database_url: str
    public_url: str

    @classmethod
    def of_running(cls, data_dir: Path) -> "DevState":
        """Read the state of a running dev; raises FileNotFoundError when none is."""
        facts = json.loads((data_dir / FACTS).read_text())
        kept = json.loads((data_dir / SECRETS).read_text())
        return cls(data_dir, kept["master_keys"], facts["database_url"], facts["public_url"])

    @property
    def ledger_urls(self) -> dict[str, str]:
        """The URL of each ledger, under its own login."""
        kept, at = kept_secrets(self.data_dir), urlsplit(self.database_url)
        where = f"{at.netloc.rpartition('@')[2]}{at.path}"
        return {
            ledger: f"postgresql://claim_ledger_{ledger}:{kept[_password(ledger)]}@{where}"
            for ledger in LEDGERS
        }

    def settings(self, given: dict[str, str] | None = None) -> Settings:
        """Return the settings; `given` are settings of the environment that a dev takes over."""
        return Settings.from_environment(
            (given or {})
            | {
                "CLAIM_LEDGER_DATABASE_URL": self.database_url,
                "CLAIM_LEDGER_MASTER_KEYS": self.master_keys,
                "CLAIM_LEDGER_PUBLIC_URL": self.public_url,
                "CLAIM_LEDGER_SMTP_URL": (self.data_dir.resolve() / "mail").as_uri(),
                "CLAIM_LEDGER_CHECKPOINT_KEYS": kept_secrets(self.data_dir)["checkpoint_keys"],
                "CLAIM_LEDGER_ARCHIVE_URL": (self.data_dir.resolve() / "published").as_uri(),
                "CLAIM_LEDGER_TILES_URL": (self.data_dir.resolve() / "tiles").as_uri(),
                "CLAIM_LEDGER_SERVE_TILES": "on",
                "CLAIM_LEDGER_STAFF": PEOPLE["team"],
                "CLAIM_LEDGER_PRIVATE_WEBHOOKS": "on",  # receivers are on this machine, too
            }
            | {
                f"CLAIM_LEDGER_{ledger.upper()}_DATABASE_URL": url
                for ledger, url in self.ledger_urls.items()
            }
            | storage.settings(self.data_dir),
            require=SERVE,
        )


def kept_secrets(data_dir: Path) -> dict[str, Any]:
    """Return the directory's secrets, generating those that it lacks."""
    path = data_dir / SECRETS
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    generated = {name: generate() for name, generate in _GENERATORS.items() if name not in kept}
    if generated:
        write_private(path, kept | generated)
    return kept | generated


def write_private(path: Path, content: dict[str, Any]) -> None:
    """Atomically write JSON that only its owner can read."""
    replace(path, json.dumps(content, indent=2))


def _password(ledger: str) -> str:
    return f"{ledger}_database_password"


_GENERATORS: Final[Mapping[str, Callable[[], str]]] = {
    "master_keys": lambda: base64.b64encode(secrets.token_bytes(32)).decode(),
    "checkpoint_keys": lambda: NoteKey.generate("localhost/claim-ledger").private_text,
    **{_password(ledger): lambda: secrets.token_urlsafe(24) for ledger in LEDGERS},
}
