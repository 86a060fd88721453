"""A new partner's way from the application to a first claim, by pages and READMEs alone."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.dev_process import Dev
from tests.pages.chromium import CHROMIUM
from tests.patience import PATIENCE_SECONDS, until
from tests.snippets import blocks

pytestmark = [pytest.mark.server, pytest.mark.timeout(1_800)]

NEW = "new@example.com"
LINK = re.compile(r"https?://\S+")
PYTHON = Path("clients/python").absolute()


@pytest.fixture
def pages() -> Iterator[tuple[Page, Page]]:
    """Return a page of the new person's browser, and one of the team's."""
    if CHROMIUM is None:
        pytest.skip("no Chromium in /usr/bin")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, timeout=1000 * PATIENCE_SECONDS
        )
        opened = [browser.new_context().new_page() for _ in range(2)]
        for page in opened:
            page.set_default_timeout(1000 * PATIENCE_SECONDS)
        yield opened[0], opened[1]
        browser.close()


def sign_in(page: Page, dev: Dev, address: str, path: str) -> None:
    """Sign in by the link in the mail."""

    def link() -> str | None:
        for file in sorted((dev.data_dir / "mail").rglob("*.eml")):
            mail = message_from_bytes(file.read_bytes(), policy=default)
            body = mail.get_body(("plain",))
            if address in str(mail["to"]) and body is not None and "sign in" in mail["subject"]:
                return LINK.findall(body.get_content())[0]
        return None

    page.goto(dev.facts["public_url"] + path)
    page.get_by_label("Email address").fill(address)
    page.keyboard.press("Enter")
    page.goto(until(link))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"**{path}**")


def test_a_first_claim_through_the_library(dev, pages, tmp_path):
    """The application is approved, the tutorial's lines are pasted, the README's program is run."""
    partner, team = pages
    began = time.monotonic()
    marks = {}

    def mark(name: str) -> None:
        marks[name] = round(time.monotonic() - began, 1)

    sign_in(partner, dev, NEW, "/console")
    partner.get_by_label("Company", exact=True).fill("New Books")
    partner.get_by_label("Your name").fill("New Person")
    partner.get_by_label("What will you use the API for?").fill("To refer our customers.")
    partner.get_by_role("button", name="Apply").click()
    partner.wait_for_url("**/console/ptn_*")
    mark("applied")
    sign_in(team, dev, "team@example.com", "/backoffice")
    team.get_by_role("link", name="awaiting review").click()
    team.locator(f'a[href$="{partner.url.rpartition("/")[2]}"]').first.click()
    team.get_by_role("button", name="Approve").click()
    mark("approved")
    partner.reload()
    partner.get_by_role("link", name="Create your first claim").first.click()
    partner.get_by_role("button", name="Issue a test key").click()
    exports = partner.locator("pre").first.inner_text()
    mark("key issued")
    program = blocks(PYTHON / "README.md", "python")[0]
    (tmp_path / "first.py").write_text(program)
    pasted = f"""
        python3 -m venv env
        env/bin/pip install --quiet --disable-pip-version-check {PYTHON}
        {exports}
        env/bin/python first.py
    """
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", pasted],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={name: one for name, one in os.environ.items() if not name.startswith("CLAIMS_")},
    )
    assert done.returncode == 0, done.stderr
    mark("library installed, first claim")
    first, listed, history = done.stdout.splitlines()
    assert re.fullmatch(r"clm_\w+ False", first)
    assert (listed, history) == ("case-1001 triage", "['triage']")
    print(marks)  # noqa: T201 - seconds since the first click (`-s`)
