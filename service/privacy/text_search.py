"""Finding an email address or another text in a value, case-folded as in lookups. Pure."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

_BEFORE = r"(?<![\w.!#$%&'*+/=?^`{|}~-])"
_AFTER = r"(?![\w-]|\.\w)"
"""What may surround an address, so that it is not found within a longer one (RFC 5322 atext)."""


class Sought:
    """A text to find: anywhere, or an address, with the keyed hash that stands for it."""

    def __init__(self, text: str, email_hash: str | None = None) -> None:
        """`email_hash` of an address is hexadecimal, as `Secrets.lookup_email` returns it."""
        folded = _folded(text)
        pattern = re.escape(folded)
        self._in_text = re.compile(pattern if email_hash is None else _BEFORE + pattern + _AFTER)
        encoded = msgspec.json.encode(folded).decode()[1:-1]
        self._in_json = re.compile(re.escape(encoded))
        self._hash = None if email_hash is None else bytes.fromhex(email_hash)
        self._hash_text = email_hash

    def paths(self, value: object, path: str = "") -> Iterator[str]:
        """Yield the paths of the strings that contain it, such as `details.user_email`."""
        if isinstance(value, str):
            if value == self._hash_text or self._in_text.search(_folded(value)):
                yield path
        elif isinstance(value, bytes):
            if value == self._hash or self._in_text.search(self._text(value)):
                yield path
        elif isinstance(value, Mapping):
            for name, one in value.items():
                yield from self._of_entry(name, one, path)
        elif isinstance(value, Sequence):
            for number, one in enumerate(value):
                yield from self.paths(one, f"{path}[{number}]")

    def may_be_in(self, encoded: bytes) -> bool:
        """Return quickly whether a JSON document may contain it: most do not."""
        text = encoded.decode()
        if self._hash_text is not None and self._hash_text in text:
            return True
        return self._in_json.search(_folded(text)) is not None

    def _text(self, value: bytes) -> str:
        if self._hash is not None:
            return _folded(value.decode(errors="replace"))
        try:  # a name may be two letters, which the random bytes of a hash have by chance
            return _folded(value.decode())
        except UnicodeDecodeError:
            return ""

    def _of_entry(self, name: Any, one: object, path: str) -> Iterator[str]:  # noqa: ANN401 - any JSON
        """Search names too: partners choose names of fields where a schema lets them."""
        if isinstance(name, str) and self._in_text.search(_folded(name)):
            yield f"{path}.(a name)" if path else "(a name)"
            yield from self.paths(one, f"{path}.(a name)" if path else "(a name)")
        else:
            yield from self.paths(one, f"{path}.{name}" if path else str(name))


def _folded(text: str) -> str:
    """Return a text whose letters are equal whatever their case and their composition."""
    return unicodedata.normalize("NFC", text.casefold())
