"""Running pieces of work concurrently: if one ends with an error, none continues alone."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def together(*work: Coroutine[Any, Any, T]) -> list[T]:
    """Return what each piece returns, in their order.

    If one fails, or the caller is cancelled, the others are cancelled and have ended before this
    raises the first failure, so the resources that they used are free again.
    """
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        for ended in asyncio.as_completed(tasks):
            await ended
        return [one.result() for one in tasks]
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
