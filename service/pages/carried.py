"""A form that waits while its sender signs in, or proves who they are, and is filled in afterwards.

What was posted waits in the browser that posted it: in a cookie that only the service reads,
encrypted and bound to their sender. Nothing is ever sent by itself: the form of the same path is
shown with what was entered, and its sender sends it again. Where there is nothing to enter, its
page says that the press did nothing.
"""

import html
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import msgspec
from litestar.datastructures import Cookie, Headers, MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from service.http.bodies import AnyRequest
from service.ledger.encryption import DecryptionFailed, decrypt, encrypt
from service.ledger.service_keys import Secrets
from service.pages.visit import (
    CSRF_FIELD,
    REVIEW_FIELD,
    SEEN_FIELD,
    STATUS_FIELD,
    VERSION_FIELD,
    cookie_of,
    host_cookie,
    no_cookie,
    owner_token,
    person_of,
)
from service.people.ceremonies import CREDENTIAL

FORM_COOKIE: Final = "__Host-form"
"""Of a form in which something was entered."""
PRESS_COOKIE: Final = "__Host-press"
"""Of one without anything to enter: neither takes the other's place."""
COOKIE_CHARACTERS_MAX: Final = 2_600
"""With our other headers, it fits the 4 KiB that proxies take of a response's head, unless told
otherwise. Compressed, any form of ours fits that is in Latin letters; a larger one is not kept."""
LIFETIME: Final = timedelta(minutes=30)
"""Long enough for a link that is asked for, and its mail."""
LOST_LIFETIME: Final = timedelta(minutes=1)
"""Of the word that a form is not kept: long enough for the page that says so."""
KEPT, LOST = "kept", "lost"
"""With which of them a cookie begins: what waits, or nothing, as it was too large. The page to
sign in has no keys to open it."""

_LOOKED_AT: Final = frozenset({VERSION_FIELD, STATUS_FIELD, REVIEW_FIELD, SEEN_FIELD})
"""Hidden fields that hold what a form's sender looked at. They come back as they were sent: with
newer ones, what a colleague did meanwhile would be overwritten unseen."""
_DRAWN: Final = frozenset({"key_id", "endpoint_id", "proof"})
"""Hidden fields that a page draws anew whenever it is shown. The others say what it is about."""
_ABOUT: Final = frozenset({"epoch", "first", "partner_id", "secret_version", "to"})
"""Hidden fields of forms that have nothing to enter: what the press is about."""
_FORM: Final = re.compile(r"<form\b([^>]*)>(.*?)</form>", re.DOTALL)
_CONTROL: Final = re.compile(
    r"<(input)\b([^>]*)>()"
    r"|<(textarea)\b([^>]*)>([^<]*)</textarea>"
    r"|<(select)\b([^>]*)>(.*?)</select>",
    re.DOTALL,
)
_OPTION: Final = re.compile(r"<option\b([^>]*)>")
_ATTRIBUTE: Final = re.compile(r'([\w-]+)(?:="([^"]*)")?')

Attributes = dict[str, str | None]
"""Of a tag, by name; None for one without a value."""


class Carried(msgspec.Struct, frozen=True):
    """What was posted, where, and on whose page.

    `owner` is the token of whoever's page the form was on, whoever has used the browser since. It
    is empty where nobody was signed in: whoever signs in next may see what the path shows them.
    """

    path: str
    owner: str
    fields: Mapping[str, str]


_BOUND_TO: Final = " ".join(["form", *Carried.__struct_fields__]).encode()
"""A release whose forms are of another shape cannot open ours, nor we its: nothing waits there."""


