"""The base of the generated types."""

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
