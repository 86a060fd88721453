"""Every page of the gallery: accessibility, width, and what a browser fetches for it."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import axe_playwright_python
import pytest
from playwright.sync_api import Page

from tests.pages.filled import Filled
from tests.pages.gallery import SHOTS, Shot, by_visitor, profile, visit
from tests.pages.markup import PAGE_BYTES_MAX
from tests.pages.visitor import site_map_of

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text()
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules of these levels that look at colours: a theme changes nothing else (test_contrast)."""
RUN_AXE = """runOnly => axe.run({
    runOnly, preload: false, reporter: 'no-passes', resultTypes: ['violations'],
    selectors: false,
})"""
"""Nothing is preloaded: of these rules, none needs it. Nor is a selector made of each element that
is looked at: what is found is named by its HTML."""
WIDTHS = (360, 1280)
NARROWEST = 320
"""What WCAG 1.4.10 asks for: 1280 pixels at a zoom of 400 %."""
MEASURES = {
    "pixels wider than the screen": """() => Math.max(
        0, document.documentElement.scrollWidth - document.documentElement.clientWidth)""",
    "texts of charts that reach out of their cards": """() =>
        [...document.querySelectorAll('.card .chart text')]
        .filter(text => {
            const card = text.closest('.card')
            const room = card.getBoundingClientRect().right
                - parseFloat(getComputedStyle(card).paddingRight)
            return text.getBoundingClientRect().right > room
        })
        .map(text => text.textContent)""",
    "tables that do not fit into their cards; those that have a scroll bar": """() =>
        [...document.querySelectorAll('.scroll')]
        .filter(one => one.scrollWidth > one.clientWidth)
        .map(one => one.getAttribute('aria-label'))""",
    "what is pressed and lower than docs/pages.md says; a box is pressed by its label": """() =>
        [...document.querySelectorAll(
            'button, .button, summary, select, textarea, .choice, .bar a, .modes a, '
            + 'input:not([type=checkbox], [type=radio], [type=hidden])'
        )]
        .filter(one => one.checkVisibility())
        .map(one => [one.getBoundingClientRect().height, one])
        .filter(([height, one]) => height < (one.matches('.quiet') ? 36 : 44))
        .map(([height, one]) => `${height}: ${one.outerHTML.slice(0, 100)}`)""",
    "words of buttons that are on two lines": r"""() =>
        [...document.querySelectorAll('button, .button')]
        .filter(one => one.firstChild?.nodeType === Node.TEXT_NODE)
        .flatMap(one => [...one.firstChild.data.matchAll(/[^\s-]+/g)].map(word => {
            const range = document.createRange()
            range.setStart(one.firstChild, word.index)
            range.setEnd(one.firstChild, word.index + word[0].length)
            return [range.getClientRects().length, word[0]]
        }))
        .filter(([lines]) => lines > 1)
        .map(([, word]) => word)""",
}
"""What a screen of some width shows that does not fit it: functions that return 0 or [] else."""
WIDER, _, TABLES, *_ = MEASURES
SCREENS = {1280: tuple(MEASURES), NARROWEST: (WIDER, TABLES), 360: tuple(MEASURES)}
LEAVE_TWO_OF_A_KIND = r"""() => {
    for (const { rows } of document.querySelectorAll('tbody')) {
        const seen = {}
        for (const row of [...rows].slice(0, -1)) {
            const kind = row.outerHTML
                .replace(/>[^<]*[^\s<][^<]*/g, '>text')
                .replace(/(datetime|href|value)="[^"]+"/g, '$1')
            seen[kind] = (seen[kind] ?? 0) + 1
            if (seen[kind] > 2) row.remove()
        }
    }
}"""
"""Rows that differ in texts, times, links and values alone are the same to axe-core, which takes
seconds for 180 of them. Two are left, where what should be unique would be seen, and the last."""
NO_PAGES = {
    "/console",
    "/console/{partner_id:str}/claims.csv",
    "/console/{partner_id:str}/links.csv",
    "/console/{partner_id:str}/onboardings.csv",
}
"""What has no page of its own: it leads to one, or is a file."""


@pytest.mark.parametrize(
    ("who", "shots"), by_visitor(), ids=[who or "nobody" for who, _ in by_visitor()]
)
def test_pages_are_light_and_axe_finds_nothing(who: str | None, shots: list[Shot], filled: Filled):
    """Under 100 kB from our host, level AA on phones and desktops, in both themes."""
    page, plain = profile(who, filled), None
    page.add_init_script(AXE)
    for shot in shots:
        visit(shot, filled, page)
        _weigh(page, filled.site.url)
        assert _alike(page) == [], shot.name
        for width, names in SCREENS.items():
            page.set_viewport_size({"width": width, "height": 800})
            assert _misfits(page, names) == {}, f"{shot.name}, {width} pixels"
        if page.locator(".scroll > table").count():
            plain = (who and plain) or _without_scripts(page, filled)
            _measure_without_scripts(plain, page.url, shot)
        page.evaluate(LEAVE_TWO_OF_A_KIND)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme="light")
            assert _violations(page, tags=LEVELS) == [], f"{shot.name}, {width} pixels, light"
            page.emulate_media(color_scheme="dark")
            assert _violations(page, rules=COLOURS) == [], f"{shot.name}, {width} pixels, dark"


