"""Links that customers follow, as a person pastes them into a command."""

from urllib.parse import urlsplit


def token_of(link: str) -> str:
    """Return the token at the end of a link, which may be a bare token; "" for garbage."""
    try:
        return urlsplit(link).path.rpartition("/")[2]
    except ValueError:
        return ""
