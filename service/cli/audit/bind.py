"""`claim-ledger audit bind`: from here on, every event has a MAC of the key that signs now."""

from service.cli.faults import one_line
from service.cli.options import ledger_option
from service.cli.target import Target, team_command
from service.cli.verdict import Fields, Findings, Fine
from service.core.clock import timestamp
from service.evidence.binding import BindingRefused, bind_events
from service.facts.caller import LEDGERS


@team_command
@ledger_option
async def bind(target: Target, ledger: str | None) -> Fields:
    """Record in each log that every later event has a MAC by the event key that signs now.

    What has none, or one of an earlier key, is set aside from then on. For an installation that is
    older than the MACs, once every process of the release before has ended; and after
    `keys-at-rest rotate-event-key`, once the new key signs: before that it retires none, and exits
    with 1. Refused while events come without one. It waits until the transactions have ended that
    were open, and exits with 1 if one stays so: then end it, and repeat this. First make sure that
    every process opens the new key (`ClaimLedgerEventKeyNotOpened` is silent on every server): one
    that does not can write nothing afterwards.
    """
    rows: list[Fields] = []
    for name in [ledger] if ledger else LEDGERS:
        with one_line(BindingRefused):
            is_new = await bind_events(target.service.ledger(name), target.cause)
        rows.append({"ledger": name, "is_bound": True, "is_new": is_new})
    answer = {"ledgers": rows}
    waiting = await target.service.secrets.next_event_key()
    if waiting is not None:
        key_id, signs_from = waiting
        return Findings(
            answer | {"waits_for_event_key": key_id, "signs_from": signs_from},
            f"event key {key_id} does not sign before {timestamp(signs_from)}, and no earlier one "
            "is retired until it does: repeat this a quarter of an hour after that",
        )
    fresh = [row["ledger"] for row in rows if row["is_new"]]
    return Fine(
        answer,
        f"later events of {', '.join(fresh)} need a MAC of the key that signs now"
        if fresh
        else "nothing to do: later events already need a MAC of the key that signs now",
    )
