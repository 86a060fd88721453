"""The team's review of a partner: what it looked at, a note of its own, and who decided."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from service.core.errors import Refusal
from service.facts.partners import Partner, partner_stream
from service.facts.reviews import CHECKS, PartnerReviewed, Review, fold, review_stream
from service.ledger.events import Cause
from service.ledger.ledger import Ledger
from service.ledger.transaction import Transaction
from service.ledger.writing import Append
from service.partners.past import PAST, Decision
from service.partners.personal import personal_key


class Reviewed(NamedTuple):
    """A partner, its review, and the decisions on it, oldest first."""

    partner: Partner
    review: Review
    decisions: Sequence[Decision]


@dataclass(frozen=True, slots=True)
class PartnerReviews:
    """Reads and writes the ledger of accounts."""

    accounts: Ledger

    async def look(self, partner_id: str, version: int | None = None) -> Reviewed:
        """Return a partner and its review as their streams have them, personal fields opened.

        The review as it was at a version, if one is given.
        """
        past = await self.accounts.fold(partner_stream(partner_id), PAST)
        reviews = await self.accounts.read(review_stream(partner_id))
        review = fold(one for one in reviews if version is None or one.version <= version)
        return Reviewed(past.partner, review, past.decisions)

    async def save(
        self, partner_id: str, checks: Collection[str], note: str, version: int, cause: Cause
    ) -> None:
        """Record what the team has looked at, and its note; the same again changes nothing.

        Refuses with `form_outdated` where somebody has saved since `version`, whose note would
        be lost, and with `partner_state` where the partner's data was erased.
        """
        stream = review_stream(partner_id)

        async def attempt(transaction: Transaction) -> None:
            known = fold(await transaction.read(stream))
            ticked = [check for check in CHECKS if check in checks]
            if (set(known.checks), known.note or "") == (set(ticked), note):
                return
            if known.version != version:
                raise Refusal("form_outdated")
            event = PartnerReviewed(partner_id=partner_id, checks=ticked, note=note or None)
            key = await personal_key(transaction, partner_id, [event])
            await transaction.append(Append(stream, known.version, [event], cause, key))

        await self.accounts.decide(attempt)
