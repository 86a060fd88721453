"""The names of a bucket's objects in order, and the pages of a listing. No I/O."""

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import Final

import msgspec

PAGE_MAX: Final = 1000
"""The cloud's limit of a page."""


class DiskObject(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an object; the file beside its bytes holds this as JSON.

    `generation` is in microseconds of the epoch and never repeats; `md5` and `crc32c` are base64,
    as the cloud gives them; `time_created` is RFC 3339 in UTC.
    """

    name: str
    bucket: str
    size: int
    content_type: str
    generation: int
    md5: str
    crc32c: str
    time_created: str


@dataclass(slots=True)
class ObjectIndex:
    """One bucket's objects. Code points sort as UTF-8 bytes do, which is the cloud's order."""

    objects: dict[str, DiskObject] = field(default_factory=dict[str, DiskObject])
    names: list[str] = field(default_factory=list[str])

    def add(self, stored: DiskObject) -> None:
        """Add an object under a name that is free."""
        self.objects[stored.name] = stored
        insort(self.names, stored.name)

    def remove(self, name: str) -> None:
        """Remove an object that is there."""
        del self.objects[name]
        del self.names[bisect_left(self.names, name)]

    def page(
        self, prefix: str, after: str | None, count: int
    ) -> tuple[list[DiskObject], str | None]:
        """Return up to `count` objects past the name `after`, and the last name if more follow."""
        start = bisect_left(self.names, prefix)
        if after is not None:
            start = max(start, bisect_right(self.names, after))
        found: list[DiskObject] = []
        for name in self.names[start : start + count + 1]:
            if not name.startswith(prefix):
                break
            found.append(self.objects[name])
        if len(found) <= count:
            return found, None
        return found[:count], found[count - 1].name
