"""What the client libraries show without the tools that make them (`just test-clients`)."""

import hashlib
from pathlib import Path

TYPESCRIPT = Path("clients/typescript")
SOURCES = ("../openapi.json", "package.json", "package-lock.json", "scripts/generate.mjs")


def test_the_typescript_client_is_made_from_todays_document():
    """`just clients` was run after the last change of what the client is generated from."""
    digest = hashlib.sha256()
    for source in SOURCES:
        digest.update((TYPESCRIPT / source).read_bytes())
    generated = TYPESCRIPT / "src/generated/operations.gen.ts"
    assert digest.hexdigest() in generated.read_text(), "run `just clients`"
