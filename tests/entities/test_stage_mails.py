"""How often somebody chooses whether to be told of stages, and what each choice costs."""

import pytest

from service.core.errors import Refusal
from service.facts import changes
from service.ledger.events import Cause
from tests.ledger.decoded import decoded


async def test_stage_mails_are_chosen_so_often_in_a_day(in_memory, monkeypatch):
    """Whoever has had enough of them can always say so; and no choice costs what others did."""
    entities, entity_id = in_memory.service.modes["live"].entities, await in_memory.entity()
    own = Cause(f"customer:{entity_id}", "req_1")
    monkeypatch.setattr(changes, "CHANGES_MAX", 21)
    await entities.choose_stage_mails(entity_id, own, wanted=False)  # is so, and changes nothing
    for number in range(21):
        with decoded() as topics:
            await entities.choose_stage_mails(entity_id, own, wanted=not number % 2)
        assert len(topics) <= 1
    await entities.choose_stage_mails(entity_id, own, wanted=True)  # is so
    await entities.choose_stage_mails(entity_id, own, wanted=False)
    with pytest.raises(Refusal, match="rate_limited"):
        await entities.choose_stage_mails(entity_id, own, wanted=True)
    with pytest.raises(Refusal, match="entity_not_found"):
        await entities.choose_stage_mails("ent_unknown", own, wanted=True)
