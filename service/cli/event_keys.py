"""`claim-ledger keys-at-rest rotate-event-key`: the key that binds events from now on."""

from service.cli.faults import one_line
from service.cli.target import Target, team_command
from service.cli.verdict import Fields
from service.core.clock import timestamp
from service.evidence.event_keys import draw_event_key
from service.ledger.service_keys import EventKeyRefused


@team_command
async def rotate_event_key(target: Target) -> Fields:
    """Draw a new key for the MACs of events, while the service runs.

    It signs five minutes later, when every process has read it. Events of the keys before it stay
    valid. `EventKeyAdded` in the log of accounts says who drew it. Only once every process is of
    this release: an older one would set its events aside.
    """
    with one_line(EventKeyRefused):
        key_id, signs_from = await draw_event_key(
            target.service.accounts, target.service.secrets, target.cause
        )
    return {"event_key": key_id, "signs_from": timestamp(signs_from)}
