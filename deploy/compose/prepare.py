#!/usr/bin/env python3
"""Make what deploy/compose.yaml needs besides images: secrets, a certificate, directories.

Needs Python 3.11 and openssl, nothing of ours. Everything is drawn once and kept in `state/` beside
this file; a second run changes nothing. Containers run as whoever ran this, or, where that is root,
as user 10001: the secrets are readable by nobody else.
"""

import base64
import hashlib
import os
import secrets
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
STATE = HERE / "state"
SECRETS = STATE / "secrets"
USER_OF_ROOT = 10001
LEDGERS = ("accounts", "live", "test")
DIRECTORIES = ("postgres", "storage", "archive", "tiles", "countersigning")
HOSTS = ("api.localhost", "storage.localhost")
SIGNER = "localhost/claim-ledger"
"""The name under which checkpoints are signed."""


def main() -> None:
    """Make what is missing."""
    SECRETS.mkdir(parents=True, exist_ok=True)
    for name in DIRECTORIES:
        (STATE / name).mkdir(mode=0o700, exist_ok=True)
    if not (SECRETS / "authority").exists():
        for name, text in drawn().items():
            written(SECRETS / name, text)
        certificate()
    if not (SECRETS / "checkpoint_keys").exists():
        written(SECRETS / "checkpoint_keys", checkpoint_key())
    user = (USER_OF_ROOT, USER_OF_ROOT) if os.getuid() == 0 else (os.getuid(), os.getgid())
    for path in (STATE, *STATE.rglob("*")):
        os.chown(path, *user)
    # Compose reads it beside compose.yaml.
    (HERE.parent / ".env").write_text(
        f"COMPOSE_PROJECT_NAME=claim-ledger\nCLAIM_LEDGER_USER={user[0]}:{user[1]}\n"
    )


def drawn() -> dict[str, str]:
    """Return the secrets by their names in compose.yaml."""
    owner, redis, grafana = (secrets.token_urlsafe(24) for _ in range(3))
    passwords = {f"claim_ledger_{ledger}": secrets.token_urlsafe(24) for ledger in LEDGERS}
    urls = {
        f"{ledger}_database_url": f"postgresql://{role}:{text}@pgbouncer:6432/claim_ledger"
        for ledger, (role, text) in zip(LEDGERS, passwords.items(), strict=True)
    }
    return urls | {
        "postgres_password": secrets.token_urlsafe(24),
        "owner_password": owner,
        "database_url": f"postgresql://claim_ledger:{owner}@postgres:5432/claim_ledger",
        "owner_service": f"[owner]\nhost=postgres\nuser=claim_ledger\npassword={owner}\n",
        "pgbouncer_users": "".join(f'"{role}" "{text}"\n' for role, text in passwords.items()),
        "master_keys": base64.b64encode(secrets.token_bytes(32)).decode(),
        "redis_url": f"redis://default:{redis}@redis:6379/0",
        "redis_configuration": (
            f'requirepass "{redis}"\nsave ""\nappendonly no\nmaxmemory 128mb\n'
            "maxmemory-policy volatile-ttl\n"
        ),
        "grafana_password": grafana,
    }


def checkpoint_key() -> str:
    """Return an Ed25519 key as `claim-ledger audit keygen` would (docs/ledger-format.md)."""
    private = openssl("genpkey", "-algorithm", "ED25519", "-outform", "DER")
    public = openssl("pkey", "-inform", "DER", "-pubout", "-outform", "DER", given=private)
    # Both end in their 32 bytes; the one before them, here, is the type of the key.
    seed, public = b"\x01" + private[-32:], b"\x01" + public[-32:]
    named = hashlib.sha256(f"{SIGNER}\n".encode() + public).hexdigest()[:8]
    return f"PRIVATE+KEY+{SIGNER}+{named}+{base64.b64encode(seed).decode()}"


def certificate() -> None:
    """Make a certificate of this machine's own, which the client has to be told of."""
    names = ",".join(f"DNS:{host}" for host in HOSTS)
    key, made = SECRETS / "key", SECRETS / "made"
    command = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-noenc", "-days", "365", "-subj", "/CN=claim-ledger on this machine"]
    command += ["-addext", f"subjectAltName={names}", "-keyout", str(key), "-out", str(made)]
    openssl(*command)
    text = made.read_text()
    written(SECRETS / "certificate", text + key.read_text())
    key.unlink()
    made.unlink()
    written(SECRETS / "authority", text)  # last: what is there is whole


def openssl(*words: str, given: bytes = b"") -> bytes:
    """Return what a command of openssl's prints."""
    done = subprocess.run(  # noqa: S603 - words of ours
        ["openssl", *words],  # noqa: S607 - the system's
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return done.stdout


def written(path: Path, text: str) -> None:
    """Write a file that its owner alone may read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
