"""Every page in every state that looks different: one list for axe, weight and pictures."""

from collections.abc import Callable
from typing import Any, NamedTuple

from playwright.sync_api import Page, ViewportSize

from service.pages.sign_in import BROWSER_COOKIE
from tests.pages.filled import PEOPLE, Filled, Visited
from tests.sessions import BROWSER

Show = Callable[[Filled, Page], object]
DESKTOP: ViewportSize = {"width": 1280, "height": 800}


class Shot(NamedTuple):
    """One page: its name, its visitor (one of PEOPLE, or nobody), and how to get there.

    `titled` False: a state of a page that is here already under the same title.
    """

    name: str
    who: str | None
    show: Show
    titled: bool = True


def at(path: str) -> Show:
    """Return a step that opens a path; names in braces are those of Filled."""
    return lambda filled, page: page.goto(path.format(**vars(filled)))


def profile(who: str | None, filled: Filled, **options: Any) -> Page:
    """Return a page in a new profile, signed in as one of PEOPLE."""
    # Without transitions: a colour that is half way to another is nobody's to measure.
    return filled.page_of(who, viewport=DESKTOP, reduced_motion="reduce", **options)


def visit(shot: Shot, filled: Filled, page: Page) -> None:
    """Show a shot on a page, which is desktop-sized and light again afterwards.

    To nobody it is shown as to somebody new: links sign a visitor in.
    """
    if shot.who is None:
        page.context.clear_cookies()
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme="light")
    shot.show(filled, page)
    page.wait_for_load_state("load")
    filled.visited[shot.name] = Visited(page.url, page.title())


def by_visitor() -> list[tuple[str | None, list[Shot]]]:
    """Return the shots by visitor."""
    people = {shot.who: [one for one in SHOTS if one.who == shot.who] for shot in SHOTS}
    return list(people.items())


def _webhook_secret(filled: Filled, page: Page) -> None:
    page.goto(f"/console/{filled.partner}/webhooks/{filled.endpoint}")
    page.get_by_role("button", name="Show the signing secret").click()


def _press(path: Callable[[Filled], str], button: str) -> Show:
    def show(filled: Filled, page: Page) -> None:
        page.goto(path(filled))
        page.get_by_role("button", name=button, exact=True).click()

    return show


def _faulty_address(_filled: Filled, page: Page) -> None:
    page.goto("/sign-in")
    page.locator("form").evaluate("form => form.noValidate = true")
    page.get_by_label("Email address").fill("nobody")
    page.get_by_role("button", name="Send link").click()


def _faulty_onboarding(filled: Filled, page: Page) -> None:
    page.goto(filled.onboarding_link())
    page.locator("form").evaluate("form => form.noValidate = true")
    page.get_by_label("Business name").fill("")
    page.get_by_label("Company number").fill("?" * 200)
    page.get_by_label("Country").fill("x" * 200)
    page.get_by_role("button", name="Finish").click()


def _taken_onboarding(filled: Filled, page: Page) -> None:
    for _ in range(2):  # the first one takes the number
        page.goto(filled.onboarding_link())
        page.get_by_label("Company number").fill("TAKEN 1")
        page.get_by_role("button", name="Finish").click()


def _sent(filled: Filled, page: Page) -> None:
    filled.site.keep(page, BROWSER_COOKIE, BROWSER)
    page.goto("/sign-in/sent")


def _used_link(filled: Filled, page: Page) -> None:
    filled.site.keep(page, BROWSER_COOKIE, BROWSER)
    link = filled.sign_in_link(filled.site.mailbox())
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.goto(link)


def _faulty_application(_filled: Filled, page: Page) -> None:
    page.goto("/console/apply")
    page.locator("main form").evaluate("form => form.noValidate = true")
    page.locator("main form button.primary").click()


def _issued(filled: Filled, page: Page) -> None:
    page.goto(f"/console/{filled.partner}/keys")
    page.locator("main form button.primary").click()


def _lent(_filled: Filled, page: Page) -> None:
    page.goto("/console/reference")
    page.locator("main form button").first.click()


def _own_key(filled: Filled, page: Page) -> None:
    page.goto(f"/console/{filled.partner}/tutorial")
    page.locator("main form button.primary").click()


def _nobody_gets_links(filled: Filled, page: Page) -> None:
    page.goto(f"/console/{filled.quiet}/settings")
    page.locator("input[name=suppress_email]").check()
    page.locator("main form button.primary").click()


def _opened(filled: Filled, page: Page) -> None:
    page.goto(f"/backoffice/claims/{filled.claim}")
    page.locator("main form[action$=personal] button").click()


