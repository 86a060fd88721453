"""The documentation as pages: built as `just site` builds it, served, and its commands tried."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from litestar import Litestar

from service.partner_api.docs.site import HOME, SEARCH_STYLE, site_router
from tests.snippets import blocks
from tests.world import PUBLIC_URL

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/partners").glob("*.md"))
ELSEWHERE = re.compile(
    r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//(?!site\.invalid)[^"]*'
)


def commands(page: Path) -> list[str]:
    """Return the commands of a page, in order."""
    return blocks(page, "sh")


WITH_COMMANDS = [page for page in PAGES if commands(page)]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Return the directory that the build made of a copy of the sources."""
    copy = tmp_path_factory.mktemp("site")
    for name in ("docs", "deploy/site"):
        shutil.copytree(ROOT / name, copy / name)
    libraries = [f"clients/{name}/README.md" for name in ("python", "typescript")]
    for name in ("deploy/runbook.md", "ARCHITECTURE.md", *libraries):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, copy / "deploy/site/build.py"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return copy / "build/site"


@pytest.fixture
async def client(built: Path):
    """Return a client of an application that has the pages alone."""
    app = Litestar([site_router(built, PUBLIC_URL)], openapi_config=None, logging_config=None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=PUBLIC_URL) as opened:
        yield opened


def pages_of(built: Path) -> dict[str, str]:
    """Return the text of each page, by its path."""
    return {page.relative_to(built).as_posix(): page.read_text() for page in built.rglob("*.html")}


async def test_every_page_is_served_with_its_markdown(client: httpx.AsyncClient, built: Path):
    """Links between pages, to assets and to anchors lead somewhere."""
    pages = pages_of(built)
    assert HOME.removeprefix("/docs/") in pages
    for page in pages:
        answer = await client.get(f"/docs/{page}")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        for link in set(re.findall(r'(?:href|src)="([^"#]*)', answer.text)):
            target = answer.url.join(link)
            if target.path.startswith("/docs/"):
                assert (await client.head(target)).status_code == 200, (page, link)
        if page != "404.html":
            markdown = await client.get(f"/docs/{page.removesuffix('html')}md")
            assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
    index = await client.get("/docs/llms.txt")
    assert f"<{PUBLIC_URL}/docs/partners/quickstart.md>" in index.text


async def test_pages_run_their_own_scripts_alone(client: httpx.AsyncClient, built: Path):
    """The policy names the two lines of script in each page; nothing comes from another host."""
    policy = (await client.get(HOME)).headers["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self' 'sha256-")
    for text in pages_of(built).values():
        assert ELSEWHERE.findall(text) == []
        assert " style=" not in text


def test_the_search_box_may_have_its_style(built: Path):
    """The policy names the one style sheet that is in a script, not in a file."""
    (script,) = (built / "assets/javascripts").glob("bundle.*.js")
    digests = (hashlib.sha256(text.encode()).digest() for text in script.read_text().split("'"))
    assert SEARCH_STYLE in {base64.b64encode(digest).decode() for digest in digests}


@pytest.fixture(scope="module")
def variables(dev) -> dict[str, str]:
    """Return what the quickstart has its reader export."""
    facts = dev.facts
    entity = facts["sandbox"]["connected_entity_id"]
    return {
        "CLAIMS_API_URL": facts["base_url"],
        "CLAIMS_ENTITY_ID": entity,
        "CLAIMS_API_KEY": facts["test_key"],
    }


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_the_commands_of_a_page_work(page: Path, variables: dict[str, str], tmp_path: Path):
    """They run one after another, as a reader would, with the reader's own key."""
    first, *others = commands(page)
    if page.stem == "quickstart":
        assert re.findall(r"export (\w+)=", first) == list(variables)
    else:
        others.insert(0, first)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(others)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    EXPECTED[page.stem](done.stdout)


def _quickstart(out: str) -> None:
    assert out.count('"already_existed":false') == 2
    assert '"stage":"triage"' in out
    assert len(re.findall(r'"document_ids":\["doc_\w+"\]', out)) == 1


def _idempotency(out: str) -> None:
    assert re.findall(r"HTTP/1.1 (\d+)", out) == ["201", "200", "200"]
    matches = re.findall(r"idempotent-payload-match: (\w+)", out, re.IGNORECASE)
    assert matches == ["true", "false"]
    assert len(set(re.findall(r'"claim_id":"(\w+)"', out))) == 1


def _errors(out: str) -> None:
    (shown,) = blocks(ROOT / "docs/partners/errors.md", "json")
    assert json.loads(shown) == json.loads(out)


def _sandbox(out: str) -> None:
    assert out == "503\n"


EXPECTED = {
    "quickstart": _quickstart,
    "idempotency": _idempotency,
    "errors": _errors,
    "sandbox": _sandbox,
}
