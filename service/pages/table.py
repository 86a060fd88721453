"""All pages: who may see each, and what it is for. A test holds the application to it."""

from typing import Final, Literal, NamedTuple

Who = Literal["public", "token", "signed-in", "member", "staff"]
"""Anyone; whoever holds the link; whoever is signed in; a member of the partner that the path
names; the service's team."""


class Page(NamedTuple):
    """One method of one path, as the application routes it. GET answers HEAD too."""

    method: str
    path: str
    who: Who
    purpose: str


_SIGNING_IN: Final = (
    Page("GET", "/", "public", "What this is, and where to go on."),
    Page("GET", "/sign-in", "public", "Asks for an e-mail address."),
    Page("POST", "/sign-in", "public", "Sends a link to it, known or not."),
    Page("GET", "/sign-in/sent", "public", "Says so."),
    Page("GET", "/sign-in/{token:str}", "token", "Names the address that the link signs in."),
    Page("POST", "/sign-in/{token:str}", "token", "Uses the link up, and begins a session."),
    Page("POST", "/sign-out", "public", "Ends the session of this browser."),
)
_CUSTOMERS: Final = (
    Page("GET", "/connect/{token:str}", "token", "Who asks, for what, until when."),
    Page("POST", "/connect/{token:str}", "signed-in", "Approves or declines."),
    Page("GET", "/connect/declined", "public", "What declining means."),
    Page(
        "GET",
        "/connected/{entity_id:str}/{partner_id:str}",
        "signed-in",
        "The entity id, to pass on after an approval.",
    ),
    Page("GET", "/onboarding/{token:str}", "token", "The details as the partner sent them."),
    Page("POST", "/onboarding/{token:str}", "token", "Corrects, completes and finishes."),
    Page("GET", "/onboarding/{token:str}/done", "token", "The entity id, for an hour after."),
    Page("GET", "/account", "signed-in", "The person's businesses, and who is connected."),
    Page("POST", "/account/sign-out", "signed-in", "Ends every session of the person."),
    Page(
        "GET",
        "/account/{entity_id:str}/{partner_id:str}",
        "signed-in",
        "One partner's connection to one business, and the claims it created.",
    ),
    Page(
        "GET",
        "/account/{entity_id:str}/{partner_id:str}/disconnect",
        "signed-in",
        "What disconnecting means, to confirm.",
    ),
    Page(
        "POST",
        "/account/{entity_id:str}/{partner_id:str}/disconnect",
        "signed-in",
        "Disconnects.",
    ),
)
_ACCOUNT: Final = (
    Page("GET", "/console", "signed-in", "Leads to the person's partner, or to apply."),
    Page("GET", "/console/partners", "signed-in", "The person's partners, where several."),
    Page("GET", "/console/apply", "signed-in", "Asks who the partner is, and for what use."),
    Page("POST", "/console/apply", "signed-in", "Applies."),
    Page("GET", "/console/{partner_id:str}", "member", "The state of the review, and what next."),
    Page("GET", "/console/{partner_id:str}/keys", "member", "The keys, when made and last used."),
    Page("POST", "/console/{partner_id:str}/keys", "member", "Issues a key, shown this once."),
    Page(
        "GET",
        "/console/{partner_id:str}/keys/{key_id:str}/roll",
        "member",
        "What rolling a key means, and how long the old one holds.",
    ),
    Page(
        "POST",
        "/console/{partner_id:str}/keys/{key_id:str}/roll",
        "member",
        "Rolls it; the new one is shown this once.",
    ),
    Page(
        "GET",
        "/console/{partner_id:str}/keys/{key_id:str}/revoke",
        "member",
        "What revoking a key means, to confirm.",
    ),
    Page("POST", "/console/{partner_id:str}/keys/{key_id:str}/revoke", "member", "Revokes it."),
    Page("GET", "/console/{partner_id:str}/settings", "member", "The settings, and their risks."),
    Page("POST", "/console/{partner_id:str}/settings", "member", "Changes them."),
    Page("GET", "/console/{partner_id:str}/team", "member", "The partner's people."),
    Page("POST", "/console/{partner_id:str}/team", "member", "Adds one."),
    Page(
        "GET",
        "/console/{partner_id:str}/team/{member_id:str}/remove",
        "member",
        "What removing somebody means, to confirm.",
    ),
    Page(
        "POST", "/console/{partner_id:str}/team/{member_id:str}/remove", "member", "Removes them."
    ),
)
_TRAFFIC: Final = (
    Page(
        "GET",
        "/console/{partner_id:str}/requests",
        "member",
        "The calls of thirty days, with filters.",
    ),
    Page(
        "GET",
        "/console/{partner_id:str}/requests/{request_id:str}",
        "member",
        "One call, and the events that it caused.",
    ),
    Page(
        "GET",
        "/console/{partner_id:str}/errors",
        "member",
        "The refused calls by code, and what to do about each.",
    ),
    Page(
        "GET",
        "/console/{partner_id:str}/usage",
        "member",
        "Calls by the minute against the limit.",
    ),
    Page(
        "GET",
        "/console/{partner_id:str}/claims",
        "member",
        "The partner's claims over all entities.",
    ),
    Page(
        "GET",
        "/console/{partner_id:str}/links",
        "member",
        "Connect links and what became of them.",
    ),
    Page(
        "GET",
        "/console/{partner_id:str}/onboardings",
        "member",
        "Onboardings and what became of them.",
    ),
    Page(
        "GET",
        "/console/{partner_id:str}/sandbox",
        "member",
        "Entities to test with.",
    ),
    Page(
        "POST",
        "/console/{partner_id:str}/sandbox/entities/{entity_id:str}",
        "member",
        "Connects or disconnects one of them.",
    ),
    Page(
        "GET",
        "/console/{partner_id:str}/sandbox/reset",
        "member",
        "What beginning anew means, to confirm.",
    ),
    Page(
        "POST",
        "/console/{partner_id:str}/sandbox/reset",
        "member",
        "Begins the sandbox anew.",
    ),
    Page(
        "GET",
        "/console/{partner_id:str}/checklist",
        "member",
        "What to have tried before going live.",
    ),
    Page(
        "GET",
        "/console/{partner_id:str}/tutorial",
        "member",
        "A first claim, step by step.",
    ),
    Page(
        "POST",
        "/console/{partner_id:str}/tutorial",
        "member",
        "The same with a new test key, shown once.",
    ),
)

