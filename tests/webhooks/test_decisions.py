"""What may happen to endpoints: each decision, on every state that makes a difference."""

import pytest

from service.core.errors import Refusal
from service.facts.endpoints import (
    EndpointAdded,
    EndpointChanged,
    EndpointDisabled,
    EndpointEnabled,
    EndpointRemoved,
    Endpoints,
    EndpointSecretRotated,
    fold,
)
from service.facts.partners import PartnerApproved
from service.webhooks import decisions
from service.webhooks.decisions import ENDPOINTS_MAX
from tests.tables import every_row

URL, OTHER = "https://example.com/", "https://other.example.com/"
ADDED = EndpointAdded("ptn", "whe", "live", 7, URL, ("claim.created",))
DISABLED = EndpointDisabled("ptn", "whe", "gone")
MOVED = EndpointChanged("ptn", "whe", OTHER, ())
ONE = {"endpoint_id": "whe"}


def test_each_decision_makes_its_fact_or_none():
    """Asking again changes nothing; what was removed is not there."""
    new = {"mode": "live", "url": URL, "types": ["claim.created"], "after": 7}
    other = {"url": OTHER, "types": []}
    rows = [
        ([], decisions.add, new, [ADDED]),
        ([ADDED], decisions.add, new, []),
        ([ADDED], decisions.change, other, [MOVED]),
        ([ADDED], decisions.change, {"url": URL, "types": ["claim.created"]}, []),
        ([ADDED, MOVED], decisions.change, other | {"expected_version": 1}, []),
        ([ADDED, DISABLED], decisions.change, other | {"expected_version": 1}, [MOVED]),
        ([ADDED], decisions.rotate, {"version": 2}, [EndpointSecretRotated("ptn", "whe", 2)]),
        ([ADDED], decisions.rotate, {"version": 1}, []),
        ([ADDED], decisions.rotate, {"version": 3}, []),
        ([ADDED], decisions.disable, {"reason": "gone"}, [DISABLED]),
        ([ADDED, DISABLED], decisions.disable, {"reason": "failing"}, []),
        ([], decisions.disable, {"reason": "failing"}, []),
        ([ADDED, DISABLED], decisions.enable, {}, [EndpointEnabled("ptn", "whe")]),
        ([ADDED, DISABLED, EndpointEnabled("ptn", "whe")], decisions.enable, {}, []),
        ([ADDED], decisions.remove, {}, [EndpointRemoved("ptn", "whe")]),
        ([ADDED, EndpointRemoved("ptn", "whe")], decisions.remove, {}, []),
        ([ADDED, EndpointRemoved("ptn", "whe")], decisions.add, new, []),
    ]
    with every_row() as row:
        for past, decide, given, expected in rows:
            with row(decide.__name__, len(past), given):
                assert decide(fold(past), "ptn", **ONE, **given) == expected
        for decide, given in (
            (decisions.change, other),
            (decisions.rotate, {"version": 2}),
            (decisions.enable, {}),
        ):
            with row("unknown", decide.__name__), pytest.raises(Refusal, match="endpoint_not"):
                decide(fold([]), "ptn", **ONE, **given)


def test_what_was_changed_meanwhile_is_not_undone():
    """By a change of that endpoint; one of another, or another deed, is none."""
    another = EndpointAdded("ptn", "whe_2", "live", 7, URL)
    past = [another, ADDED, MOVED, EndpointChanged("ptn", "whe_2", OTHER), DISABLED]
    known, change = fold(past), {"url": URL, "types": []}
    for version in (2, 4, 5, -1):
        with pytest.raises(Refusal, match="form_outdated"):
            decisions.change(known, "ptn", **ONE, **change, expected_version=version)
    expected = [EndpointChanged("ptn", "whe", URL, ())]
    for version in (3, None):
        given = decisions.change(known, "ptn", **ONE, **change, expected_version=version)
        assert given == expected


def test_the_limit_is_of_each_mode():
    """What was removed makes room."""
    full = [EndpointAdded("ptn", f"whe_{nr}", "live", 0, URL) for nr in range(ENDPOINTS_MAX)]
    new = {"url": URL, "types": [], "after": 0}
    with pytest.raises(Refusal, match="limit_reached"):
        decisions.add(fold(full), "ptn", **ONE, mode="live", **new)
    assert decisions.add(fold(full), "ptn", **ONE, mode="test", **new)
    removed = fold([*full, EndpointRemoved("ptn", "whe_0")])
    assert decisions.add(removed, "ptn", **ONE, mode="live", **new)


def test_the_state_is_what_the_facts_say():
    """In their order; another noun's fact is none of them."""
    past = [ADDED, MOVED, EndpointSecretRotated("ptn", "whe", 2), DISABLED]
    one = fold(past).by_id["whe"]
    assert (one.url, one.types, one.secret_version, one.disabled) == (OTHER, (), 2, "gone")
    assert fold([]) == Endpoints()
    assert fold(past).version == 4
    with pytest.raises(TypeError):
        fold([PartnerApproved("ptn")])
