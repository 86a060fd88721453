"""How to install an optional part of this package, for the messages of commands that lack it."""


def extra(name: str) -> str:
    """Return what to do if an extra of `pyproject.toml` is missing.

    It is installed from a clone: the package is not on PyPI, where anybody could take its name.
    """
    return f"install the extra: `pip install '.[{name}]'` in a clone of the repository"
