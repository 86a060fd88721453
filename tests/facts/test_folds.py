"""Folds refuse facts of other streams: whoever put one there must not be overlooked."""

from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

import pytest

from service.facts import passkeys, reviews
from service.facts.partners import PartnerRevoked
from service.ledger.events import Meta, Recorded

META = Meta(datetime(2026, 3, 1, tzinfo=UTC), "team", "req_1", "live")
FOREIGN = Recorded(1, uuid4(), 1, PartnerRevoked(partner_id="ptn_1"), META)
FOLDS = {"passkeys": partial(passkeys.fold, passkeys.Passkeys()), "reviews": reviews.fold}


@pytest.mark.parametrize("fold", FOLDS.values(), ids=FOLDS)
def test_a_foreign_fact_is_refused(fold):
    """By its name."""
    with pytest.raises(TypeError, match="PartnerRevoked is not a fact about"):
        fold([FOREIGN])
