"""Keys whose hashes cover their secrets alone: checked by the log, and bound when they are used."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from service.core.errors import Refusal
from service.ledger.database import LedgerError
from service.ledger.events import Cause
from service.partners.commands import PartnerCommands
from service.partners.keys import Token


@dataclass(frozen=True, slots=True)
class KeyRebinding:
    """What authentication does with a hash of version 1, which would be of use in another row.

    Once for each key: afterwards its hash is of version 2.
    """

    partners: PartnerCommands
    _under_way: dict[str, asyncio.Task[None]] = field(default_factory=dict, init=False)

    async def check(self, token: Token, cause: Cause) -> None:
        """Raise Refusal `auth_bad_secret` unless the log says that this very key was issued.

        Its hash is then bound beside what goes on; where that fails, the next use tries again.
        Before the log says that its events are bound, nothing can be known, and processes of the
        release before may run, which read version 1 alone.
        """
        binding = await self.partners.accounts.binding()
        if not binding.boundaries:
            return
        if not await self.partners.has_issued(token):
            raise Refusal("auth_bad_secret")
        if token.key_id not in self._under_way:
            task = self._under_way[token.key_id] = asyncio.create_task(self._bind(token, cause))
            task.add_done_callback(lambda _: self._under_way.pop(token.key_id))

    async def _bind(self, token: Token, cause: Cause) -> None:
        with suppress(LedgerError):
            await self.partners.rebind_key(token, cause)
