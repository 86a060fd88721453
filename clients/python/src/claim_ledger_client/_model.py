"""The base of the generated types."""

from collections.abc import Mapping
from typing import Self

import msgspec


class Model(msgspec.Struct):
    """A struct whose `repr` shows no link: each one in an answer is a credential."""

    def __repr__(self) -> str:
        shown = (
            f"{name}={'***' if name.endswith('_url') else repr(getattr(self, name))}"
            for name in self.__struct_fields__
            if getattr(self, name) is not msgspec.UNSET
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class Answer(Model, dict=True):
    """An answer to a call, and what its headers say, which is no member: not shown or compared."""

    @property
    def request_id(self) -> str | None:
        """The id of the request (`X-Request-Id`). Quote it when you ask us about it."""
        return vars(self).get("X-Request-Id")

    @property
    def payload_matches(self) -> bool | None:
        """On a replay, whether its body was that of the first request; if not, nothing changed.

        None where nothing was compared: in all other answers, and after an erasure.
        """
        return {"true": True, "false": False}.get(vars(self).get("Idempotent-Payload-Match", ""))

    def with_headers(self, headers: Mapping[str, str]) -> Self:
        """Return itself, with what these headers say."""
        names = ("X-Request-Id", "Idempotent-Payload-Match")
        vars(self).update({name: headers[name] for name in names if name in headers})
        return self
