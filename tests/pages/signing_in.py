"""Signing in over HTTP, as tests of it do: links that were asked for, and who is signed in."""

import re

from service.people.sign_in import PURPOSE
from tests.pages.visitor import Visitor

EMAIL = "person@example.com"
SENT = "/sign-in/sent"


async def newest_link(world):
    """Return the token of the newest link."""
    async with world.service.accounts.transaction() as transaction:
        row = await transaction.connection.fetchrow(
            "select link_id from accounts.sign_in_links order by asked_at desc, link_id desc"
        )
    return (await world.service.secrets.get()).link_token(PURPOSE, row["link_id"])


async def count(world, table):
    """Return the number of rows in a table of the accounts ledger."""
    statement = {
        "sessions": "select count(*) from accounts.sessions",
        "sign_in_links": "select count(*) from accounts.sign_in_links",
    }[table]
    async with world.service.accounts.transaction() as transaction:
        return await transaction.connection.fetchval(statement)


async def run(world, statement):
    """Run a statement."""
    async with world.service.accounts.transaction() as transaction:
        await transaction.connection.execute(statement)


async def asked(world, visitor, next_path="/account", email=EMAIL):
    """Request a link as a person does; return its token."""
    answer = await visitor.post("/sign-in", email=email, next=next_path)
    assert (answer.status_code, answer.headers["location"]) == (303, SENT)
    return await newest_link(world)


async def code_shown(visitor):
    """Return the code that a browser shows which has asked for a link."""
    (code,) = re.findall(r"<code>([A-Z]{4}-[A-Z]{4})</code>", (await visitor.get(SENT)).text)
    return code


def set_cookies(answer):
    """Return the cookies that an answer sets."""
    return answer.headers.get_list("set-cookie")


async def is_signed_in(visitor):
    """Return whether the account page opens."""
    return (await visitor.get("/account")).status_code == 200


def visitor_with(world, cookies):
    """Return a visitor who sends exactly these cookies."""
    visitor = Visitor(world)
    visitor.client.headers["Cookie"] = cookies
    return visitor
