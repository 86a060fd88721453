"""An installation with every kind of content: long names, many keys, every state."""

from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import httpx
import psycopg

from service.app.bootstrap import Service
from service.claims.decisions import STAGES
from service.onboardings.commands import PURPOSE
from tests.pages.site import Site
from tests.patience import until
from tests.sessions import BROWSER, session_of
from tests.world import STAFF, claim_body

LONG = "Wolstenholme-Featherstonehaugh & Partners Chartered Bookkeeping Associates (Holdings) Ltd"
PEOPLE = {
    "owner": "a.very.long.address.of.an.owner@accounts.subsidiary.example.com",
    "single": "single@example.com",
    "stranger": "stranger@example.com",
    "developer": "developer@example.com",
    "newcomer": "newcomer@example.com",
    "pending": "pending@example.com",
    "declined": "declined@example.com",
    "lonely": "lonely@example.com",
    "staff": "team@example.com",
}
"""Who visits, by their part: what they see follows from it."""


class Visited(NamedTuple):
    """The result of a shot of the gallery."""

    url: str
    title: str


class Filled:
    """The content by name, from which the pages' paths are made."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.visited: dict[str, Visited] = {}
        self.number = 0
        self.partner, self.key = site.partner(LONG)
        self.other, self.other_key = site.partner("Ledger Books")
        self.quiet, self.quiet_key = site.partner("Quiet Partner")
        self.entity = site.entity(PEOPLE["owner"], "Bakery " + "of many words " * 5)
        self.second = site.entity(PEOPLE["owner"], "Grocery", another=True)
        self.alone = site.entity(PEOPLE["owner"], "Workshop", another=True)
        self.single = site.entity(PEOPLE["single"], "Florist")
        site.do(self._people)
        for key, entity in ((self.key, self.entity), (self.key, self.second)):
            self._connect(key, entity)
        self._connect(self.other_key, self.entity)
        self._connect(self.quiet_key, self.entity)
        site.do(
            lambda service: service.modes["live"].connections.disconnect(
                self.entity, self.other, STAFF
            )
        )
        self.claims = [self._claim(number) for number in range(8)]
        self._calls_that_fail()
        site.do(self._move)
        self.request, self.faulty_request = self._noted(404), self._noted(400)
        self._long_call()
        self.claim, self.link = self.claims[0], self._redeemed()
        self.endpoint = site.do(self._endpoint)
        self._deliveries()

    def page_of(self, who: str | None, **options: Any) -> Any:
        """Return a page, signed in as one of PEOPLE."""
        page = self.site.visitor(**options)
        if who is not None:
            self.site.sign_in(page, PEOPLE[who])
        return page

    def connect_link(self, key: str = "", **more: Any) -> str:
        """Return the path of a fresh connect link, of the partner who has the key."""
        body = {"partner_user_id": f"user-{self._next()}"} | more
        return _path(
            self.site.api(key or self.key, "POST", "/connect-requests", json=body), "connect_url"
        )

    def expired_link(self) -> str:
        """Return the path of an expired link."""
        path = self.connect_link()
        # The clock of a served installation is the real one: the row is turned back instead.
        with psycopg.connect(self.site.database_url, autocommit=True) as connection:
            connection.execute(
                "update live.connect_links set expires_at = now() - interval '1 minute' where"
                " token_hash = sha256(convert_to(%s, 'UTF8'))",
                [path.rpartition("/")[2]],
            )
        return path

    def onboarding_link(self, **more: Any) -> str:
        """Return the path of a fresh magic link, as it is mailed."""
        number = self._next()
        body = {
            "partner_user_id": f"onboarded-{number}",
            "company_name": "Bakry",
            "user_email": f"baker{number}@example.com",
            "company_number": f"{number:08}",
            "address": {"first_line": "1 Example Street", "postcode": "AB1 2CD"},
        } | more
        answer = self.site.api(self.key, "POST", "/onboardings", json=body)
        assert answer.is_success, answer.text
        secrets = self.site.do(lambda service: service.secrets.get())
        return f"/onboarding/{secrets.link_token(PURPOSE, answer.json()['onboarding_id'])}"

    def returned_link(self) -> str:
        """Return the path of a magic link that its partner got, who has no website."""
        self.site.do(
            lambda service: service.partners.change_settings(self.other, STAFF, return_link=True)
        )
        body = {"company_name": "Bakery", "user_email": self.site.mailbox()}
        body |= {"partner_user_id": f"returned-{self._next()}"}
        return _path(
            self.site.api(self.other_key, "POST", "/onboardings", json=body), "magic_link_url"
        )

    def sign_in_link(self, email: str) -> str:
        """Return the path of a link to sign in."""
        self.site.do(lambda service: service.sign_in.ask(email, "/account", BROWSER))
        return self.site.mailed_link(email, "sign-in").removeprefix(self.site.url)

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _connect(self, key: str, entity_id: str) -> None:
        body = {"partner_user_id": f"user-{self._next()}"}
        path = _path(self.site.api(key, "POST", "/connect-requests", json=body), "connect_url")
        token = path.rpartition("/")[2]
        self.site.do(
            lambda service: service.modes["live"].connections.approve(token, entity_id, STAFF)
        )

    def _claim(self, number: int) -> str:
        reference = f"case-{number}" if number else "case-" + "0123456789" * 8
        body = claim_body(self.entity, reference)
        answer = self.site.api(self.key, "POST", "/claims", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()["claim_id"]

    def _calls_that_fail(self) -> None:
        self.site.api(self.key, "POST", "/claims", json={})
        self.site.api(self.key, "GET", "/claims?entity_id=ent_unknown")
        self.site.api(self.other_key, "POST", "/claims", json=claim_body(self.entity))

    def _long_call(self) -> None:
        """Note a call whose endpoint and code are the longest that there are."""
        with psycopg.connect(self.site.database_url, autocommit=True) as connection:
            connection.execute(
                "insert into live.requests"
                " select left(request_id, -4) || 'long', partner_id, key_id, now(), method,"
                " '/v1/documents/upload-url', 503, 'document_verification_failed', 12345"
                " from live.requests where request_id = %s",
                [self.faulty_request],
            )

    def _noted(self, status: int) -> str:
        """Return the request id of a refused call, once calls have been logged."""
        noted = "select request_id from live.requests where partner_id = %s and status = %s"
        with psycopg.connect(self.site.database_url, autocommit=True) as connection:
            look = partial(connection.execute, noted, [self.partner, status])
            return until(lambda: look().fetchone(), look=0.1)[0]

    def _deliveries(self) -> None:
        """Let the endpoint have as many deliveries, made and waiting, as its page shows."""
        with psycopg.connect(self.site.database_url, autocommit=True) as connection:
            connection.execute(
                "insert into live.webhook_log select %s, now() - nr * interval '1 minute', nr, %s,"
                " 'claim.document_flagged', 3, 204, 1234, 'no answer within 15 seconds'"
                " from generate_series(1, 60) as nr",
                [self.endpoint, self.claim],
            )
            connection.execute(
                "insert into live.webhook_deliveries"
                " select %s, nr, %s, 'claim.stage_changed', now(), 2, now() + interval '1 day',"
                " 'the certificate of the host was not accepted' from generate_series(1, 60) as nr",
                [self.endpoint, self.claim],
            )
            connection.execute(
                "insert into live.webhook_deliveries"
                " select %s, 60 + nr, 'clm_aside_' || nr, 'claim.created', now(), 17, 'infinity',"
                " 'no answer within 15 seconds' from generate_series(1, 60) as nr",
                [self.endpoint],
            )

    async def _endpoint(self, service: Service) -> str:
        """Return an endpoint of live mode, which has a long URL, and takes nothing."""
        endpoint_id = service.endpoints.new_endpoint_id()
        url = f"https://hooks.example.com/{'a-long-path/' * 20}"
        await service.endpoints.add(self.partner, endpoint_id, "live", url, [], STAFF)
        paused = service.endpoints.new_endpoint_id()
        await service.endpoints.add(self.quiet, paused, "live", url, [], STAFF)
        await service.endpoints.disable(self.quiet, paused, "failing", STAFF)
        return endpoint_id

    def _redeemed(self) -> str:
        """Return the id of a link that a customer has approved."""
        links = "select link_id from live.connect_links where partner_id = %s and state = %s"
        with psycopg.connect(self.site.database_url, autocommit=True) as connection:
            found = connection.execute(f"{links} limit 1", [self.partner, "redeemed"]).fetchone()
        assert found
        return found[0]

    async def _people(self, service: Service) -> None:
        partners = service.partners
        for who in ("developer", "newcomer"):
            await partners.add_member(self.partner, PEOPLE[who], STAFF)
        members = (await partners.look(self.partner)).members
        self.member = next(
            member_id for member_id, member in members.items() if member.email == PEOPLE["newcomer"]
        )
        await partners.add_member(self.quiet, PEOPLE["lonely"], STAFF)
        keys = [await partners.issue_key(self.partner, "test", STAFF) for _ in range(6)]
        self.test_key, self.key_id = keys[0].token, keys[1].key_id
        await partners.revoke_key(self.partner, keys[2].key_id, STAFF)
        await partners.roll_key(self.partner, keys[3].key_id, timedelta(hours=24), STAFF)
        await service.sandbox.ensure(self.partner)
        await service.staff.add(PEOPLE["staff"], STAFF)
        self.person = (await session_of(service, PEOPLE["developer"])).person.person_id
        await service.passkeys.add(self.person, b"credential", b"public key", STAFF)
        self.passkey = (await service.passkeys.of(self.person))[0].passkey_id
        self.pending = await self._applied(service, "pending")
        note = "Their register entry names another director: asked on the phone, it is right. " * 4
        await service.reviews.save(self.pending, ["website", "register"], note, 0, STAFF)
        self.declined = await self._applied(service, "declined")
        await partners.decline(self.declined, STAFF, "The use that you describe is not recovery.")

    async def _applied(self, service: Service, who: str) -> str:
        return await service.partners.apply(
            company=f"{who.capitalize()} {LONG}",
            contact_name="A person of the company",
            use="We keep the books of small businesses, and chase what they are owed. " * 4,
            email=PEOPLE[who],
            website="www.example.com",
            company_number="00000000",
            cause=STAFF,
        )

    async def _move(self, service: Service) -> None:
        for claim_id, stage in zip(self.claims, STAGES, strict=False):
            await service.modes["live"].claims.move(claim_id, stage, STAFF)


def _path(answer: httpx.Response, name: str) -> str:
    assert answer.is_success, answer.text
    return httpx.URL(answer.json()[name]).path
