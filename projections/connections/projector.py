"""From facts about entities and connections to the rows that access is decided on."""

from collections.abc import Iterable
from typing import ClassVar

from service.connections.events import EntityConnected, EntityDisconnected
from service.entities.events import EntityCorrected, EntityRegistered
from service.ledger.events import ERASED, Event, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import Sql
from service.onboardings.events import OnboardingCompleted
from service.privacy.events import PersonalDataErased

_INSERT_ENTITY = Sql("projections.connections", "insert_entity")
_CORRECT = Sql("projections.connections", "correct_entity")
_ESTABLISH = Sql("projections.connections", "establish")
_CONNECT = Sql("projections.connections", "connect")
_DISCONNECT = Sql("projections.connections", "disconnect")
_ERASE_ENTITY = Sql("projections.connections", "erase_entity")


class ConnectionsProjector:
    """Tables `entities` and `connections`."""

    name = "connections"
    version = 1
    tables: ClassVar[tuple[str, ...]] = ("entities", "connections")
    topics: ClassVar[tuple[type[Event], ...]] = (
        EntityRegistered,
        EntityCorrected,
        OnboardingCompleted,
        EntityConnected,
        EntityDisconnected,
        PersonalDataErased,
    )
    reads_personal = True

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Answer what this event changes."""
        at = recorded.meta.at
        match recorded.event:
            case EntityRegistered() as event:
                yield Write(
                    _INSERT_ENTITY,
                    (
                        event.entity_id,
                        recorded.stream_id,
                        event.name or ERASED,
                        _bytes(event.email_hash),
                        _bytes(event.company_number_hash),
                        event.established,
                        at,
                    ),
                )
            case EntityCorrected() as event:
                number = _bytes(event.company_number_hash)
                yield Write(_CORRECT, (event.entity_id, event.name or ERASED, number))
            case OnboardingCompleted(entity_id=entity_id):
                yield Write(_ESTABLISH, (entity_id,))
            case EntityConnected() as event:
                yield Write(_CONNECT, (event.partner_id, event.entity_id, recorded.version, at))
            case EntityDisconnected() as event:
                yield Write(_DISCONNECT, (event.partner_id, event.entity_id, recorded.version, at))
            case PersonalDataErased(subject=subject):
                yield Write(_ERASE_ENTITY, (subject, ERASED))
            case _:
                pass


def _bytes(hexadecimal: str | None) -> bytes | None:
    return None if hexadecimal is None else bytes.fromhex(hexadecimal)
