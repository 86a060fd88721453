"""Every block of code that partners are shown is run by a test, and names its settings alike."""

import re
from pathlib import Path

from service.pages.console.tutorial import steps
from service.partner_api.docs.page import samples
from tests.conformance import DESCRIBED, described
from tests.snippets import languages

SITE = "dev/test_site.py::test_the_commands_of_a_page_work"
GUIDE = "webhooks/test_guide.py::test_its_receiver_verifies_its_event"
README = "dev/test_readme.py::test_a_first_claim_in_a_minute"
FILES = "dev/test_readme.py::test_a_claim_with_a_document"
AUDIT = "clients/test_documents.py::test_the_readmes_audit_is_carried_out"
PYTHON = "clients/test_python.py::test_the_readmes_programs_run_against_a_dev"
TYPESCRIPT = "clients/test_typescript.py::test_the_readmes_programs_run_against_a_dev"
RUN = {
    "README.md": {"sh": [README, FILES, AUDIT, AUDIT]},
    "clients/python/README.md": {"python": PYTHON},
    "clients/typescript/README.md": {"js": TYPESCRIPT},
    "docs/partners/errors.md": {"sh": SITE, "json": SITE},
    "docs/partners/idempotency.md": {"sh": SITE},
    "docs/partners/quickstart.md": {"sh": SITE},
    "docs/partners/sandbox.md": {
        "sh": SITE,
        "json": "clients/test_mcp.py::test_an_assistant_creates_a_claim_in_the_sandbox",
    },
    "docs/partners/webhooks.md": {"json": GUIDE, "python": GUIDE},
}
"""The test that runs all blocks of a page in a language; several: one for each block."""

PAGES = [
    *(Path("README.md"), Path("docs/index.md")),
    *sorted([*Path("docs/partners").glob("*.md"), *Path("clients").glob("*/README.md")]),
]
SETTINGS = {f"CLAIMS_{name}" for name in ("API_KEY", "API_URL", "ENTITY_ID", "WEBHOOK_SECRET")}
_READ = re.compile(
    r'environ\[?\(?"(\w+)"|process\.env\.(\w+)|const \{ (.*?) \} = process\.env'
    r"|export ((?:\w+=\S*\s*)+)|\$\{?([A-Z][A-Z_]+)"
)
_LOCAL = {"D"}
"""Variables that a snippet sets itself."""


def test_every_block_of_code_is_run():
    """By a test that is there: what nobody runs would be a promise without a test."""
    shown: dict[str, dict[str, int]] = {}
    for page in PAGES:
        for language in languages(page):
            found = shown.setdefault(str(page), {})
            found[language] = found.get(language, 0) + 1
    assert {page: set(found) for page, found in shown.items()} == {
        page: set(tests) for page, tests in RUN.items()
    }
    for page, by_language in RUN.items():
        for language, tests in by_language.items():
            if isinstance(tests, list):
                assert len(tests) == shown[page][language], page
            for test in tests if isinstance(tests, list) else [tests]:
                path, _, name = test.partition("::")
                assert f"def {name}(" in Path("tests", path).read_text(), test


def names_in(text: str) -> set[str]:
    """Return the names of the environment's variables that a snippet reads or sets."""
    names: set[str] = set()
    for *one, exported, shell in _READ.findall(text):
        names |= {name for part in one for name in part.split(", ")}
        names |= set(re.findall(r"(\w+)=", exported)) | {shell}
    return names - {""} - _LOCAL


def test_settings_have_one_name_in_every_snippet():
    """In pages, READMEs, samples of the reference and the tutorial, whatever the language."""
    texts = {str(page): page.read_text() for page in PAGES}
    for endpoint in DESCRIBED:
        for sample in samples(endpoint, described()):
            texts[f"{endpoint.id} {sample.language}"] = sample.code
            assert "CLAIMS_API_KEY" in names_in(sample.code), endpoint.id
    texts |= {one.name: one.command for one in steps("https://api.example.com/v1", "ptn_1", 0)}
    template = "service/pages/templates/console/tutorial.html"
    texts[template] = Path(template).read_text()
    strange = {where: names_in(text) - SETTINGS for where, text in texts.items()}
    strange["README.md"] -= {"CLAIM_LEDGER_STAFF"}
    assert {where: names for where, names in strange.items() if names} == {}