def test_an_open_menu_stays_on_the_screen(filled: Filled):
    """On phones, each of the console's; and none covers the name of another."""
    page = profile("developer", filled)
    page.goto(f"/console/{filled.partner}")
    for width in (NARROWEST, 360, 400, 660):
        page.set_viewport_size({"width": width, "height": 800})
        for name in page.locator("nav summary").all():
            name.click()
            menu = name.locator("xpath=following-sibling::*").bounding_box()
            assert menu
            assert 0 <= menu["x"] <= width - menu["width"], f"{name.inner_text()}, {width} pixels"
            assert _misfits(page, [WIDER]) == {}, f"{name.inner_text()}, {width} pixels"


def test_times_keep_their_column_beside_ids(filled: Filled):
    """Ids do not wrap, and leave a time a word a line: rows of five lines, on a wide screen."""
    page = profile(None, filled)
    page.goto("/")
    lines = page.evaluate("""() => {
        const cells = '<td><code>clm_01jexample00000000000000000</code></td>'.repeat(4)
        document.querySelector('main').innerHTML = `<div class="scroll"><table><tr>
            <td><time>23 November 2026, 21:19:01 UTC</time></td>${cells}</tr></table></div>`
        const time = document.querySelector('td time')
        return time.getBoundingClientRect().height / parseFloat(getComputedStyle(time).lineHeight)
    }""")
    assert round(lines) <= 3


def test_forced_colours_show_what_has_colour_alone_and_nothing_else(filled: Filled):
    """The swatches of a chart's legend; no line around what is not where one is."""
    page = profile("developer", filled, forced_colors="active")
    page.goto(f"/console/{filled.partner}/usage")
    canvas, swatches, places = page.evaluate("""() => {
        const colour = (one, name, part) => getComputedStyle(one, part)[name]
        const all = chosen => [...document.querySelectorAll(chosen)]
        return [
            colour(document.body, 'backgroundColor'),
            all('.legend li:not(.line)').map(one => colour(one, 'backgroundColor', '::before')),
            all('.bar nav a:not([aria-current])').map(one => colour(one, 'borderTopColor')),
        ]
    }""")
    assert len(swatches) > 1
    assert len(set(swatches) - {canvas}) == len(swatches)
    assert set(places) == {canvas}


def test_titles_are_distinct_and_no_page_is_left_out(filled: Filled):
    """Each page has its own title, and the gallery has every page of the site map."""
    for who, shots in by_visitor():
        if not all(shot.name in filled.visited for shot in shots):
            page = profile(who, filled)
            for shot in shots:
                visit(shot, filled, page)
            filled.site.leave()
    titles: dict[str, list[str]] = {}
    for shot in SHOTS:
        if shot.titled:
            titles.setdefault(filled.visited[shot.name].title, []).append(shot.name)
    assert [names for names in titles.values() if len(names) > 1] == []
    seen = {urlsplit(one.url).path for one in filled.visited.values()}
    pages = site_map_of(filled.site.team.service).pages
    paths = {page.path for page in pages if page.method == "GET"} - NO_PAGES
    assert {path for path in paths if not any(_fits(path, one) for one in seen)} == set()


def _fits(path: str, one: str) -> bool:
    return re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", path), one) is not None


def _weigh(page: Page, url: str) -> None:
    """Return the transferred size with style sheet, scripts and icon."""
    weights = page.evaluate(
        "performance.getEntries().filter(one => 'encodedBodySize' in one)"
        ".map(one => [one.name, one.encodedBodySize])"
    )
    names = [name for name, _ in weights]
    assert sum("/assets/" in name for name in names) >= 2, names
    assert all(name.startswith(url) for name in names), "fetched from another host"
    assert sum(size for _, size in weights) < PAGE_BYTES_MAX, weights
    assert sum(size > 0 for _, size in weights) >= 3, weights  # cached, they have a size, too


def _without_scripts(page: Page, filled: Filled) -> Page:
    return filled.site.visitor(
        java_script_enabled=False,
        storage_state=page.context.storage_state(),
        viewport={"width": NARROWEST, "height": 800},
    )


def _measure_without_scripts(plain: Page, url: str, shot: Shot) -> None:
    """Check that wide tables scroll, and the page does not, without scripts."""
    plain.goto(url)
    if plain.locator(".scroll > table").count():
        assert plain.locator("table.stack").count() == 0
        assert _misfits(plain, [WIDER]) == {}, f"{shot.name} is too wide without scripts"


def _misfits(page: Page, names: Sequence[str] = tuple(MEASURES)) -> dict[str, Any]:
    """Return what does not fit a screen, by the name of its measure."""
    each = ", ".join(f"{json.dumps(name)}: ({MEASURES[name]})()" for name in names)
    found = page.evaluate(f"() => ({{{each}}})")
    return {name: value for name, value in found.items() if value}


def _alike(page: Page) -> list[str]:
    """Return the names of buttons that others of their page have, too, for something else."""
    return page.evaluate(r"""() => [...document.querySelectorAll('button, .button')]
        .filter(one => one.checkVisibility())
        .map(one => [one.textContent.trim().replace(/\s+/g, ' '), one.href])
        .filter(([name, href], place, all) =>
            all.slice(0, place).some(one => one[0] === name && (!href || one[1] !== href)))
        .map(([name]) => name)""")


def _violations(page: Page, **chosen: list[str]) -> list[tuple[str, list[str]]]:
    """Return what axe-core finds by the rules of these `tags`, or by these `rules`."""
    ((kind, values),) = chosen.items()
    found = page.evaluate(RUN_AXE, {"type": kind.removesuffix("s"), "values": values})
    return [
        (
            one["id"],
            [
                node["html"][:200] + " | " + (node.get("failureSummary") or "")[:300]
                for node in one["nodes"]
            ],
        )
        for one in found["violations"]
    ]
