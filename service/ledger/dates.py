"""Dates of PostgreSQL that Python does not have: before Christ, after 9999, infinity.

The service writes none of these, but whoever alters a row can. Such a row is read with the first or
the last date instead, because an unreadable row would keep others from being read.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg

FIRST_DATE: Final = datetime(2, 1, 1, tzinfo=UTC)
LAST_DATE: Final = datetime(9998, 12, 31, tzinfo=UTC)
"""Each stands for any beyond it; a year is left for what is added or taken away."""

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""From which PostgreSQL counts microseconds."""
_MICROSECOND: Final = timedelta(microseconds=1)


async def read_every_date(connection: asyncpg.Connection) -> None:
    """Have a connection read each `timestamptz`; of some, the driver raises OverflowError.

    This takes as long as the driver's own way, and asks PostgreSQL nothing.
    """
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", encoder=_encoded, decoder=_decoded, format="tuple"
    )


def _encoded(moment: datetime) -> tuple[int]:
    return ((moment - _EPOCH) // _MICROSECOND,)


_FIRST: Final = _encoded(FIRST_DATE)[0]
_LAST: Final = _encoded(LAST_DATE)[0]


def _decoded(stored: tuple[int]) -> datetime:
    (microseconds,) = stored
    if _FIRST < microseconds < _LAST:
        return _EPOCH + timedelta(0, 0, microseconds)
    return LAST_DATE if microseconds > 0 else FIRST_DATE