_TEAM: Final = (
    Page("GET", "/backoffice", "staff", "Searches by any id or e-mail address."),
    Page("POST", "/backoffice", "staff", "What was found."),
    Page("GET", "/backoffice/partners", "staff", "The partners by state, pending ones first."),
    Page(
        "GET",
        "/backoffice/partners/{partner_id:str}",
        "staff",
        "What a partner said, its keys, settings and people.",
    ),
    Page("POST", "/backoffice/partners/{partner_id:str}/approve", "staff", "Approves it."),
    Page(
        "POST",
        "/backoffice/partners/{partner_id:str}/decline",
        "staff",
        "Declines it with a reason.",
    ),
    Page(
        "GET",
        "/backoffice/partners/{partner_id:str}/revoke",
        "staff",
        "What revoking means, to confirm.",
    ),
    Page("POST", "/backoffice/partners/{partner_id:str}/revoke", "staff", "Revokes it."),
    Page(
        "GET",
        "/backoffice/entities/{entity_id:str}",
        "staff",
        "A business, its connections, onboardings and claims.",
    ),
    Page(
        "GET",
        "/backoffice/entities/{entity_id:str}/connect",
        "staff",
        "What handing its id to a partner means, to confirm.",
    ),
    Page(
        "POST",
        "/backoffice/entities/{entity_id:str}/connect",
        "staff",
        "Connects it on the customer's behalf.",
    ),
    Page(
        "GET",
        "/backoffice/entities/{entity_id:str}/handed/{partner_id:str}",
        "staff",
        "The entity id, to pass on.",
    ),
    Page(
        "GET",
        "/backoffice/entities/{entity_id:str}/disconnect/{partner_id:str}",
        "staff",
        "What disconnecting means, to confirm.",
    ),
    Page(
        "POST",
        "/backoffice/entities/{entity_id:str}/disconnect/{partner_id:str}",
        "staff",
        "Disconnects on the customer's behalf.",
    ),
    Page(
        "GET",
        "/backoffice/claims/{claim_id:str}",
        "staff",
        "A claim, without what is personal.",
    ),
    Page("POST", "/backoffice/claims/{claim_id:str}/stage", "staff", "Moves it to a stage."),
    Page(
        "POST",
        "/backoffice/claims/{claim_id:str}/personal",
        "staff",
        "Shows once what is personal, and records that.",
    ),
    Page(
        "GET",
        "/backoffice/timeline/{subject:str}",
        "staff",
        "What happened to a thing, or by a request.",
    ),
    Page("GET", "/backoffice/health", "staff", "The logs, what follows them, the checkpoints."),
)

PAGES: Final = (*_SIGNING_IN, *_CUSTOMERS, *_ACCOUNT, *_TRAFFIC, *_TEAM)
"""Every page. What is fixed (style sheet, script, icons, documentation) has no row."""
