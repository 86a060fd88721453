"""From facts about entities and connections to the rows that access is decided on."""

from collections.abc import Iterable

from service.facts.connections import EntityConnected, EntityDisconnected
from service.facts.entities import EntityCorrected, EntityRegistered, StageMailsChosen
from service.facts.onboardings import OnboardingCompleted
from service.facts.privacy import PersonalDataErased
from service.ledger.events import ERASED, Recorded
from service.ledger.projector import Projector, Table, Update, Write
from service.ledger.service_keys import lookup_bytes
from service.ledger.sql import queries

_SQL = queries("projections.connections")

ENTITIES = Table(
    "entities",
    """
    entity_id text, stream_id uuid, name text, email_hash bytea, company_number_hash bytea,
    established boolean, registered_at timestamptz
    """,
)
CONNECTIONS = Table(
    "connections",
    """
    partner_id text, entity_id text, version bigint, connected_at timestamptz,
    disconnected_at timestamptz
    """,
    replaces="partner_id, entity_id",
)


class ConnectionsProjector(Projector):
    """Tables `entities` and `connections`."""

    name = "connections"
    version = 1
    tables = (ENTITIES, CONNECTIONS)
    topics = (
        EntityRegistered,
        EntityCorrected,
        OnboardingCompleted,
        EntityConnected,
        EntityDisconnected,
        StageMailsChosen,
        PersonalDataErased,
    )
    reads_personal = True

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes."""
        at = recorded.meta.at
        match recorded.event:
            case EntityRegistered() as event:
                yield ENTITIES.new(
                    event,
                    stream_id=recorded.stream_id,
                    name=event.name or ERASED,
                    email_hash=lookup_bytes(event.email_hash),
                    company_number_hash=lookup_bytes(event.company_number_hash),
                    registered_at=at,
                )
            case EntityCorrected() as event:
                number = lookup_bytes(event.company_number_hash)
                row = (event.entity_id, event.name or ERASED, number)
                yield Update(ENTITIES, _SQL.correct_entity, row)
            case OnboardingCompleted(entity_id=entity_id):
                yield Update(ENTITIES, _SQL.establish, (entity_id,))
            case EntityConnected() as event if recorded.version == 1:
                yield CONNECTIONS.new(event, version=1, connected_at=at, disconnected_at=None)
            case EntityConnected() as event:
                row = (event.partner_id, event.entity_id, recorded.version, at)
                yield Update(CONNECTIONS, _SQL.connect, row)
            case EntityDisconnected() as event:
                row = (event.partner_id, event.entity_id, recorded.version, at)
                yield Update(CONNECTIONS, _SQL.disconnect, row)
            case StageMailsChosen() as event:
                row = (event.entity_id, event.wanted)
                yield Update(ENTITIES, _SQL.choose_stage_mails, row)
            case PersonalDataErased(subject=subject):
                yield Update(ENTITIES, _SQL.erase_entity, (subject, ERASED))
            case _:
                pass
