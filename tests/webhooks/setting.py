"""A service that follows nothing by itself, a partner with endpoints, and a receiver in memory."""

from collections import Counter
from datetime import timedelta

import msgspec

from service.core.clock import system_clock
from service.facts.claims import STAGES, ClaimCreated, ClaimStageChanged, claim_stream
from service.facts.connections import (
    ConnectLinkRedeemed,
    EntityConnected,
    EntityDisconnected,
    connection_stream,
    link_stream,
)
from service.ledger.following.runner import Subscription
from service.ledger.sql import Sql
from service.ledger.writing import Append
from service.webhooks.deliveries import DeliveryParts
from service.webhooks.dispatcher import Dispatcher
from service.webhooks.messages import Messages
from service.webhooks.sender import EndpointAnswer, Undelivered
from service.webhooks.shared_pool import SharedPool
from service.webhooks.targets import Targets
from tests.ledger.samples import CAUSE
from tests.numbering import number

_OLDER = [
    Sql(
        "older",
        "Lets rows be older.",
        f"update ledger.{table} set "  # noqa: S608 - ours
        + ", ".join(f"{column} = {column} - $1::interval" for column in columns),
    )
    for table, columns in (
        ("webhook_queues", ("failing_since", "waits_until")),
        ("webhook_deliveries", ("noted_at", "next_attempt_at")),
        ("webhook_log", ("delivered_at",)),
    )
]
URL, OTHER = "https://example.com/hooks", "https://other.example.com/"
HOUR = timedelta(hours=1)


class Sink:
    """What endpoints take: everything, unless a URL or a subject was told to answer otherwise.

    An event without a subject goes by its type.
    """

    def __init__(self):
        self.taken, self.sent = [], []
        self.tried = Counter()
        self.answers = {}

    async def post(self, url, headers, body, _now):
        """Take a message, or answer as told; None: no answer."""
        event = msgspec.json.decode(body)
        subject = event.get("subject", event["type"])
        self.tried[url, subject] += 1
        self.sent.append((url, headers, body))
        for key in (url, subject):
            if key in self.answers:
                answer = self.answers[key]
                if callable(answer):
                    return await answer()
                if answer is None:
                    raise Undelivered("no connection")
                return answer
        self.taken.append((url, subject, headers["webhook-id"]))
        return EndpointAnswer(200)


class Setting:
    """One mode of a service, its clock in the test's hands."""

    def __init__(self, service, mode="live"):
        self.service, self.mode = service, service.modes[mode]
        self.name, self.ledger = mode, self.mode.ledger
        self.now = system_clock()
        service.clock = lambda: self.now  # of subscribers, which are made when they are asked for
        self.sink = Sink()
        self.commands, self.queues = service.endpoints, service.webhook_queues
        self.dispatcher = Dispatcher(
            DeliveryParts(
                SharedPool(self.ledger.database),
                Messages(self.mode.partner_events, "https://api.example.com", mode),
                Targets(service.endpoint_list, service.accounts, mode),
                service.endpoints,
                service.secrets.get,
                self.sink.post,
                lambda: self.now,
            )
        )

    async def approved(self, name="Partner"):
        """Return the id of an approved partner."""
        partner_id = await self.service.partners.add(name, f"{name}@example.com", CAUSE)
        await self.service.partners.approve(partner_id, CAUSE)
        return partner_id

    async def endpoint(self, partner_id, url=URL, types=()):
        """Add an endpoint, and return its id."""
        endpoint_id = self.commands.new_endpoint_id()
        await self.commands.add(partner_id, endpoint_id, self.name, url, types, CAUSE)
        await self.follow()
        return endpoint_id

    async def subscribed(self, **endpoint):
        """Return the ids of an approved partner and of its endpoint."""
        partner_id = await self.approved()
        return partner_id, await self.endpoint(partner_id, **endpoint)

    async def claims(self, partner_id, *names, stages=0):
        """Create claims, each moved through so many stages."""
        appends = []
        for name in names:
            claim_id = f"clm_{name}"
            stream = claim_stream(self.name, 0, partner_id, "ent_1", claim_id)
            events = [ClaimCreated(claim_id, partner_id, "ent_1", claim_id, "fingerprint")]
            events += [
                ClaimStageChanged(claim_id=claim_id, stage=stage)
                for stage in STAGES[1 : stages + 1]
            ]
            appends.append(Append(stream, 0, events, CAUSE))
        async with self.ledger.transaction() as transaction:
            await transaction.append(*appends)
        await self.follow()

    async def connection(self, partner_id, entity_id, *links, ends=True):
        """Connect a business, by links or (None) by the team, and disconnect it after each."""
        stream = connection_stream(self.name, partner_id, entity_id)
        for link in links:
            connected = EntityConnected(partner_id, entity_id, "staff")
            redeemed = []
            if link is not None:
                connected = EntityConnected(partner_id, entity_id, "connect_link", link)
                events = [ConnectLinkRedeemed(link, partner_id, entity_id)]
                redeemed = [Append(link_stream(self.name, link), 0, events, CAUSE)]
            events = [connected, EntityDisconnected(partner_id, entity_id)][: 1 + ends]
            async with self.ledger.transaction() as transaction:
                known = len(await transaction.read(stream))
                await transaction.append(*redeemed, Append(stream, known, events, CAUSE))
        await self.follow()

    async def moved(self, name, partner_id):
        """Move a claim on to another stage."""
        stream = claim_stream(self.name, 0, partner_id, "ent_1", f"clm_{name}")
        async with self.ledger.transaction() as transaction:
            known = await transaction.read(stream)
            stage = STAGES[len(known)]
            event = ClaimStageChanged(claim_id=f"clm_{name}", stage=stage)
            await transaction.append(Append(stream, len(known), [event], CAUSE))
        await self.follow()

    async def follow(self):
        """Number what was written, and bring everything up to date but deliveries."""
        for ledger in (self.service.accounts, self.ledger):
            await number(ledger)
        accounts = self.service.parked_by("accounts", "webhooks")
        for ledger, one in (
            (self.service.accounts, accounts),
            (self.ledger, self.service.parked_by(self.name, "partner_events")),
        ):
            while await Subscription(ledger, one).step():
                pass
        self.now = max(self.now, system_clock())

    async def serve(self):
        """Deliver until nothing is due."""
        self.now = max(self.now, system_clock())
        while True:
            await self.dispatcher.step()
            if not self.dispatcher.is_busy:
                return
            await self.dispatcher.idle()

    async def pass_time(self, total, step):
        """Let time pass in steps, delivering what is due after each."""
        passed = timedelta()
        while passed < total:
            await self.grow_old(step)
            passed += step
            await self.serve()

    async def grow_old(self, by):
        """Let what is kept be so much older: a clock that is only ahead gives nothing up."""
        for statement in _OLDER:
            await self.ledger.database.writes.fetch(statement, by)

    async def state(self, partner_id, endpoint_id):
        """Return why an endpoint is disabled, None if it is enabled."""
        rows = await self.service.endpoint_list.of(partner_id)
        return next(row["disabled"] for row in rows if row["endpoint_id"] == endpoint_id)


def taken(one, url=URL):
    """Return what an endpoint took."""
    return [subject for place, subject, _ in one.sink.taken if place == url]
