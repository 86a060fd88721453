"""Errors that have been answered leave nothing of their requests in memory.

A traceback refers to the request and its body, and what was decided on it may refer to the error
again: a cycle, which stays until Python's collector comes. That counts objects, of which a body of
1 MiB is one: a hundred refused requests took 110 MB.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from litestar import Response

from service.http.bodies import AnyRequest

Handler = Callable[[AnyRequest, Any], Response[Any]]


def answered(handlers: Mapping[type[Exception], Handler]) -> dict[int | type[Exception], Handler]:
    """Return exception handlers that answer as these do, and then have the error forget."""
    return {kind: _answered(handler) for kind, handler in handlers.items()}


def _answered(handler: Handler) -> Handler:
    @wraps(handler)
    def answer(request: AnyRequest, error: Exception) -> Response[Any]:
        try:
            return handler(request, error)
        finally:
            forget(error)

    return answer


def forget(error: BaseException) -> None:
    """Drop the traceback of an error, and of those that it came from."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = None
            left += (one.__cause__, one.__context__)
