"""The words of the pages, in one place a language: `texts/<language>.toml`.

A text's name is its page and what it is for, `connect.title`. Values stand in braces, `{partner}`,
and are escaped as everything in a template is, with what nobody would see made visible.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from markupsafe import Markup, escape

from service.core.unseen import visible

LANGUAGE: Final = "en"


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


def seen(value: object) -> object:
    """Return a value as pages show it: of a text that is no markup of ours, every character."""
    return visible(value) if type(value) is str else value
