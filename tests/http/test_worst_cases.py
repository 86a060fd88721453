"""What parses the input of strangers takes little at its bound, and grows no faster than it."""

from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_network
from typing import Any, NamedTuple

import pytest
from litestar.datastructures import Headers

from service.claims.wire import PARTNER_INVOICE_IDS_BYTES_MAX, ClaimListQuery
from service.core.errors import Refusal
from service.core.invisible_characters import name_fault, unseen_fault, visible
from service.events.cursor import place_of
from service.http import decoding
from service.http.client_address import ForwardedClients
from service.http.decoding import CONTENT_TYPE_CHARACTERS_MAX, decode, decode_query
from service.http.hosts import Hosts
from service.http.paths import BYTES_MAX, is_canonical
from service.http.scalars import LIMITS, email_fault, typed_email
from service.http.server import BUFFER_BYTES_MAX
from service.http.static import ACCEPTED_CHARACTERS_MAX, accepts_gzip
from service.ledger.service_keys import EventRoots, Secrets
from service.operations.tracing.traces import Traces
from service.pages.carried import FORM_COOKIE, opened
from service.pages.shell import safe_path
from service.pages.visit import (
    COOKIE,
    FORM_BYTES_MAX,
    QUERY_BYTES_MAX,
    cookie_of,
    form_fields,
    refuse_unknown,
)
from service.partners.keys import TOKEN_CHARACTERS_MAX, parse_authorization
from service.people.browsers import (
    ENTERED_CHARACTERS_MAX,
    browser_hash,
    browser_token,
    is_code_of,
)
from service.webhooks.urls import URL_CHARACTERS_MAX, NotPublic, check_url
from tests.costs import RUNS, five_milliseconds, share
from tests.mail.mail_server import mail
from tests.tables import every_row

GROWTH = 16
"""From the small input to the large one."""
TIMES = 3 * GROWTH
"""As much longer may the large one take: what is quadratic takes 256 times as long."""
BEYOND = 2**17

Make = Callable[[int], str]
KEYS = Secrets(b"p" * 32, b"l" * 32, b"k" * 32, EventRoots({}, since_start=True, signing=1))


class Parser(NamedTuple):
    """What reads strings of strangers, the longest that reaches it, and what it might dislike.

    `refuses`: it refuses longer ones itself. The others are bounded before: the head of a request
    by the server, a form by `read_body`, a name by its type.
    """

    read: Callable[[str], Any]
    bound: int
    refuses: bool
    hostile: tuple[Make, ...]


