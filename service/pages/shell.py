"""Rendering pages, and what people see where a page is refused."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, cast
from urllib.parse import quote

import structlog
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from litestar import Response
from litestar.datastructures import Cookie
from litestar.exceptions import HTTPException

from service.core.errors import PartnerUnapproved, Refusal
from service.http.bodies import AnyRequest
from service.http.responses import (
    BY_STATUS,
    RETRY_AFTER_SECONDS,
    log_missing_key,
    with_headers,
)
from service.ledger.database import LedgerError
from service.ledger.encryption import KeyUnknown
from service.pages.assets import asset_path
from service.pages.carried import carried_of, filled, waiting
from service.pages.formats import amount, day, grouped, moment
from service.pages.site_map import Html, Page, RoutedPage, site_map_of
from service.pages.visit import (
    CSRF_FIELD,
    HEADERS,
    ProofNeeded,
    SessionChanged,
    SignInNeeded,
    no_cookie,
    person_of,
)
from service.pages.words import TEXTS, entered, seen, stored, text

_OUR_PATH: Final = re.compile(r"(?!.*//)/[!-\[\]-~]{0,511}")
"""ASCII without white space, controls or backslash, nowhere two slashes in a row."""
_LOCATION: Final = re.compile(r"/[!-~]*")

CUSTOMERS_AREAS: Final = (
    RoutedPage("GET", "/account", "signed-in", "account.title", "", ""),
    RoutedPage("GET", "/console", "signed-in", "home.console", "", ""),
)
"""The areas at the public origin, of which everybody who is signed in may have a part."""
TEAMS_AREA: Final = RoutedPage("GET", "/backoffice", "staff", "home.backoffice", "", "")

log = structlog.get_logger()


TEMPLATES: Final = Environment(
    loader=PackageLoader("service.pages"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    finalize=seen,
    trim_blocks=True,
    lstrip_blocks=True,
)
cast("dict[str, object]", TEMPLATES.globals).update(
    {"t": text, "stored": stored, "asset": asset_path}
)
TEMPLATES.filters.update(amount=amount, day=day, entered=entered, grouped=grouped, moment=moment)


def page(request: AnyRequest, template: str, status: int = 200, **context: object) -> Html:
    """Return a page of `templates/`. It knows who is signed in, and the form's token.

    Templates: `t(name, …)` is a text, `stored(group, value, …)` that of a value which a row has;
    a field named `csrf_name` with the value `csrf` goes into every form. A form that
    waited for its sender is filled in once.
    """
    state = request.scope["state"]
    state["headers"].update(HEADERS)  # for what is refused before the visitor is known
    html = TEMPLATES.get_template(template).render(
        person=person_of(request),
        csrf=state.get("csrf"),
        csrf_name=CSRF_FIELD,
        path=request.url.path,
        **context,
    )
    shown: list[Cookie] = []
    for cookie, carried in carried_of(request).items():
        form = filled(html, carried, request.url.path, *_notices())
        if form is not None:
            html = form
            shown.append(no_cookie(cookie))
    return Response(html.encode(), status_code=status, media_type="text/html", cookies=shown)


def _notices() -> tuple[str, str]:
    """Return what is said of a form that waited, with fields and without."""
    notice = TEMPLATES.get_template("carried.html")
    with_fields, without = (text(f"form.{name}") for name in ("carried", "pressed"))
    return notice.render(words=with_fields), notice.render(words=without)


class Frame(NamedTuple):
    """A navigation: the text that names it, and its places, with paths that lead there."""

    area: str
    places: Sequence[RoutedPage]


def framed_page(
    request: AnyRequest, template: str, status: int, frame: Frame, **context: object
) -> Html:
    """Return a page with a navigation."""
    navigation: dict[str, list[RoutedPage]] = {}
    for one in frame.places:
        navigation.setdefault(one.group, []).append(one)
    handler = request.scope.get("route_handler")  # none where nothing is routed
    here = handler.opt["page"] if handler else Page("public")
    return page(
        request, template, status, area=frame.area, navigation=navigation, here=here, **context
    )


def areas(request: AnyRequest) -> Frame:
    """Return the areas that a signed-in person may have, as far as they are known."""
    places: Sequence[RoutedPage] = request.scope["state"].get("areas", CUSTOMERS_AREAS)
    return Frame("account.areas", places)


def _frame_of(request: AnyRequest) -> Frame | None:
    """Return the navigation of a page that was refused: where its visitor was let in, or areas."""
    handler = request.scope.get("route_handler")
    own: Frame | None = handler.opt.get("frame", _no_frame)(request) if handler else None
    return own or (areas(request) if person_of(request) else None)


def _no_frame(_request: AnyRequest) -> Frame | None:
    return None


def lead_to(path: str, cookies: Sequence[Cookie] = ()) -> Html:
    """Redirect the browser to another page of ours (303: by GET).

    Refuses with `not_found` where the path holds what no header can, whoever chose it.
    """
    if not _LOCATION.fullmatch(path):
        raise Refusal("not_found")
    return Response(
        b"", status_code=303, headers={"Location": path}, media_type="text/plain", cookies=cookies
    )


def safe_path(path: str, default: str = "/") -> str:
    r"""Return a path of this host to go on to; anything else becomes the default.

    Browsers read `//host`, `/\host` and `/<tab>/host` as another host's address.
    """
    return path if _OUR_PATH.fullmatch(path) else default


def refused(request: AnyRequest, refusal: Refusal, title: str, advice: str) -> Html:
    """Return a refusal as a page with its own words; it shows the code and status, too."""
    state, frame = request.scope["state"], _frame_of(request)
    state["code"] = refusal.code
    shown = partial(framed_page, frame=frame) if frame else page
    return shown(
        request,
        "refused.html",
        refusal.row.status,
        title=title,
        advice=advice,
        faults=faults_of(refusal),
        code=refusal.code,
        http_status=refusal.row.status,
        request_id=state["request_id"],
    )


def on_refusal(request: AnyRequest, refusal: Refusal) -> Html:
    """Return a refusal as a page: what happened, what to do next, its code and status."""
    known = f"refused.{refusal.code}.title" in TEXTS
    name = refusal.code if known else "other"
    title = text(f"refused.{name}.title")
    advice = text(f"refused.{name}.advice", message=refusal.message)
    response = refused(request, refusal, title, advice)
    if refusal.row.status in {429, 503}:  # contract section 8
        response.set_header("Retry-After", str(refusal.retry_after_seconds or RETRY_AFTER_SECONDS))
    return response


def on_partner_unapproved(request: AnyRequest, refusal: PartnerUnapproved) -> Html:
    """Return the page of a link whose partner was revoked: nobody else would send another one."""
    return refused(request, refusal, text("partner.unapproved"), text("partner.unapproved_means"))


def on_sign_in_needed(request: AnyRequest, _error: SignInNeeded) -> Html:
    """Lead to the sign-in page, and back afterwards: from a form, to the page that it stands on.

    That page says what became of what was entered.
    """
    return lead_to(with_next("/sign-in", _way_back(request)), waiting(request))


def on_proof_needed(request: AnyRequest, _error: ProofNeeded) -> Html:
    """Lead to proving who one is, and back afterwards, as from signing in."""
    return lead_to(with_next("/proof", _way_back(request)), waiting(request))


def on_session_changed(request: AnyRequest, _error: SessionChanged) -> Html:
    """Return the page that leads to the form anew, for whoever is signed in by now.

    There it is filled in, if it was theirs.
    """
    title = text("refused.session_changed.title")
    advice = text("refused.session_changed.advice", page=_way_back(request) or "/")
    response = refused(request, Refusal("session_changed"), title, advice)
    response.cookies.extend(waiting(request))
    return response


def with_next(path: str, next_path: str) -> str:
    """Return a path that leads on to another one of ours afterwards."""
    return f"{path}?next={quote(next_path, safe='/')}" if next_path else path


def _way_back(request: AnyRequest) -> str:
    if request.method in {"GET", "HEAD"}:
        query = request.url.query
        path = f"{request.url.path}?{query}" if query else request.url.path
    else:
        path = site_map_of(request).page_of_form(request.url.path)
    return safe_path(path, "")


def on_ledger_error(request: AnyRequest, error: Exception) -> Html:
    """Return the page for PostgreSQL being away."""
    log.warning("ledger unavailable", error_type=type(error.__cause__ or error).__name__)
    return on_refusal(request, Refusal("service_unavailable"))


def on_key_unknown(request: AnyRequest, error: KeyUnknown) -> Html:
    """Return the same page for a master key that is missing from the ring."""
    log_missing_key(request, error)
    return on_refusal(request, Refusal("service_unavailable"))


def on_http_exception(request: AnyRequest, error: HTTPException) -> Html:
    """Return the page for what the framework refused."""
    if error.status_code >= 500:  # noqa: PLR2004 - the framework's own failures
        return on_unexpected(request, error)
    code = BY_STATUS.get(error.status_code, "validation_failed")
    return with_headers(on_refusal(request, Refusal(code)), error)


def on_unexpected(request: AnyRequest, error: Exception) -> Html:
    """Return the page for a fault of ours; only the log has its details."""
    log.error("unexpected error", request_id=request.scope["state"]["request_id"], exc_info=error)
    return on_refusal(request, Refusal("internal_error"))


EXCEPTION_HANDLERS: Final = {
    Refusal: on_refusal,
    PartnerUnapproved: on_partner_unapproved,
    SignInNeeded: on_sign_in_needed,
    ProofNeeded: on_proof_needed,
    SessionChanged: on_session_changed,
    HTTPException: on_http_exception,
    LedgerError: on_ledger_error,
    KeyUnknown: on_key_unknown,
    Exception: on_unexpected,
}


def faults_of(refusal: Refusal) -> Mapping[str, Sequence[str]]:
    """Return what is wrong by field, and under no name what is about the whole form."""
    faults = dict(refusal.field_errors or {})
    return faults | ({"": refusal.form_errors} if refusal.form_errors else {})


def messages_of(refusal: Refusal) -> Sequence[str]:
    """Return all that is wrong, of a form with one field."""
    return [message for messages in faults_of(refusal).values() for message in messages]
