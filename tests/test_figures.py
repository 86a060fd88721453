"""Figures that documents promise are those that the code has: each sentence is made from them."""

from datetime import timedelta
from pathlib import Path

import pytest

from service.app.heartbeats import SILENT_SECONDS_MAX
from service.app.main_process import REST_SECONDS_MAX
from service.app.settings import SETTINGS
from service.cli.audit.verify import PROCESSES_MAX
from service.connections.commands import LINK_LIFETIME as CONNECT_LINKS
from service.core.retries import ATTEMPTS_MAX, FOR_A_DAY, Retries
from service.evidence.tiles.serving import PER_MINUTE as TILES_A_MINUTE
from service.evidence.verify.known_actors import SLACK
from service.http.admission import SMALL_BYTES_MAX
from service.http.bodies import BODY_BYTES_MAX
from service.http.rate_limit.limiter import LOOK_UPS_PER_SECOND, PAGES_PER_MINUTE, POSTS_PER_MINUTE
from service.http.server import CONNECTIONS_MAX
from service.ledger.rebuild.swap import LOCK_MILLISECONDS, STATEMENT_SECONDS
from service.ledger.service_keys import SIGNS_AFTER
from service.mail import partner_notices, recipients, smtp
from service.mail.port import ANSWER_SECONDS
from service.operations.metrics import FILE_BYTES
from service.operations.tracing.otlp import QUEUE_MAX
from service.pages.visit import FORM_BYTES_MAX, QUERY_BYTES_MAX
from service.people import sessions, sign_in
from service.request_log.retention import KEPT
from service.storage.signer import LIFETIME as UPLOAD_URLS
from service.webhooks.deliveries import ASIDE_MAX
from service.webhooks.waits import ENDPOINT_WAIT_SECONDS_MAX, GIVES_UP_AFTER

WORDS = {3: "three", 4: "four", 5: "five", 10: "ten", 20: "twenty", 30: "thirty"}


def minutes(length: timedelta) -> int:
    """Return a length in whole minutes."""
    return length // timedelta(minutes=1)


def kib(size: int) -> str:
    """Return a size in bytes as documents have it."""
    return f"{size // 1024} KiB" if size < 1 << 20 else f"{size >> 20} MiB"


def words(number: float) -> str:
    """Return a small whole number as a word."""
    return WORDS[int(number)]


def taken(retries: Retries) -> timedelta:
    """Return how long it takes until nothing is tried any more."""
    waits = (retries.wait_after(attempt) for attempt in range(1, retries.attempts_max))
    return sum(waits, timedelta())


DEFAULTS = {one.variable: one.default for one in SETTINGS}
FIGURES = {
    "README.md": [
        f"expires after {minutes(UPLOAD_URLS)} minutes",
        f"every call of the last {words(KEPT.days)} days",
    ],
    "ARCHITECTURE.md": [
        f"unknown keys are looked up {LOOK_UPS_PER_SECOND} times a second",
        f"It gives up on a lock after {LOCK_MILLISECONDS} ms",
        f"and on a statement after {words(STATEMENT_SECONDS)} seconds",
        f"Bodies above {kib(SMALL_BYTES_MAX)} wait for room",
        f"A process has {CONNECTIONS_MAX:,} places",
        f"signs {words(minutes(SIGNS_AFTER))} minutes after it was added",
        f"by the event's own time within {words(minutes(SLACK))} minutes",
        f"took nothing for {words(GIVES_UP_AFTER.days)} days is paused",
        f"with more than {ASIDE_MAX:,} refused events set aside",
        f"`audit verify` reads the log in up to {words(PROCESSES_MAX)} parts",
    ],
    "deploy/README.md": [
        f"Each process reserves {sum(FILE_BYTES.values()) / (1 << 20):.1f} MiB there",
        f"rests for up to {REST_SECONDS_MAX:.0f} seconds",
        f"whose event loop stands still for {SILENT_SECONDS_MAX:.0f} seconds",
        f"and at most {CONNECTIONS_MAX:,}",
        f"which should be {2 * CONNECTIONS_MAX:,} or more",
    ],
    "deploy/runbook.md": [
        f"processing has refused {ATTEMPTS_MAX} times in about a day",
        f"gave no verdict {ATTEMPTS_MAX} times in about a day",
        f"or {ATTEMPTS_MAX} attempts in about a day have failed",
        f"has not taken or refused within {words(smtp.DEADLINE_SECONDS)} seconds",
        f"the answer is awaited for {words(ANSWER_SECONDS / 60)} minutes",
        f"queues the hand-over again, with {ATTEMPTS_MAX} new attempts",
    ],
    "docs/monitoring.md": [f"a queue of {QUEUE_MAX:,} spans"],
    "docs/onboardings.md": [
        f"A mailbox gets at most {recipients.ALL_MAX} of them in 24 hours",
        f"of which one partner causes at most {recipients.PARTNER_MAX}",
        f"after {recipients.SHARED_MAX} of them a partner gets only its first one through",
        f"{sign_in.ASKED_MAX} in {minutes(sign_in.COUNTED_WITHIN)} minutes to a mailbox",
        f"the partner's team, {words(partner_notices.ADDRESSEES_MAX)} of them at the most",
    ],
    "docs/pages.md": [
        f"a form holds {kib(FORM_BYTES_MAX)}, an address 512 characters of printable ASCII",
        f"and a query {kib(QUERY_BYTES_MAX)}",
    ],
    "docs/partners/concepts.md": ["A link works once, for an hour."],
    "docs/partners/documents.md": [f"within {minutes(UPLOAD_URLS)} minutes"],
    "docs/partners/errors.md": [
        f"Your calls share {DEFAULTS['CLAIM_LEDGER_RATE_LIMIT_PER_MINUTE']} a minute",
    ],
    "docs/partners/webhooks.md": [
        f"for {words(GIVES_UP_AFTER.days)} days",
        f"rests between attempts for up to {int(ENDPOINT_WAIT_SECONDS_MAX) // 60} minutes",
    ],
    "docs/privacy.md": [f"An upload URL lives for {minutes(UPLOAD_URLS)} minutes."],
    "docs/security.md": [
        f"{POSTS_PER_MINUTE} forms a minute for each person",
        f"{POSTS_PER_MINUTE} forms a minute for each link",
        f"{PAGES_PER_MINUTE} pages a minute for each signed-in person",
        f"{TILES_A_MINUTE} requests a minute of each network",
        f"a sign-in link lives for {words(minutes(sign_in.LINK_LIFETIME))} minutes",
        f"A session lasts {sessions.LIFETIME // timedelta(hours=1)} hours",
        f"a sign-in of the last {words(minutes(sessions.FRESH))} minutes",
        f"| a body | {kib(BODY_BYTES_MAX)}; above {kib(SMALL_BYTES_MAX)} it waits for room",
        f"{DEFAULTS['CLAIM_LEDGER_RATE_LIMIT_PER_MINUTE']} requests a minute |",
    ],
}


@pytest.mark.parametrize("document", FIGURES)
def test_a_documents_figures_are_those_of_the_code(document):
    """Whoever changes one finds the sentences that promise it."""
    text = " ".join(Path(document).read_text().split())
    assert [sentence for sentence in FIGURES[document] if sentence not in text] == []


def test_lengths_that_documents_have_in_words():
    """An hour for a connect link; about a day for what leaves the service."""
    assert timedelta(hours=1) == CONNECT_LINKS
    assert timedelta(days=1) <= taken(FOR_A_DAY) < timedelta(hours=25)
