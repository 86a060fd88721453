#!/usr/bin/env python3
"""Make what deploy/compose.yaml needs besides images: secrets, a certificate, directories.

Needs Python 3.11 and OpenSSL 3, nothing of ours. Each secret is drawn once and kept in `state/`
beside this file. A later run draws what is missing and changes nothing that is there, but for the
certificate, which it renews in its last 30 days. Containers run as whoever ran this, or, where that
is root, as user 10001: the secrets are readable by nobody else.
"""

import base64
import hashlib
import os
import secrets
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
STATE = HERE / "state"
SECRETS = STATE / "secrets"
USER_OF_ROOT = 10001
LEDGERS = ("accounts", "live", "test")
DATABASE = STATE / "postgres"
DIRECTORIES = ("postgres", "storage", "archive", "tiles", "countersigning")
HOSTS = ("api.localhost", "storage.localhost")
SIGNER = "localhost/claim-ledger"
"""The name under which checkpoints are signed."""
CERTIFICATE_DAYS = 365
RENEWED_DAYS = 30
"""So long before its end, a certificate is renewed."""
AUTHORITY_DAYS = 3650
_CONFIGURATION = """[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = {name}
[extensions]
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
{extensions}
"""
# Browsers are told to trust it: its key is of no use for names that lead elsewhere.
_AUTHORITY = """basicConstraints = critical,CA:true,pathlen:0
keyUsage = critical,keyCertSign,cRLSign
nameConstraints = critical,permitted;DNS:localhost
"""
_CERTIFICATE = f"""basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = {",".join(f"DNS:{host}" for host in HOSTS)}
"""


def main() -> None:
    """Make what is missing, and renew what ends."""
    SECRETS.mkdir(parents=True, exist_ok=True)
    for name in DIRECTORIES:
        (STATE / name).mkdir(mode=0o700, exist_ok=True)
    made = groups()
    if lost := [line for group in made if (line := incomplete(*group))]:
        sys.exit("\n".join(lost))
    for texts, _ in made:
        for name, text in texts.items():
            if not (SECRETS / name).exists():
                written(SECRETS / name, text)
    renew_certificate()
    user = (USER_OF_ROOT, USER_OF_ROOT) if os.getuid() == 0 else (os.getuid(), os.getgid())
    for path in (STATE, *STATE.rglob("*")):
        os.chown(path, *user)
    own = {"COMPOSE_PROJECT_NAME": "claim-ledger", "CLAIM_LEDGER_USER": f"{user[0]}:{user[1]}"}
    environment(own)


def groups() -> list[tuple[dict[str, str], Path | None]]:
    """Draw secrets, by their names in compose.yaml: those together that are made together.

    Each group is with the directory of what can only be read with it, if there is one.
    """
    return [
        (of_database(), DATABASE),
        (of_redis(), None),
        ({"grafana_password": secrets.token_urlsafe(24)}, None),
        ({"checkpoint_keys": checkpoint_key()}, None),
    ]


def of_database() -> dict[str, str]:
    """Return the passwords of PostgreSQL's logins, and the key of what is encrypted in it."""
    owner = secrets.token_urlsafe(24)
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
    }


def of_redis() -> dict[str, str]:
    """Return the password of Redis, as the service and as Redis reads it."""
    password = secrets.token_urlsafe(24)
    return {
        "redis_url": f"redis://default:{password}@redis:6379/0",
        "redis_configuration": (
            f'requirepass "{password}"\nsave ""\nappendonly no\nmaxmemory 128mb\n'
            "maxmemory-policy volatile-ttl\n"
        ),
    }


def checkpoint_key() -> str:
    """Return an Ed25519 key as `claim-ledger audit keygen` would (docs/ledger-format.md)."""
    private = openssl("genpkey", "-algorithm", "ED25519", "-outform", "DER")
    public = openssl("pkey", "-inform", "DER", "-pubout", "-outform", "DER", given=private)
    # Both end in their 32 bytes; the one before them, here, is the type of the key.
    seed, public = b"\x01" + private[-32:], b"\x01" + public[-32:]
    named = hashlib.sha256(f"{SIGNER}\n".encode() + public).hexdigest()[:8]
    return f"PRIVATE+KEY+{SIGNER}+{named}+{base64.b64encode(seed).decode()}"


def incomplete(texts: dict[str, str], data: Path | None) -> str:
    """Return why what is missing of a group cannot be drawn, or nothing."""
    missing = [name for name in texts if not (SECRETS / name).exists()]
    there = [name for name in texts if name not in missing]
    found = data is not None and any(data.iterdir())
    if not missing or not (there or found):
        return ""
    lost = f"Missing in {SECRETS}: {', '.join(missing)}."
    if found:
        return f"{lost} {data} was made with them: restore them from a copy of {STATE}."
    return f"{lost} To draw them anew, delete what belongs to them: {', '.join(there)}."


def renew_certificate() -> None:
    """Make a certificate where there is none that is valid for another 30 days.

    Its authority is this machine's own, which clients have to be told of, and is kept while it is
    valid for as long as the new certificate. Either is replaced whole.
    """
    authority, key = SECRETS / "authority", SECRETS / "authority_key"
    certificate = SECRETS / "certificate"
    if valid(certificate, authority, RENEWED_DAYS):
        return
    if not (key.exists() and valid(authority, authority, CERTIFICATE_DAYS + 1)):
        private, text = certified("claim-ledger on this machine", _AUTHORITY, AUTHORITY_DAYS)
        written(key, private)
        written(authority, text)
    signed = ("-CA", str(authority), "-CAkey", str(key))
    private, text = certified(HOSTS[0], _CERTIFICATE, CERTIFICATE_DAYS, *signed)
    written(certificate, text + private)


def valid(certificate: Path, authority: Path, days: int) -> bool:
    """Return whether a certificate is by an authority, and will be valid after some days."""
    names = ["-CAfile", str(authority), str(certificate)]
    ends = ["-checkend", str(days * 86400), "-noout", "-in", str(certificate)]
    try:
        openssl("verify", *names)
        openssl("x509", *ends)
    except subprocess.CalledProcessError:
        return False
    return True


def certified(name: str, extensions: str, days: int, *signed: str) -> tuple[str, str]:
    """Return a new private key, and a certificate of it, by itself unless `signed`."""
    private = openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    key, configuration = SECRETS / "new_key", SECRETS / "new_configuration"
    written(key, private.decode())
    written(configuration, _CONFIGURATION.format(name=name, extensions=extensions))
    command = ["req", "-x509", "-new", "-key", str(key), "-config", str(configuration)]
    text = openssl(*command, "-days", str(days), *signed)
    key.unlink()
    configuration.unlink()
    return private.decode(), text.decode()


def environment(lines: dict[str, str]) -> None:
    """Set variables in the file that Compose reads beside compose.yaml; others stay."""
    path = HERE.parent / ".env"
    before = path.read_text().splitlines() if path.exists() else []
    others = [line for line in before if line.partition("=")[0].strip() not in lines]
    path.write_text("\n".join([*others, *(f"{name}={text}" for name, text in lines.items()), ""]))


def openssl(*words: str, given: bytes = b"") -> bytes:
    """Return what a command of openssl's prints; raise CalledProcessError if it fails."""
    done = subprocess.run(  # noqa: S603 - words of ours
        ["openssl", *words],  # noqa: S607 - the system's
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return done.stdout


def written(path: Path, text: str) -> None:
    """Write a file that its owner alone may read, whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


if __name__ == "__main__":
    main()
