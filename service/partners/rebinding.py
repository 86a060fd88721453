"""Keys whose hashes cover their secrets alone: bound to their whole tokens when they are used."""

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
    """What authentication does with a hash of version 1: once for each key, it becomes one of 2."""

    partners: PartnerCommands
    _under_way: dict[str, asyncio.Task[None]] = field(default_factory=dict, init=False)

    async def begin(self, token: Token, cause: Cause) -> None:
        """Bind the hash of a key beside what goes on; where that fails, the next use tries again.

        Not before the log says that its events are bound: processes of the release before may run,
        which read version 1 alone.
        """
        binding = await self.partners.accounts.binding()
        if binding.boundaries and token.key_id not in self._under_way:
            task = self._under_way[token.key_id] = asyncio.create_task(self._bind(token, cause))
            task.add_done_callback(lambda _: self._under_way.pop(token.key_id))

    async def _bind(self, token: Token, cause: Cause) -> None:
        with suppress(LedgerError, Refusal):
            await self.partners.rebind_key(token, cause)
