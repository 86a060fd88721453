"""Credentials of every kind, and the answers that the contract and its readings demand."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from service.core.ids import base62
from service.partners.keys import new_secret
from tests.world import STAFF, World

STATES: Final = ("pending", "declined", "approved", "revoked", "unknown")


class Keys(NamedTuple):
    """A partner's keys as bearer tokens, and one key of another partner."""

    partner_id: str
    live: str
    test: str
    revoked: str
    foreign: str

    @property
    def key_id(self) -> str:
        """The id of the live key."""
        return self.live.split(".")[1]

    @property
    def secret(self) -> str:
        """The secret of the live key."""
        return self.live.split(".")[2]


FORMAT: Final = "auth_invalid_format"

MALFORMED: Final[Mapping[str, Callable[[Keys], str | bytes | None]]] = {
    "empty header": lambda _: "",
    "blank header": lambda _: "  ",
    "Bearer alone": lambda _: "Bearer",
    "Bearer and a space": lambda _: "Bearer ",
    "other scheme": lambda keys: f"Basic {keys.live}",
    "no scheme": lambda keys: keys.live,
    "two tokens": lambda keys: f"Bearer {keys.live} {keys.live}",
    "a space after the secret": lambda keys: f"Bearer {keys.live} x",
    "a space in the secret": lambda keys: f"Bearer {keys.live[:-9]} {keys.live[-9:]}",
    "two headers that a proxy combined": lambda keys: f"Bearer {keys.live}, Basic x",
    "tab for a space": lambda keys: f"Bearer\t{keys.live}",
    "no prefix": lambda keys: f"Bearer {keys.live.removeprefix('pk_live_')}",
    "other prefix": lambda keys: f"Bearer pk_prod_{keys.live.removeprefix('pk_live_')}",
    "prefix in capitals": lambda keys: f"Bearer {keys.live.replace('pk_live_', 'PK_LIVE_')}",
    "prefix alone": lambda _: "Bearer pk_live_",
    "one part": lambda keys: f"Bearer pk_live_{keys.partner_id}",
    "two parts": lambda keys: f"Bearer pk_live_{keys.partner_id}.{keys.key_id}",
    "four parts": lambda keys: f"Bearer {keys.live}.more",
    "empty partner": lambda keys: f"Bearer pk_live_.{keys.key_id}.{keys.secret}",
    "empty key": lambda keys: f"Bearer pk_live_{keys.partner_id}..{keys.secret}",
    "empty secret": lambda keys: f"Bearer pk_live_{keys.partner_id}.{keys.key_id}.",
    "only dots": lambda _: "Bearer pk_live_..",
    "overlong": lambda keys: f"Bearer {keys.live}{'a' * 500}",
    "a megabyte": lambda keys: f"Bearer {keys.live}{'a' * 2**20}",
    "not ASCII": lambda keys: f"Bearer {keys.live}é".encode(),
    "not UTF-8": lambda keys: f"Bearer {keys.live}".encode() + b"\xff",
    "control character": lambda keys: f"Bearer {keys.live}\x01",
    "NUL": lambda keys: f"Bearer pk_live_{keys.partner_id}\0.{keys.key_id}.{keys.secret}",
    "DEL": lambda keys: f"Bearer {keys.live}\x7f",
}
"""Headers that are no key: the same answer whoever they are about."""


NOT_IN_HTTP: Final = {
    *("blank header", "Bearer and a space", "a megabyte", "control character", "NUL", "DEL")
}
"""What no client's library sends, or no proxy passes on."""


class WellFormed(NamedTuple):
    """A well-formed key, and the codes for an approved and a revoked partner.

    A code of None: let through.
    """

    header: Callable[[Keys], str]
    approved: str | None
    revoked: str


def _with(keys: Keys, *, key_id: str | None = None, secret: str | None = None) -> str:
    return f"Bearer pk_live_{keys.partner_id}.{key_id or keys.key_id}.{secret or keys.secret}"


def _bad_checksum(secret: str) -> str:
    last = base62((ord(secret[-1]) + 1) % 62, 1)
    return secret[:-1] + (last if last != secret[-1] else base62(0, 1))


