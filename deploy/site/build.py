"""Build the documentation's pages: `just site` writes `build/site`, which `serve` has at `/docs/`.

The sources are docs/, the client libraries' READMEs, the runbook and ARCHITECTURE.md. Links
between them work in the repository and on the site; one to a file that is not on the site is its
name there.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
BUILD: Final = ROOT / "build"
SOURCE: Final = BUILD / "site-source"
CONFIGURATION: Final = "zensical.toml"

ADDED: Final = {
    ROOT / "clients/python/README.md": "partners/python.md",
    ROOT / "clients/typescript/README.md": "partners/typescript.md",
    ROOT / "deploy/runbook.md": "runbook.md",
    ROOT / "ARCHITECTURE.md": "architecture.md",
}
_LINK: Final = re.compile(r"\[([^\]]*)\]\(((?!\w+:|#|/)[^)#\s]+)(#[^)\s]*)?\)")


def main() -> None:
    """Copy the sources, then build; a link or an anchor that leads nowhere fails."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    pages = {page: page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")}
    pages |= {page: Path(name) for page, name in ADDED.items()}
    for page, place in pages.items():
        target = SOURCE / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_on_the_site(page, pages))
    shutil.rmtree(BUILD / "site", ignore_errors=True)
    shutil.copy(Path(__file__).with_name("site.css"), SOURCE)
    # Beside what it names: the generator refuses paths outside of its configuration's directory.
    shutil.copy(Path(__file__).with_name(CONFIGURATION), BUILD)
    command = ["zensical", "build", "--strict", "--config-file", CONFIGURATION]
    sys.exit(subprocess.run(command, check=False, cwd=BUILD).returncode)


def _on_the_site(page: Path, pages: dict[Path, Path]) -> str:
    """Return a page's text, its links to other files as they are on the site."""
    here = pages[page].parent

    def link(found: re.Match[str]) -> str:
        text, path, anchor = found[1], found[2], found[3] or ""
        target = pages.get((page.parent / path).resolve())
        if target is None:
            return text if "`" in text else f"{text} (`{path}`)"
        return f"[{text}]({_relative(target, here)}{anchor})"

    return _LINK.sub(link, page.read_text())


def _relative(target: Path, here: Path) -> str:
    return "/".join([*[".."] * len(here.parts), target.as_posix()])


if __name__ == "__main__":
    main()