def _search(sought: str) -> Show:
    def show(_filled: Filled, page: Page) -> None:
        page.goto("/backoffice")
        page.locator("#sought").fill(sought)
        page.locator("main form button.primary").click()

    return show


CUSTOMERS = [
    Shot("sign-in", None, at("/sign-in")),
    Shot("sign-in-faulty", None, _faulty_address, titled=False),
    Shot("sign-in-sent", None, _sent),
    Shot(
        "sign-in-confirm",
        None,
        lambda filled, page: page.goto(filled.sign_in_link(filled.site.mailbox())),
    ),
    Shot("sign-in-used", None, _used_link),
    Shot("sign-in-unknown", None, at("/sign-in/unknown")),
    Shot("home", None, at("/")),
    Shot(
        "connect",
        None,
        lambda filled, page: page.goto(filled.connect_link(label="for your bookkeeping " * 4)),
    ),
    Shot(
        "connect-one", "single", lambda filled, page: page.goto(filled.connect_link()), titled=False
    ),
    Shot(
        "connect-several",
        "owner",
        lambda filled, page: page.goto(filled.connect_link(filled.other_key, label="for you")),
        titled=False,
    ),
    Shot(
        "connect-no-business",
        "stranger",
        lambda filled, page: page.goto(filled.connect_link()),
        titled=False,
    ),
    Shot("connect-declined", "single", _press(Filled.connect_link, "Decline")),
    Shot("connect-expired", None, lambda filled, page: page.goto(filled.expired_link())),
    Shot("connect-unknown", None, at("/connect/unknown")),
    Shot("connected", "owner", at("/connected/{entity}/{partner}")),
    Shot("onboarding", None, lambda filled, page: page.goto(filled.onboarding_link())),
    Shot(
        "onboarding-sign-in",
        None,
        lambda filled, page: page.goto(filled.returned_link()),
        titled=False,
    ),
    Shot("onboarding-faulty", None, _faulty_onboarding, titled=False),
    Shot("onboarding-taken", None, _taken_onboarding, titled=False),
    Shot("onboarding-finished", None, _press(Filled.onboarding_link, "Finish"), titled=False),
    Shot("account", "owner", at("/account")),
    Shot("account-empty", "stranger", at("/account"), titled=False),
    Shot("account-partner", "owner", at("/account/{entity}/{partner}")),
    Shot("account-partner-ended", "owner", at("/account/{entity}/{other}")),
    Shot("account-partner-empty", "owner", at("/account/{entity}/{quiet}")),
    Shot("account-claim", "owner", at("/account/{entity}/{partner}/claims/{claim}")),
    Shot("connect-already", "owner", lambda filled, page: page.goto(filled.connect_link()), False),
    Shot("account-disconnect", "owner", at("/account/{entity}/{partner}/disconnect")),
    Shot("account-not-yours", "stranger", at("/account/{entity}/{partner}")),
]

