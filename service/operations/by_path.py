"""Two applications at one address, told apart by the path that a request names."""

from collections.abc import Callable
from functools import cached_property
from typing import Final

from litestar import Litestar
from litestar.types import Receive, Scope, Send


class ByPath:
    """Passes paths below some prefixes to one application, and all others to another one.

    The first one has the start and the end of the process, too. The other one is made when it is
    first needed, or asked for.
    """

    def __init__(self, app: Litestar, *prefixes: str, make_other: Callable[[], Litestar]) -> None:
        """Each of `prefixes` ends without a slash."""
        self.app: Final = app
        self._prefixes: Final = tuple(f"{one}/" for one in prefixes)
        self._make_other: Final = make_other

    @cached_property
    def other(self) -> Litestar:
        """The application of all other paths."""
        return self._make_other()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        is_other = scope["type"] == "http" and not f"{scope['path']}/".startswith(self._prefixes)
        await (self.other if is_other else self.app)(scope, receive, send)
