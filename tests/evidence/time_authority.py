"""A time-stamping authority of a test: Debian's `openssl ts`, under certificates of its own."""

import subprocess
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from service.core.clock import system_clock
from service.http.posting import PostAnswer

URL = "https://time.example.org/stamp"
_CONFIG = """
[tsa]
default_tsa = authority
[authority]
serial = serial
crypto_device = builtin
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = sha256
tsa_name = yes
clock_precision_digits = {digits}
"""


class TimeAuthorityServer:
    """Answers requests; `anchor` is the PEM of its root, `told` counts what it was asked."""

    def __init__(self, home: Path, digits: int = 6) -> None:
        """`digits` are those of a second's parts in a stamp."""
        self.home = home
        home.mkdir()
        root_key, root = _certificate("a root", None, None)
        key, signer = _certificate("a time-stamping authority", root_key, root)
        self.anchor = root.public_bytes(serialization.Encoding.PEM)
        (home / "anchor.pem").write_bytes(self.anchor)
        (home / "signer.pem").write_bytes(signer.public_bytes(serialization.Encoding.PEM))
        (home / "key.pem").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        (home / "openssl.cnf").write_text(_CONFIG.format(digits=digits))
        (home / "serial").write_text("01\n")
        self.told = 0
        self.answer: PostAnswer | None = None

    async def post(self, url: str, kind: str, body: bytes, _bytes_max: int) -> PostAnswer:
        """Stamp a request, or give the `answer` that was prepared."""
        assert (url, kind) == (URL, "application/timestamp-query")
        self.told += 1
        return self.answer or PostAnswer(200, "application/timestamp-reply", self.stamp(body))

    def stamp(self, body: bytes) -> bytes:
        """Return the reply to a request."""
        (self.home / "query").write_bytes(body)
        subprocess.run(
            [
                *("openssl", "ts", "-reply", "-queryfile", "query", "-out", "reply"),
                *("-config", "openssl.cnf", "-inkey", "key.pem", "-signer", "signer.pem"),
            ],
            check=True,
            capture_output=True,
            cwd=self.home,
        )
        return (self.home / "reply").read_bytes()


def _certificate(
    name: str, issuer_key: ec.EllipticCurvePrivateKey | None, issuer: x509.Certificate | None
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    is_root = issuer is None or issuer_key is None
    signing = issuer_key or key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(system_clock() - timedelta(days=1))
        .not_valid_after(system_clock() + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_root, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()),
            critical=False,
        )
        .add_extension(
            x509.KeyUsage(
                digital_signature=not is_root,
                key_cert_sign=is_root,
                crl_sign=is_root,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
    )
    if not is_root:
        stamping = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.TIME_STAMPING])
        builder = builder.add_extension(stamping, critical=True)
    return key, builder.sign(signing, hashes.SHA256())
