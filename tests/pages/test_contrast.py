"""Contrast of the style sheet's colours by WCAG 2.2, from the tokens of both themes."""

import re
from pathlib import Path

import pytest

CSS = Path("service/pages/static/pages.css").read_text()
COLOUR = r"#[0-9a-f]{3,8}|rgba?\([^)]*\)"
TEXT = 4.5
"""WCAG 1.4.3, level AA, text of any size."""
SHAPE = 3.0
"""WCAG 1.4.11: what shows where a field or a focus is."""

GROUNDS = ("paper", "ground", "brand-ground", "good-ground", "bad-ground", "warn-ground")
PAIRS = (
    *((ink, ground, TEXT) for ink in ("ink", "soft", "brand") for ground in GROUNDS),
    *((f"{state}", f"{state}-ground", TEXT) for state in ("good", "bad", "warn")),
    *((state, ground, TEXT) for state in ("good", "bad", "warn") for ground in GROUNDS[:2]),
    *(("brand-ink", fill, TEXT) for fill in ("brand", "brand-strong")),
    *(("bad-ink", fill, TEXT) for fill in ("bad", "bad-strong")),
    *(("edge", ground, SHAPE) for ground in GROUNDS[:2]),
)


def tokens(theme: str) -> dict[str, str]:
    """Return the colours of a theme after the cascade."""
    first, dark = (
        dict(re.findall(r"--([a-z-]+):\s*#([0-9a-f]{6})\b", block))
        for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)[:2]
    )
    return first if theme == "light" else first | dark


def luminance(colour: str) -> float:
    """Return the relative luminance, as WCAG defines it."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (int(colour[place : place + 2], 16) / 255 for place in (0, 2, 4))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_formula_is_the_standards():
    """Black on white is 21; #767676 is the lightest grey that passes on white."""
    assert contrast("000000", "ffffff") == pytest.approx(21)
    assert contrast("767676", "ffffff") >= TEXT > contrast("777777", "ffffff")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_tokens_contrast(theme):
    """Each pair in use reaches level AA."""
    colours = tokens(theme)
    for ink, ground, least in PAIRS:
        assert contrast(colours[ink], colours[ground]) >= least, (ink, ground)


def test_colours_are_tokens():
    """Only the two themes, and the white paper of print, define colours."""
    rules = re.sub(r":root \{.*?\}", "", CSS, flags=re.DOTALL)
    assert re.findall(r"#[0-9a-f]{3,8}\b|rgb\(", rules) == []


def test_both_themes_have_every_colour():
    """A colour missing in dark mode would be the light one."""
    light = tokens("light")
    dark_block = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)[1]
    assert [name for name in light if f"--{name}:" not in dark_block] == []


def test_a_theme_changes_colours_alone():
    """So what axe-core finds about structure in one theme holds in both."""
    dark = re.findall(r"@media \(prefers-color-scheme: dark\) \{(.*?)\n\}", CSS, re.DOTALL)
    assert dark
    for block in dark:
        declared = re.findall(r"([a-z-]+)\s*:\s*([^;{}]+);", block)
        assert declared
        assert [one for one in declared if not re.fullmatch(COLOUR, one[1])] == []
