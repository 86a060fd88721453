"""Certificates of the tests' own servers, which vouch for themselves."""

import os
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from service.cli.dev.postgres.processes import server_user
from service.core.clock import system_clock


def certificate(folder: Path, *hosts: str, days: int = 1) -> Path:
    """Write a key, `HOST.key`, and a certificate of its own for names or addresses; return that.

    It began two days ago, and ends in so many.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a test's")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(system_clock() - timedelta(days=2))
        .not_valid_after(system_clock() + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([_named(host) for host in hosts]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{hosts[0]}.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = path.with_suffix(".key")
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    private.chmod(0o600)
    if user := server_user(folder / "no-cluster"):
        os.chown(private, user.uid, user.gid)
    return path


def _named(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
