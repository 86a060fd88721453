"""The team's side of a service with personal data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.app.bootstrap import Service
from service.facts.caller import Mode
from service.ledger.sequencer import Sequencer
from service.privacy.erase import Erased, erase_alone, erase_claim, erase_entity
from service.privacy.erasure_list import ErasureList
from service.privacy.erasure_subjects import Subject
from service.privacy.find import Place, Search
from service.privacy.reapply import Parts
from service.privacy.text_search import Sought
from tests.document_store import Documents
from tests.progress import Shown
from tests.world import STAFF


@dataclass
class Privacy:
    """The team's side of one service: erasing, finding, numbering."""

    documents: Documents
    published: Path
    takes_without_mac: bool = False

    @property
    def service(self) -> Service:
        """The service's parts."""
        return self.documents.world.service

    @property
    def listed(self) -> ErasureList:
        """The erasure list outside the database."""
        assert self.service.archive is not None
        secrets = self.service.secrets.get
        return ErasureList(self.service.archive, secrets, takes_without_mac=self.takes_without_mac)

    def parts(self, mode: Mode = "live") -> Parts:
        """The parts that an erasure in one mode needs."""
        return self.service.privacy(self.listed)[mode]

    async def claim(self, claim_id: str, mode: Mode = "live") -> Subject:
        """Return a claim as a subject."""
        subject = await self.parts(mode).subjects.claim(claim_id)
        assert subject is not None
        return subject

    async def erase_claim(self, claim_id: str, reason: str = "case 1", **more: Any) -> Erased:
        """Erase a claim."""
        mode = more.get("mode", "live")
        return await erase_claim(self.parts(mode), await self.claim(claim_id, mode), reason, STAFF)

    async def erase_entity(
        self, entity_id: str, reason: str = "case 1", *, with_claims: bool = False
    ) -> Erased:
        """Erase an entity."""
        subject = await self.parts().subjects.entity(entity_id)
        assert subject is not None
        return await erase_entity(
            self.parts(), subject, reason, STAFF, Shown(), with_claims=with_claims
        )

    async def erase_link(self, link_id: str, reason: str = "case 1") -> Erased:
        """Erase a connect link."""
        subject = await self.parts().subjects.link(link_id)
        assert subject is not None
        return await erase_alone(self.parts(), subject, reason, STAFF)

    async def found(self, email: str) -> list[Place]:
        """Return the places of an address in every ledger."""
        secrets = await self.service.secrets.get()
        sought = Sought(email, secrets.lookup_email(email))
        return [
            place
            for ledger in self.service.ledgers
            async for place in Search(ledger, sought).places(lambda _steps: None)
        ]

    async def number(self) -> None:
        """Number waiting events."""
        for ledger in self.service.ledgers:
            sequencer = Sequencer(ledger)
            while (await sequencer.lag()).waiting:
                await sequencer.step()
