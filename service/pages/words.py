"""The words of the pages, in one place a language: `texts/<language>.toml`.

A text's name is its page and what it is for, `connect.title`. Values stand in braces, `{partner}`,
and are escaped as everything in a template is, with what nobody would see made visible.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from markupsafe import Markup, escape

from service.core.invisible_characters import name_fault, removed, visible

LANGUAGE: Final = "en"
SHOWN_MAX: Final = 60
"""Characters of a value that no text is for."""


def _flat(table: Mapping[str, Any], path: str = "") -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in table.items():
        key = f"{path}{name}"
        texts |= {key: value} if isinstance(value, str) else _flat(value, f"{key}.")
    return texts


TEXTS: Final[Mapping[str, str]] = _flat(
    tomllib.loads(files("service.pages").joinpath(f"texts/{LANGUAGE}.toml").read_text())
)


def text(name: str, /, **values: object) -> Markup:
    """Return a text with its values, escaped for HTML; raise KeyError for an unknown name.

    Our own texts may hold simple markup; values never do.
    """
    shown = {key: escape(seen(value)) for key, value in values.items()}
    return Markup(TEXTS[name]).format(**shown)  # noqa: S704 - our own words, not anyone's input


def stored(group: str, value: object, /, **values: object) -> Markup:
    """Return the text of a group for a value that a row has; one that has no text is shown itself.

    Whoever can write to a read model can put anything there: that is to be seen, on a page that
    works.
    """
    try:
        return text(f"{group}.{value}", **values)
    except KeyError:  # no such text, or one that is about other values
        shown = str(value)
        cut = shown if len(shown) <= SHOWN_MAX else f"{shown[:SHOWN_MAX]}…"
        return text("site.unknown_value", value=cut)


def seen(value: object) -> object:
    """Return a value as pages show it: of a text that is no markup of ours, every character."""
    return visible(value) if type(value) is str else value


def entered(value: object, kept: object = ()) -> Markup:
    """Return what a field holds, which comes back as it stands there: never a picture of it.

    What nobody sees is left out of what others wrote. It is kept where faults say what is wrong
    with it, and in what people look for, or write themselves.
    """
    given = str(value or "")
    return escape(given if kept or name_fault(given) is None else removed(given))
