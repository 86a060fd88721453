"""The reference as a browser shows it."""

import pytest

WIDTHS = (320, 641, 1023, 1024, 1025, 1344)
"""What WCAG 1.4.10 asks for, and both sides of each width at which the style changes."""

OVERLAPPING = """() => {
    const nav = document.querySelector('nav')
    const links = [...nav.querySelectorAll('li a')].map(one => [one.textContent, one])
    // What is written in a link, which may be wider than the link itself.
    const boxes = links.map(([text, one]) => {
        const range = document.createRange()
        range.selectNodeContents(one)
        return [text, range.getBoundingClientRect()]
    })
    const room = nav.getBoundingClientRect()
    return boxes.flatMap(([text, box], number) => [
        ...(box.right > room.right ? [text] : []),
        ...boxes.slice(number + 1).filter(([, other]) =>
            box.left < other.right && other.left < box.right &&
            box.top < other.bottom && other.top < box.bottom
        ).map(([other]) => `${text} | ${other}`),
    ])
}"""


@pytest.mark.parametrize("width", WIDTHS)
def test_no_entry_of_the_contents_overlaps_another(site, width):
    """In two columns where there is room, and in one otherwise, beside the text too."""
    page = site.visitor(viewport={"width": width, "height": 900})
    page.goto("/docs")
    assert page.locator("nav li a").count() > 10
    assert page.evaluate(OVERLAPPING) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