class WaitingForms(ASGIMiddleware):
    """Ends what waits where its like has been sent meanwhile, from another tab.

    It would be shown afterwards as if nothing had been sent.
    """

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Pass the request on, and forget the form that waits if this one was taken."""

        async def ending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:  # noqa: PLR2004 - no refusal
                self._end(scope, MutableScopeHeaders.from_message(message))
            await send(message)

        await next_app(scope, receive, ending if scope.get("method") == "POST" else send)

    def _end(self, scope: Scope, headers: MutableScopeHeaders) -> None:
        state = scope["state"]
        if "form" not in state or state.get("form_waits"):
            return
        for cookie, carried in _opened(state["keys"], Headers.from_scope(scope)).items():
            if carried.path == scope["path"]:
                headers.add("set-cookie", no_cookie(cookie).to_header(header=""))


def waiting(request: AnyRequest) -> Sequence[Cookie]:
    """Return the cookie in which a posted form waits; none where no form was read.

    A passkey's answer is no form: the one that it is asked for goes on waiting. Nor does a form of
    nobody's page wait where somebody has signed in since: it may be another person's.
    """
    state = request.scope["state"]
    state["form_waits"] = True
    form: Mapping[str, str] | None = state.get("form")
    if form is None or CREDENTIAL in form:
        return []
    # A token of one part is that of a session: a page of an earlier release, and nobody's token.
    owner: str = state["form_token"].rpartition(".")[2]
    if not owner and person_of(request):
        return []
    cookie = FORM_COOKIE if form.keys() - (_LOOKED_AT | _DRAWN | _ABOUT) else PRESS_COOKIE
    carried = Carried(request.url.path, owner, form)
    packed = zlib.compress(msgspec.json.encode(carried), level=9)
    sealed = urlsafe_b64encode(encrypt(form_key(state["keys"]), packed, _BOUND_TO)).decode()
    value = f"{KEPT}.{sealed.rstrip('=')}"  # a cookie with it would be put in quotes
    if len(value) > COOKIE_CHARACTERS_MAX:
        return [host_cookie(cookie, LOST, LOST_LIFETIME)]
    return [host_cookie(cookie, value, LIFETIME)]


def carried_of(request: AnyRequest) -> dict[str, Carried]:
    """Return what waits in this browser for whoever is signed in, by its cookie."""
    person = person_of(request)
    if person is None or request.method != "GET":
        return {}
    keys: Secrets = request.scope["state"]["keys"]
    owners = {"", owner_token(keys, person)}
    found = _opened(keys, request.headers)
    return {cookie: carried for cookie, carried in found.items() if carried.owner in owners}


def form_key(keys: Secrets) -> bytes:
    """Return the key under which forms wait."""
    return keys.derived("form", "")


def fate_of(request: AnyRequest) -> str:
    """Return what became of what was entered, KEPT or LOST, by whoever has to sign in; else empty.

    A cookie is taken at its word.
    """
    fate = (cookie_of(request.headers, FORM_COOKIE) or "").partition(".")[0]
    return fate if fate in {KEPT, LOST} and person_of(request) is None else ""


def forgotten() -> list[Cookie]:
    """Return the cookies after which no form waits."""
    return [no_cookie(FORM_COOKIE), no_cookie(PRESS_COOKIE)]


def filled(page: str, carried: Carried, here: str, entered: str, pressed: str) -> str | None:
    """Return a page whose form of the carried path holds what was entered; None if it has none.

    A form is of the paths in its `data-paths`, too, to which its buttons lead. One about something
    else, such as another business, is none. `here` is the path of the page, to which a form without
    an action is sent. Of two notices, `entered` goes before the fields that a person sees, and
    `pressed` before a form that has none, where buttons may be in a row. Pages are ours: what
    others wrote has no `<`, `>` or `"` in them.
    """
    forms = [
        found
        for found in _FORM.finditer(page)
        if carried.path in _paths(found, here)
        and _hidden(found[2]).items() <= carried.fields.items()
        and _LOOKED_AT & _names(found[2]) <= carried.fields.keys()
    ]
    if not forms:
        return None
    (form, *_) = forms
    inside, has_fields = _filled(form[2], carried.fields)
    before, after = (page[: form.start()], page[form.end() :])
    if has_fields:
        return f"{before}<form{form[1]}>{entered}{inside}</form>{after}"
    return f"{before}{pressed}<form{form[1]}>{inside}</form>{after}"


def opened(key: bytes, headers: Headers, cookie: str) -> Carried | None:
    """Return what waits; None for nothing, and for whatever the service did not put there."""
    text = (cookie_of(headers, cookie) or "").partition(".")[2]
    try:
        packed = decrypt(key, urlsafe_b64decode(f"{text}=="), _BOUND_TO)
        return msgspec.json.decode(zlib.decompress(packed), type=Carried)
    except (DecryptionFailed, ValueError, msgspec.DecodeError):  # ValueError: not in Base64
        return None


def _opened(keys: Secrets, headers: Headers) -> dict[str, Carried]:
    key, cookies = form_key(keys), (FORM_COOKIE, PRESS_COOKIE)
    found = {cookie: opened(key, headers, cookie) for cookie in cookies}
    return {cookie: carried for cookie, carried in found.items() if carried}


def _filled(form: str, fields: Mapping[str, str]) -> tuple[str, bool]:
    """Return what is in a form, with what a person saw of it, and entered, as it was sent.

    And whether they see any field of it.
    """
    seen = 0

    def control(found: re.Match[str]) -> str:
        nonlocal seen
        tag, attributes, inner = (one for one in found.groups() if one is not None)
        given = _attributes(attributes)
        name = given.get("name")
        if name in _LOOKED_AT:
            return _input(given, name, {name: fields.get(name, "")})
        if name is None or given.get("type") == "hidden":
            return found[0]
        seen += 1
        if tag == "input":
            return _input(given, name, fields)
        if tag == "select":
            return f"<select{attributes}>{_chosen(inner, fields.get(name))}</select>"
        sent = fields.get(name)
        return f"<textarea{attributes}>{inner if sent is None else html.escape(sent)}</textarea>"

    return _CONTROL.sub(control, form), seen > 0


def _input(given: Attributes, name: str, fields: Mapping[str, str]) -> str:
    kind, sent = given.get("type"), fields.get(name)
    if kind == "checkbox":
        return _tag("input", given, "checked", is_on=sent is not None)
    if kind == "radio":
        return _tag("input", given, "checked", is_on=_value(given) == sent)
    return _tag("input", given if sent is None else given | {"value": html.escape(sent)})


def _chosen(options: str, sent: str | None) -> str:
    def option(found: re.Match[str]) -> str:
        given = _attributes(found[1])
        return _tag("option", given, "selected", is_on=_value(given) == sent)

    return _OPTION.sub(option, options)


def _paths(form: re.Match[str], here: str) -> set[str]:
    """Return where a form may be sent: by its action, and by buttons that lead elsewhere.

    It names those whichever buttons it has: what one of them sent may be too late for it.
    """
    given = _attributes(form[1])
    paths = [given.get("action") or here, *(given.get("data-paths") or "").split()]
    return {html.unescape(one) for one in paths}


def _hidden(form: str) -> dict[str, str]:
    """Return the fields of a form that say what it is about."""
    inputs = [_attributes(found[2]) for found in _CONTROL.finditer(form) if found[1]]
    hidden = {one["name"]: _value(one) for one in inputs if one.get("type") == "hidden"}
    apart = {CSRF_FIELD, *_LOOKED_AT, *_DRAWN}
    return {name: value for name, value in hidden.items() if name and name not in apart}


def _names(form: str) -> set[str | None]:
    return {_attributes(found[2]).get("name") for found in _CONTROL.finditer(form) if found[1]}


def _attributes(text: str) -> Attributes:
    return {found[1]: found[2] for found in _ATTRIBUTE.finditer(text)}


def _value(given: Attributes) -> str:
    return html.unescape(given.get("value") or "")


def _tag(tag: str, given: Attributes, flag: str = "", *, is_on: bool = False) -> str:
    """Return a tag, in which a flag is set or is not."""
    kept = {name: value for name, value in given.items() if name != flag}
    kept |= {flag: None} if is_on else {}
    texts = (name if value is None else f'{name}="{value}"' for name, value in kept.items())
    return f"<{tag} {' '.join(texts)}>"
