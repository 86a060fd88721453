"""A router that the framework does not copy."""

from typing import Any, Self

from litestar import Router


class OneOffRouter(Router):
    """A router that is made for one application alone.

    Registering copies a router and all in it, once for each that it is within, so that it can be
    registered again elsewhere: a third of the time that making the application took.
    """

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        """Return the router itself."""
        return self
