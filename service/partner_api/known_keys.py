"""The API keys that were good when they were last used, so that others' failures cannot stop them.

Only a hint: whoever presents one is authenticated as everybody is.
"""

import hashlib
import hmac
import secrets
from collections import OrderedDict
from typing import Final

from service.core.errors import Refusal
from service.partners.keys import parse_authorization

KEYS_MAX: Final = 20_000
"""About 4 MB. A key that was pushed out is known again after its next use."""
DIGEST_BYTES: Final = 16
_NO_DIGEST: Final = bytes(DIGEST_BYTES)


class KnownKeys:
    """Remembers keys by their ids, each with a digest of its whole token."""

    def __init__(self, keys_max: int = KEYS_MAX) -> None:
        """Begin empty; at most `keys_max` are remembered."""
        self._keys_max = keys_max
        # Of this process alone, so that nothing in memory tells a guess from a key elsewhere.
        self._salt = secrets.token_bytes(16)
        self._digests: OrderedDict[str, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._digests)

    def remember(self, key_id: str, authorization: str) -> None:
        """Note that a header with this key was good."""
        if key_id in self._digests:  # a key has one secret: its digest stays the same
            return
        if len(self._digests) >= self._keys_max:
            self._digests.popitem(last=False)
        self._digests[key_id] = self._digest(authorization)

    def knows(self, authorization: str | None) -> bool:
        """Return whether a header is one that was good; as much work whether its key is known."""
        try:
            token = parse_authorization(authorization)
        except Refusal:
            return False
        assert authorization is not None  # noqa: S101 - it was parsed
        known = self._digests.get(token.key_id)
        digest = self._digest(authorization)
        return hmac.compare_digest(known or _NO_DIGEST, digest) and known is not None

    def forget(self, key_id: str) -> None:
        """Forget a key that is good no longer: it was revoked, or its partner was."""
        self._digests.pop(key_id, None)

    def _digest(self, authorization: str) -> bytes:
        # "Bearer" is read in any case and with spaces: what counts is the token.
        token = authorization.partition(" ")[2].strip(" ")
        return hashlib.blake2b(token.encode(), digest_size=DIGEST_BYTES, key=self._salt).digest()
