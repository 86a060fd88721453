"""From facts about entities and connections to the rows that access is decided on."""

from collections.abc import Iterable
from typing import ClassVar

from service.facts.connections import EntityConnected, EntityDisconnected
from service.facts.entities import EntityCorrected, EntityRegistered
from service.facts.onboardings import OnboardingCompleted
from service.facts.privacy import PersonalDataErased
from service.ledger.events import ERASED, Event, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import queries

_SQL = queries("projections.connections")


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
        """Return what this event changes."""
        at = recorded.meta.at
        match recorded.event:
            case EntityRegistered() as event:
                yield Write(
                    _SQL.insert_entity,
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
                yield Write(_SQL.correct_entity, (event.entity_id, event.name or ERASED, number))
            case OnboardingCompleted(entity_id=entity_id):
                yield Write(_SQL.establish, (entity_id,))
            case EntityConnected() as event:
                yield Write(_SQL.connect, (event.partner_id, event.entity_id, recorded.version, at))
            case EntityDisconnected() as event:
                yield Write(
                    _SQL.disconnect, (event.partner_id, event.entity_id, recorded.version, at)
                )
            case PersonalDataErased(subject=subject):
                yield Write(_SQL.erase_entity, (subject, ERASED))
            case _:
                pass


def _bytes(hexadecimal: str | None) -> bytes | None:
    return None if hexadecimal is None else bytes.fromhex(hexadecimal)