BAD: Final = "auth_bad_secret"
REVOKED: Final = "auth_revoked"

WELL_FORMED: Final[Mapping[str, WellFormed]] = {
    "live key": WellFormed(lambda keys: f"Bearer {keys.live}", None, REVOKED),
    "test key": WellFormed(lambda keys: f"Bearer {keys.test}", None, REVOKED),
    "scheme in lower case": WellFormed(lambda keys: f"bearer {keys.live}", None, REVOKED),
    "bad checksum": WellFormed(
        lambda keys: _with(keys, secret=_bad_checksum(keys.secret)), BAD, BAD
    ),
    "wrong secret": WellFormed(lambda keys: _with(keys, secret=new_secret()), BAD, BAD),
    "short secret": WellFormed(lambda keys: _with(keys, secret="x"), BAD, BAD),
    "secret in capitals": WellFormed(
        lambda keys: _with(keys, secret=keys.secret.swapcase()), BAD, BAD
    ),
    "wrong key id": WellFormed(lambda keys: _with(keys, key_id="key_none"), BAD, BAD),
    "key of another partner": WellFormed(
        lambda keys: f"Bearer pk_live_{keys.partner_id}.{keys.foreign.partition('.')[2]}", BAD, BAD
    ),
    "live key under pk_test_": WellFormed(
        lambda keys: f"Bearer {keys.live.replace('pk_live_', 'pk_test_')}", BAD, BAD
    ),
    "test key under pk_live_": WellFormed(
        lambda keys: f"Bearer {keys.test.replace('pk_test_', 'pk_live_')}", BAD, BAD
    ),
    "revoked key": WellFormed(lambda keys: f"Bearer {keys.revoked}", REVOKED, REVOKED),
    "revoked key, wrong secret": WellFormed(
        lambda keys: f"Bearer {keys.revoked.rpartition('.')[0]}.{new_secret()}", BAD, BAD
    ),
    "revoked key under pk_test_": WellFormed(
        lambda keys: f"Bearer {keys.revoked.replace('pk_live_', 'pk_test_')}", BAD, BAD
    ),
}


def expected(state: str, credential: str) -> str | None:
    """Return the code for a partner's state and a credential; None: admitted."""
    if credential == "no header":
        return "auth_missing"
    if credential in MALFORMED:
        return FORMAT
    if state == "unknown":
        return "auth_unknown_partner"
    if state in {"pending", "declined"}:
        return "auth_partner_not_approved"
    row = WELL_FORMED[credential]
    return row.revoked if state == "revoked" else row.approved


def header_of(credential: str, keys: Keys) -> str | bytes | None:
    """Return the Authorization header, or None for no header."""
    if credential == "no header":
        return None
    if credential in MALFORMED:
        return MALFORMED[credential](keys)
    return WELL_FORMED[credential].header(keys)


CREDENTIALS: Final = ("no header", *MALFORMED, *WELL_FORMED)


async def keys_of(world: World, state: str) -> Keys:
    """Create a partner in a state; a state without keys gets made-up ones."""
    commands = world.service.partners
    foreign = (await world.partner()).keys["live"]
    if state in {"approved", "revoked"}:
        partner = await world.partner()
        gone = await commands.issue_key(partner.partner_id, "live", STAFF)
        await commands.revoke_key(partner.partner_id, gone.key_id, STAFF)
        if state == "revoked":
            await commands.revoke(partner.partner_id, STAFF)
        keys = partner.keys
        return Keys(partner.partner_id, keys["live"], keys["test"], gone.token, foreign)
    partner_id = "ptn_none"
    if state != "unknown":
        partner_id = await commands.add("Partner", "partner@example.com", STAFF)
    if state == "declined":
        await commands.decline(partner_id, STAFF)
    live, test, gone = (
        f"pk_{mode}_{partner_id}.key_{number}.{new_secret()}"
        for number, mode in enumerate(("live", "test", "live"))
    )
    return Keys(partner_id, live, test, gone, foreign)
