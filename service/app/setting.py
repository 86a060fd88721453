"""The declaration of one setting, which is the descriptor of its value as well."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from service.app.secret_file import secret_in
from service.app.setting_values import masked
from service.app.warned import warn_once

PREFIX: Final = "CLAIM_LEDGER_"

_T_co = TypeVar("_T_co", covariant=True)


class SettingsError(Exception):
    """The settings cannot be used; `faults` has a line each: `NAME: what is wrong, expected`."""

    def __init__(self, faults: list[str]) -> None:
        """Keep the faults; none of them quotes a secret."""
        self.faults = faults
        super().__init__("\n".join(faults))


class _HasValues(Protocol):
    @property
    def values(self) -> Mapping[str, Any]: ...


class OptionalSetting(Generic[_T_co]):
    """A setting that may be absent: None then. Its name is that of its attribute.

    `default` is text as in the environment. `secret` values are masked wherever settings are
    shown, and may stand in a file that the variable with `_FILE` names. `formerly` is the name of
    an earlier release, which this one accepts with a warning.
    """

    name: str
    variable: str
    """The environment variable's full name."""
    file_variable: str | None
    """The variable that names a file with the value, if it is secret."""
    variables: list[str]
    """The names under which it can be set, today's first."""

    def __init__(
        self,
        parse: Callable[[str], _T_co],
        description: str,
        *,
        default: str | None = None,
        secret: bool = False,
        formerly: str | None = None,
    ) -> None:
        """Declare it; `parse` raises ValueError."""
        self._parse = parse
        self.default = default
        self.secret = secret
        self.formerly = formerly and PREFIX + formerly
        self.description = f"{description}; formerly `{self.formerly}`" if formerly else description

    def __set_name__(self, _owner: type, attribute: str) -> None:
        self.name = attribute.upper()
        self.variable = PREFIX + self.name
        self.file_variable = f"{self.variable}_FILE" if self.secret else None
        names = (self.variable, self.formerly, self.file_variable)
        self.variables = [name for name in names if name]

    def __get__(self, settings: _HasValues, _owner: type) -> _T_co | None:
        return settings.values[self.name]

    def __set__(self, _settings: object, _value: object) -> None:
        raise AttributeError(f"{self.name}: settings do not change")

    def read(
        self, environ: Mapping[str, str], parse: Callable[[str], object] | None = None
    ) -> object:
        """Return the value, None when there is none, by `parse` if given; raises ValueError."""
        text = self.text(environ) or self.default
        return None if text is None else (parse or self._parse)(text)

    def text(self, environ: Mapping[str, str]) -> str | None:
        """Return the value's text as it is given, None when it is not; raises ValueError.

        A file is read here, once: a new one is taken at the next start.
        """
        new, old = (environ.get(name or "", "").strip() for name in (self.variable, self.formerly))
        if old:
            if new and new != old:
                raise ValueError(f"differs from its old name {self.formerly}: unset that one")
            warn_once(
                f"{self.formerly} is deprecated and will be removed in the next release: "
                f"set {self.variable} instead"
            )
        path = environ.get(self.file_variable or "", "").strip()
        if not path:
            return new or old or None
        if new or old:
            raise ValueError(f"is set, and {self.file_variable} too: unset one of them")
        try:
            return secret_in(path)
        except ValueError as error:
            raise ValueError(f"from {self.file_variable}: {error}") from error

    def shown(self, value: object) -> str:
        """Return a value as it may be printed."""
        if not self.secret or value is None:
            return repr(value)
        return repr(masked(value)) if isinstance(value, str) else "***"


class Setting(OptionalSetting[_T_co]):
    """A setting whose value is never None: reading it raises SettingsError where it is absent.

    Without a `default`, a command that reads it has to require it.
    """

    def __get__(self, settings: _HasValues, _owner: type) -> _T_co:
        value = settings.values[self.name]
        if value is None:
            raise SettingsError([f"{self.variable}: is not set, and this command needs it"])
        return value