def of(*units: str, first: str = "", last: str = "") -> tuple[Make, ...]:
    """Return makers of strings of a length: each a unit, repeated, after `first`, before `last`."""

    def maker(unit: str) -> Make:
        def make(length: int) -> str:
            room = length - len(first) - len(last)
            return first + (unit * (room // len(unit) + 1))[:room] + last

        return make

    return tuple(map(maker, units))


def address(text: str) -> None:
    """Look at an address as every page does."""
    path, _, query = text.partition("?")
    refuse_unknown(path, query.encode())


def forwarded(text: str) -> None:
    """Look for the client behind a proxy that is trusted."""
    headers = [(b"x-forwarded-for", text.encode())]
    scope: Any = {"type": "http", "client": ("127.0.0.1", 1), "headers": headers}
    nothing: Any = None
    with suppress(StopIteration):
        CLIENTS(scope, nothing, nothing).send(None)


def traced(text: str) -> None:
    """Begin a trace that a caller names."""
    nothing: Any = None
    Traces(nothing, 0).begin("GET", text, is_request=True)


async def nobody(*_given: object) -> None:
    """Answer nothing."""


CLIENTS = ForwardedClients(nobody, [ip_network("127.0.0.0/8"), ip_network("::1/128")])

PARSERS = {
    "clients behind proxies": Parser(
        forwarded,
        BUFFER_BYTES_MAX,
        False,
        of(",", "127.0.0.1,", "::1, ", "1", "1.", ":", "[", "%", " ", "[::1]:1,", "f:"),
    ),
    "email addresses": Parser(
        email_fault,
        LIMITS["email"],
        True,
        (
            *of(" ", ".", "@", "a", "-", "a.", "a-", '"', "\\", "(", "<", "a@", "xn--", "\u00e9"),
            *of("a", "a.", "a-", ".", "-", "xn--a.", "1.", "[", ":", first="a@"),
            *of("a", "a.", "!", first='"', last='"@example.com'),
            *of("a ", " ", first="<", last="@example.com>"),
        ),
    ),
    "typed addresses": Parser(
        typed_email,
        LIMITS["email"],
        True,
        (
            *of("\u00e9", "\u00e9.", ".", "@", "a\u0301", "\u0627", "\ufb03", "\u3002", first="a@"),
            *of("\u00e9", "a\u0301", '"', last="@\u00e9.example"),
        ),
    ),
    "forms": Parser(
        lambda text: form_fields(text.encode()),
        FORM_BYTES_MAX,
        False,
        of("&", "=", "%", "+", "%4", "%41", "%e2%80%ae", "a=&", "a&", ";", "a=b%ff&", "%%%41"),
    ),
    "cookies": Parser(
        lambda text: cookie_of(Headers({"cookie": text}), COOKIE),
        BUFFER_BYTES_MAX,
        False,
        (
            *of(";", " ", "; ", "=", "\t", f"{COOKIE}=", f";{COOKIE}", "__Host-"),
            *of(" ", first=";"),
        ),
    ),
    "forms that wait": Parser(
        lambda text: opened(b"k" * 32, Headers({"cookie": f"{FORM_COOKIE}={text}"}), FORM_COOKIE),
        BUFFER_BYTES_MAX,
        False,
        of("A", "=", "-", " ", "A=", f";{FORM_COOKIE}=", f"A;{FORM_COOKIE}=A;"),
    ),
    "credentials": Parser(
        parse_authorization,
        TOKEN_CHARACTERS_MAX,
        True,
        (*of(" ", "."), *of(" ", ".", "a", first="Bearer "), *of(".", first="Bearer pk_live_")),
    ),
    "addresses": Parser(
        address,
        QUERY_BYTES_MAX,
        True,
        (*of("/", "a", "\u00e9", first="/"), *of("&", "%00", "%", "a=b&", first="/?")),
    ),
    "paths": Parser(
        lambda text: is_canonical(text.replace("%41", "A"), text.encode()),
        BYTES_MAX,
        True,
        of("/", "a", "/.", "..", "/a", "%", "%41", "%C3%BC", "%2e", "\u00e9", first="/"),
    ),
    "hosts": Parser(
        lambda text: Hosts("http://localhost").include([(b"host", text.encode())]),
        BUFFER_BYTES_MAX,
        False,
        (*of("a", ".", ":", "[", "1.", "::", "\u00e9"), *of("f:", "1", first="[")),
    ),
    "paths to go on to": Parser(
        safe_path, FORM_BYTES_MAX, True, of("/", "/a", "a", "\\", "/\t", "//", "\u00e9", first="/")
    ),
    "encodings that are taken": Parser(
        accepts_gzip,
        ACCEPTED_CHARACTERS_MAX,
        True,
        (
            *of(",", ";", " ", "gzip", "q=0,", "a;b,"),
            *of(";", "q", "0", " ;q=0.", first="gzip;q=0."),
        ),
    ),
    "traces of callers": Parser(
        traced,
        BUFFER_BYTES_MAX,
        False,
        (*of("-", "0", "00-", " "), *of("0", "-", "-0", first="00-")),
    ),
    "queries": Parser(
        lambda text: decode_query(text.encode(), ClaimListQuery),
        decoding.QUERY_BYTES_MAX,
        True,
        (*of("&", "a&", "%", "%41", "+", "limit=1&"), *of("9", " ", first="limit=")),
    ),
    "kinds of bodies": Parser(
        lambda text: decode(b"{}", text, ClaimListQuery),
        CONTENT_TYPE_CHARACTERS_MAX,
        True,
        of(";", " ", "; ", "application/json;", "charset=utf-8;"),
    ),
    "codes": Parser(
        lambda text: is_code_of(KEYS, browser_hash("b"), text),
        ENTERED_CHARACTERS_MAX,
        True,
        of("B", "-", " ", "\u00df", "\ufb03"),
    ),
    "webhooks' addresses": Parser(
        check_url,
        URL_CHARACTERS_MAX,
        True,
        (*of("/", "a", "."), *of("a", "a.", "-", "[", ":", "@", "%", "1.", first="https://")),
    ),
    "cursors": Parser(place_of, LIMITS["text"], False, of("A", "=", "-", "\u00e9", first="evt_")),
    "browsers": Parser(browser_token, BUFFER_BYTES_MAX, True, of("a", "-", " ")),
    "names": Parser(
        lambda text: (name_fault(text), visible(text)),
        LIMITS["text"],
        False,
        of("\u202e", "a", "\u200d", "\ufe0f", "\U0001f468\u200d", "\u2764\ufe0f", "\n", "\u0301"),
    ),
    "texts on pages": Parser(
        lambda text: (unseen_fault(text), visible(text)),
        PARTNER_INVOICE_IDS_BYTES_MAX // 8,  # not one text: those of a page together
        False,
        of("\u3002", "\U0001f600", "a\u0301\u0301\u0301\u0301", "\u0301\u3002"),
    ),
    "names in mail": Parser(
        lambda text: mail(user_name=text, company_name=text, partner_name=text),
        LIMITS["text"],
        False,
        of("1", "1.", "1   ", "1    ", "+(1", "a.", "a@", ":/", "www.", "\u3002", "\ufdfa", " "),
    ),
}


def read(parser: Parser, text: str) -> None:
    """Have a text read, whatever comes of it."""
    with suppress(Refusal, NotPublic):
        parser.read(text)


@pytest.mark.parametrize("name", PARSERS)
def test_no_input_of_strangers_costs_much(name):
    """At its bound and beyond it costs at most what takes 5 ms where the service was made.

    Up to there it grows no faster than the input.
    """
    parser, most = PARSERS[name], five_milliseconds()
    with every_row() as row:
        for make in parser.hostile:
            large, small = make(parser.bound), make(parser.bound // GROWTH)
            with row(small[:40]):
                took = share(most, read, parser, large)
                assert took <= 1, f"{took:.2f} of what it may take"
                if parser.refuses:
                    beyond = share(most, read, parser, make(parser.bound + BEYOND))
                    assert beyond <= 1, f"{beyond:.2f} of what it may take, beyond"
                # The machine's speed changes between two looks: they are repeated side by side.
                assert any(
                    share(most, read, parser, large) - share(most, read, parser, small) * TIMES
                    <= 1 / 50
                    for _ in range(RUNS)
                ), "grows faster than its input"
