"""`just screenshots`: a picture of every page of the gallery, by width and theme.

Into build/screenshots; names of shots as arguments make only those, or those that begin so.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from service.cli.dev.postgres import EmbeddedPostgres
from tests.databases import migrated
from tests.pages.chromium import CHROMIUM
from tests.pages.filled import Filled
from tests.pages.gallery import SHOTS, Shot, by_visitor, profile, visit
from tests.pages.site import site_on

FOLDER = Path("build/screenshots")
WIDTHS = (360, 1280)
THEMES = ("light", "dark")


def main() -> None:
    """Take the pictures."""
    shots_wanted = wanted(sys.argv[1:])
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="screenshots-") as name,
        sync_playwright() as playwright,
    ):
        directory = Path(name)
        directory.chmod(0o755)  # PostgreSQL runs as another user where this runs as root
        with EmbeddedPostgres(directory / "postgres", durable=False) as server:
            migrated(server.url)
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            with site_on(server.url, directory, browser) as site:
                filled = Filled(site)
                for who, shots in by_visitor():
                    page = profile(who, filled)
                    for shot in shots:
                        if shot in shots_wanted:
                            _shoot(shot, filled, page)
                    site.leave()
            browser.close()


def wanted(names: Sequence[str]) -> list[Shot]:
    """Return the shots of some names, or whose names begin so; all where none is given.

    Exits with 1 if a name is none: otherwise all would be started, and no picture be taken.
    """
    known = [shot.name for shot in SHOTS]
    if unknown := [one for one in names if not any(name.startswith(one) for name in known)]:
        sys.exit(f"no shot begins with {', '.join(unknown)}; there are {', '.join(known)}")
    return [shot for shot in SHOTS if shot.name.startswith(tuple(names) or "")]


def _shoot(shot: Shot, filled: Filled, page: Page) -> None:
    visit(shot, filled, page)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            page.screenshot(path=FOLDER / f"{shot.name}-{width}-{theme}.png", full_page=True)
    print(shot.name, file=sys.stderr)  # noqa: T201 - progress


if __name__ == "__main__":
    main()