CONSOLE = [
    Shot("console-apply", "newcomer", at("/console/apply")),
    Shot("console-apply-faulty", "newcomer", _faulty_application, titled=False),
    Shot("console-partners", "developer", at("/console/partners")),
    Shot("console-none", "stranger", at("/console/partners"), titled=False),
    Shot("console-pending", "pending", at("/console/{pending}")),
    Shot("console-declined", "declined", at("/console/{declined}"), titled=False),
    Shot("console-overview", "developer", at("/console/{partner}")),
    Shot("console-overview-empty", "lonely", at("/console/{quiet}"), titled=False),
    Shot("console-keys", "developer", at("/console/{partner}/keys")),
    Shot("console-key-issued", "developer", _issued),
    Shot("console-reference", "developer", at("/console/reference")),
    Shot("console-reference-key", "developer", _lent),
    Shot("console-key-roll", "developer", at("/console/{partner}/keys/{key_id}/roll")),
    Shot("console-key-revoke", "developer", at("/console/{partner}/keys/{key_id}/revoke")),
    Shot("console-settings", "developer", at("/console/{partner}/settings")),
    Shot("console-settings-asked", "lonely", _nobody_gets_links, titled=False),
    Shot("console-team", "developer", at("/console/{partner}/team")),
    Shot("console-team-remove", "developer", at("/console/{partner}/team/{member}/remove")),
    Shot("console-requests", "developer", at("/console/{partner}/requests")),
    Shot("console-requests-empty", "lonely", at("/console/{quiet}/requests?code=none"), False),
    Shot("console-request", "developer", at("/console/{partner}/requests/{request}")),
    Shot("console-request-unknown", "developer", at("/console/{partner}/requests/unknown")),
    Shot(
        "console-request-faulty",
        "developer",
        at("/console/{partner}/requests/{faulty_request}"),
        titled=False,
    ),
    Shot("console-errors", "developer", at("/console/{partner}/errors")),
    Shot("console-errors-empty", "lonely", at("/console/{quiet}/errors?mode=test"), titled=False),
    Shot("console-usage", "developer", at("/console/{partner}/usage")),
    Shot(
        "console-usage-month", "developer", at("/console/{partner}/usage?span=month"), titled=False
    ),
    Shot("console-usage-empty", "lonely", at("/console/{quiet}/usage"), titled=False),
    Shot("console-webhooks", "developer", at("/console/{partner}/webhooks")),
    Shot("console-webhooks-empty", "lonely", at("/console/{quiet}/webhooks"), titled=False),
    Shot("console-webhook", "developer", at("/console/{partner}/webhooks/{endpoint}")),
    Shot("console-webhook-secret", "developer", _webhook_secret),
    Shot(
        "console-webhook-remove", "developer", at("/console/{partner}/webhooks/{endpoint}/remove")
    ),
    Shot("console-links", "developer", at("/console/{partner}/links")),
    Shot("console-links-empty", "lonely", at("/console/{quiet}/links?state=expired"), titled=False),
    Shot("console-link", "developer", at("/console/{partner}/links/{link}")),
    Shot("console-onboardings", "developer", at("/console/{partner}/onboardings")),
    Shot("console-onboardings-empty", "lonely", at("/console/{quiet}/onboardings"), titled=False),
    Shot("console-claims", "developer", at("/console/{partner}/claims")),
    Shot("console-claim", "developer", at("/console/{partner}/claims/{claim}")),
    Shot("console-claims-empty", "lonely", at("/console/{quiet}/claims"), titled=False),
    Shot("console-sandbox", "developer", at("/console/{partner}/sandbox")),
    Shot("console-sandbox-reset", "developer", at("/console/{partner}/sandbox/reset")),
    Shot("console-checklist", "developer", at("/console/{partner}/checklist")),
    Shot("console-tutorial", "developer", at("/console/{partner}/tutorial")),
    Shot("console-tutorial-key", "developer", _own_key, titled=False),
    Shot("console-not-member", "stranger", at("/console/{partner}")),
]

BACKOFFICE = [
    Shot("backoffice", "staff", at("/backoffice")),
    Shot("backoffice-found", "staff", _search(PEOPLE["owner"]), titled=False),
    Shot("backoffice-nothing", "staff", _search("nothing@example.com"), titled=False),
    Shot("backoffice-partners", "staff", at("/backoffice/partners")),
    Shot("backoffice-partner", "staff", at("/backoffice/partners/{partner}")),
    Shot("backoffice-review", "staff", at("/backoffice/partners/{pending}"), titled=False),
    Shot("backoffice-partner-revoke", "staff", at("/backoffice/partners/{partner}/revoke")),
    Shot("backoffice-entity", "staff", at("/backoffice/entities/{entity}")),
    Shot(
        "backoffice-entity-connect",
        "staff",
        at("/backoffice/entities/{alone}/connect?partner_id={quiet}"),
    ),
    Shot("backoffice-entity-handed", "staff", at("/backoffice/entities/{entity}/handed/{partner}")),
    Shot(
        "backoffice-entity-disconnect",
        "staff",
        at("/backoffice/entities/{entity}/disconnect/{partner}"),
    ),
    Shot("backoffice-claim", "staff", at("/backoffice/claims/{claim}")),
    Shot("backoffice-claim-opened", "staff", _opened, titled=False),
    Shot("backoffice-timeline", "staff", at("/backoffice/timeline/{entity}")),
    Shot("backoffice-timeline-claim", "staff", at("/backoffice/timeline/{claim}"), titled=False),
    Shot("backoffice-people", "staff", at("/backoffice/people")),
    Shot("backoffice-person", "staff", at("/backoffice/people/{person}")),
    Shot("backoffice-person-recover", "staff", at("/backoffice/people/{person}/recover")),
    Shot("backoffice-mails", "staff", at("/backoffice/mails")),
    Shot("backoffice-health", "staff", at("/backoffice/health")),
    Shot("backoffice-unknown", "staff", at("/backoffice/partners/ptn_unknown")),
    Shot("backoffice-not-staff", "stranger", at("/backoffice")),
]

SECURITY = [
    Shot("security", "developer", at("/security")),
    Shot("security-empty", "stranger", at("/security"), titled=False),
    Shot("security-passkey", "staff", at("/security/passkey")),
    Shot("security-passkey-remove", "developer", at("/security/passkeys/{passkey}/remove")),
    Shot("proof", "developer", at("/proof?next=/console")),
]

SHOTS = CUSTOMERS + SECURITY + CONSOLE + BACKOFFICE
