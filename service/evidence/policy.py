"""Whose cosignatures a checkpoint has to have: a policy file as C2SP's tlog-policy has it.

witness one example.org/one+…  https://one.example.org
witness two example.net/two+…  https://two.example.net
witness six example.com/six+…  https://six.example.com
group three 2 one two six
quorum three
"""

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from service.evidence.cosignature import WitnessKey
from service.evidence.note import NoteInvalid, NoteKey, split_note

POLICY_BYTES_MAX: Final = 256_000
_NAMES_MAX: Final = 64
_NONE: Final = "none"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)


class Witness(NamedTuple):
    """A witness of a policy; `url` is where it accepts checkpoints, "" if only its key counts."""

    name: str
    key: WitnessKey
    url: str


class Group(NamedTuple):
    """The least number of these members, witnesses or groups, that must have signed."""

    least: int
    members: tuple[str, ...]


class Policy(NamedTuple):
    """Witnesses and groups by name, the one whose signature is needed (`quorum`), keys of logs."""

    witnesses: Mapping[str, Witness]
    groups: Mapping[str, Group]
    quorum: str
    logs: tuple[NoteKey, ...] = ()

    @property
    def keys(self) -> list[WitnessKey]:
        """The keys of the witnesses."""
        return [one.key for one in self.witnesses.values()]

    @property
    def asked(self) -> dict[str, list[WitnessKey]]:
        """The keys of the witnesses by their addresses, of those that have one."""
        found: dict[str, list[WitnessKey]] = {}
        for one in self.witnesses.values():
            if one.url:
                found.setdefault(one.url, []).append(one.key)
        return found

    def is_met(self, keys: Collection[tuple[str, bytes]]) -> bool:
        """Return whether these keys, by name and id, are a quorum."""
        return self.quorum == _NONE or self._has_signed(self.quorum, keys)

    def cosigned(self, note: str) -> dict[str, datetime]:
        """Return the witnesses whose cosignatures a note has, and when they signed.

        Raises NoteInvalid if the cosignature of one of them does not hold, as for any known key.
        """
        text, signatures = split_note(note)
        known = {one.key.which: one for one in self.witnesses.values()}
        return {
            known[one.key].name: known[one.key].key.cosigned_at(text, one.signature)
            for one in signatures
            if one.key in known
        }

    def demand(self, note: str) -> dict[str, datetime]:
        """Return what `cosigned` does; raises NoteInvalid if they are no quorum."""
        found = self.cosigned(note)
        if not self.is_met({self.witnesses[name].key.which for name in found}):
            by = ", ".join(sorted(found)) or "no witness"
            raise NoteInvalid(f"the policy's quorum {self.quorum} is not reached: signed by {by}")
        return found

    def _has_signed(self, name: str, keys: Collection[tuple[str, bytes]]) -> bool:
        witness = self.witnesses.get(name)
        if witness is not None:
            return witness.key.which in keys
        group = self.groups[name]
        return sum(self._has_signed(member, keys) for member in group.members) >= group.least


def parse_policy(raw: bytes) -> Policy:
    """Read a policy file; raises ValueError, which names the line."""
    text = raw.decode(errors="surrogateescape")
    if len(raw) > POLICY_BYTES_MAX or _CONTROL.search(text):
        raise ValueError("not a policy: too long, or it has control characters")
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), 1):
        words = re.split("[ \t]+", line.strip(" \t"))
        if words == [""] or words[0].startswith("#"):
            continue
        try:
            reader.take(words)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    if reader.quorum is None:
        raise ValueError("it has no quorum line")
    return Policy(reader.witnesses, reader.groups, reader.quorum, tuple(reader.logs))


class _Reader:
    """The definitions in the lines so far."""

    def __init__(self) -> None:
        self.witnesses: dict[str, Witness] = {}
        self.groups: dict[str, Group] = {}
        self.logs: list[NoteKey] = []
        self.quorum: str | None = None
        self._public: set[bytes] = set()
        self._which: set[tuple[str, bytes]] = set()
        self._members: set[str] = set()

    def take(self, words: list[str]) -> None:
        """Take the next line; raises ValueError."""
        takers: Mapping[str, tuple[int, int, Callable[..., None]]] = {
            "log": (1, 2, self._log),
            "witness": (2, 3, self._witness),
            "group": (3, _NAMES_MAX + 2, self._group),
            "quorum": (1, 1, self._quorum),
        }
        fewest, most, taker = takers.get(words[0], (0, -1, self._quorum))
        if not fewest <= len(words) - 1 <= most:
            raise ValueError(
                "expected log KEY, witness NAME KEY [URL], group NAME COUNT NAME…, or quorum NAME"
            )
        taker(*words[1:])

    def _log(self, key: str, _url: str = "") -> None:
        log = NoteKey.parse(key)
        if log.can_sign:
            raise ValueError("this is a private key; expected the public one")
        self.logs.append(log)
        self._own(log.public, (log.name, log.key_id))

    def _witness(self, name: str, key: str, url: str = "") -> None:
        self._name(name)
        witness = Witness(name, WitnessKey.parse(key), url)
        self._own(witness.key.public, witness.key.which)
        self.witnesses[name] = witness

    def _group(self, name: str, count: str, *members: str) -> None:
        self._name(name)
        if len(set(members)) != len(members) or self._members & set(members):
            raise ValueError("a name is a member once, of one group")
        for member in members:
            self._defined(member)
        counts = {"any": 1, "all": len(members)}
        least = int(count) if _COUNT.fullmatch(count) else counts.get(count, 0)
        if not 1 <= least <= len(members):
            raise ValueError(f"expected any, all, or 1 to {len(members)}")
        self._members |= set(members)
        self.groups[name] = Group(least, members)

    def _quorum(self, name: str) -> None:
        if self.quorum is not None:
            raise ValueError("a second quorum line")
        if name != _NONE:
            self._defined(name)
        self.quorum = name

    def _name(self, name: str) -> None:
        if name == _NONE or name in self.witnesses or name in self.groups:
            raise ValueError("the name is taken")
        if len(self.witnesses) + len(self.groups) >= 2 * _NAMES_MAX:
            raise ValueError(f"more than {2 * _NAMES_MAX} witnesses and groups")

    def _defined(self, name: str) -> None:
        if name not in self.witnesses and name not in self.groups:
            raise ValueError("names no witness or group of a line before")

    def _own(self, public: bytes, which: tuple[str, bytes]) -> None:
        """Take a key; ids have 32 bits, so that a key can be made that has another one's."""
        if public in self._public:
            raise ValueError("the key is in another line, too")
        if which in self._which:
            raise ValueError("its name and id are another key's: one signature would be of both")
        self._public.add(public)
        self._which.add(which)
