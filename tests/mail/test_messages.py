"""The magic-link mail's text, and that names cannot inject headers."""

import email
import email.policy
import re
import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from email.message import EmailMessage

import pytest

from service.core.invisible_characters import unseen_fault
from service.mail.names import NAME_CHARACTERS_MAX, header_name, shown
from service.mail.notices import stage_changed
from service.mail.port import MailRefused
from tests.mail.mail_server import LINK, html, mail, plain
from tests.tables import every_row

HEADERS = {
    "From",
    "To",
    "Subject",
    "Date",
    "Message-ID",
    "Auto-Submitted",
    "MIME-Version",
    "Content-Type",
}
BREAKS = ["\r\n", "\n", "\r", "\0", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\ud800", "\u202e"]

COUNTRIES = """
    y9a3aq 90ais 90ae fiqs8s fiqz9s wgbh1c e1a4c node qxa6a qxam j6w193g h2brj9c h2breg3eve
    h2brj9c8c 2scrj9c 3hcrj9c 45br5cyl 45brj9c mgbbh1a mgbbh1a71e mgbgu82a rvc1e0am3e fpcrj9c3d
    gecrj9c s9brj9c xkc2dl3a5ee0h xkc2al3hye2a mgba3a4f16a mgbtx2b 4dbrk0ce mgbayh7gpa 80ao21a
    q7ce6a mix891f mgbx4cd0ab mgbah1a3hjkrd l1acc mgbc0a9azcg d1alf mgb9awbf mgbai9azgqp6j
    ygbi2ammx wgbl6a p1ai mgberp4a5d4ar 90a3ac yfro4i67o clchc0ea0b2g2a9gcd 3e0b707e fzc2c9e2c
    mgbpl2fh ogbpf8fl kprw13d kpry57d o3cw4h pgbs0dh j1amh mgbaam7a8h mgb2ddes lgbbat1ad8j
    mgbcpq6gpa1a 54b7fta0cc
"""
"""The top-level domains of countries that are beyond ASCII, without `xn--` (IANA's root zone)."""

INITIALS = (
    *("न.पा. मुंबई", "ग्रा.पं. पुणे", "रा.स्व.सं.", "ব.বি."),
    *("Foo S.à r.l.", "A.Ş. Türk", "J.Ö. Berg", "V.Ă.", "B.Ộ"),
)


def received(message: EmailMessage) -> EmailMessage:
    """Return the message as the recipient reads it."""
    parsed = email.message_from_bytes(message.as_bytes(), policy=email.policy.default)
    assert isinstance(parsed, EmailMessage)
    return parsed


def content(message: EmailMessage) -> str:
    """Return the text with plain line ends."""
    return plain(message)


def test_the_text_explains_the_link() -> None:
    """It says who referred whom, what the link does, that it works once, and until when."""
    message = received(mail())
    words = " ".join(content(message).split())
    for part in (
        "Hello Zoë Müller,",
        "Books & Co has referred Łódź Paints Ltd to us.",
        f"open this link: {LINK} The link works once",
        "works once, until 8 March 2026, 14:30 UTC",
        "Opening it does not use it up",
    ):
        assert part in words
    assert message["Subject"] == "Finish setting up Łódź Paints Ltd"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Message-ID"] == "<onb_01-magic-link@example.com>"
    assert message["Date"].datetime == datetime(2026, 3, 1, 14, 30, tzinfo=UTC)


def test_the_mail_has_no_tracking() -> None:
    """Text and HTML that say the same, a single link in each, no images, no unneeded headers."""
    message = received(mail(company_name="<Paints> & Co"))
    parts = [part.get_content_type() for part in message.iter_parts()]
    assert (message.get_content_type(), parts) == (
        "multipart/alternative",
        ["text/plain", "text/html"],
    )
    assert content(message).count("://") == html(message).count("://") == 1
    assert f'<a href="{LINK}">' in html(message)
    assert "&lt;Paints&gt; &amp; Co" in html(message)
    assert set(re.findall(r"<(\w+)", html(message))) == {
        *("html", "head", "meta", "title", "body", "p", "a"),
    }
    assert set(message.keys()) == HEADERS


def test_a_missing_name_is_not_greeted() -> None:
    """Nobody is greeted as None."""
    message = received(mail(user_name=None))
    assert content(message).startswith("Hello,\n")
    assert str(message["To"]) == "owner@example.com"


def test_times_are_shown_in_utc() -> None:
    """Whatever their time zone."""
    zone = timezone(timedelta(hours=2))
    message = mail(expires_at=datetime(2026, 3, 9, 1, 0, tzinfo=zone))
    assert "8 March 2026, 23:00 UTC" in content(message)


@pytest.mark.parametrize("field", ["user_name", "company_name", "partner_name"])
@pytest.mark.parametrize("line_break", BREAKS)
def test_names_cannot_inject(field: str, line_break: str) -> None:
    """A line break in a name becomes a space: no header, no paragraph, no reordering."""
    evil = f"Evil{line_break}Bcc: victim@example.com{line_break}{line_break}https://evil.example"
    message = received(mail(**{field: evil}))
    assert set(message.keys()) == HEADERS
    assert [address.addr_spec for address in message["To"].addresses] == ["owner@example.com"]
    paragraphs = content(message).split("\n\n")
    assert len(paragraphs) == 6
    assert paragraphs[2] == LINK
    assert line_break == "\n" or line_break not in content(message)
    assert line_break not in str(message["Subject"])


@pytest.mark.parametrize("name", ['"', "\\", "a, b <x@example.net>", "=?utf-8?q?Bcc?=", "{link}"])
@pytest.mark.parametrize("field", ["user_name", "company_name", "partner_name"])
def test_special_characters_in_names_are_literal(field: str, name: str) -> None:
    """Characters with a meaning in headers or templates have none here."""
    message = received(mail(**{field: name}))
    assert [address.addr_spec for address in message["To"].addresses] == ["owner@example.com"]
    assert field == "user_name" or name.replace("@", "[at]") in content(message).replace("[.]", ".")


@pytest.mark.parametrize("field", ["user_name", "company_name", "partner_name"])
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("https://evil.example", "https[:]//evil[.]example"),
        ("Pay at HTTPS://evil.example/a now", "Pay at HTTPS[:]//evil[.]example/a now"),
        ("www.evil.example", "www[.]evil[.]example"),
        ("WWW.evil.example", "WWW[.]evil[.]example"),
        ("evil.example/pay", "evil[.]example/pay"),
        ("ftp://evil.example", "ftp[:]//evil[.]example"),
        ("Example.com Ltd", "Example[.]com Ltd"),
        ("evil.example", "evil[.]example"),
        ("evil\u3002example", "evil[.]example"),
        ("evil\uff0eexample", "evil[.]example"),
        ("pay@evil.example", "pay[at]evil[.]example"),
        ("192.0.2.1", "192[.]0[.]2[.]1"),
        ("Call +44 (20) 7946-0000 now", "Call [number] now"),
        ("Call \uff10\uff18\uff10\uff10 123456", "Call [number]"),
        ("Call \u2460\u2461\u2462\u2463\u2464\u2465\u2466", "Call [number]"),
        ("\u2080\u2088\u2080\u2080\u2081\u2082\u2083 now", "[number] now"),
        ("Call " + "--".join(f"{digit}\ufe0f\u20e3" for digit in range(7)), "Call [number]"),
        ("i\u2764\ufe0f.ws", "i\u2764\ufe0f[.]ws"),
        ("\u0e17\u0e35\u0e48.com", "\u0e17\u0e35\u0e48[.]com"),
        ("evil\ufe52example", "evil[.]example"),
        ("Area 51 Studio 2026", "Area 51 Studio 2026"),
        ("J.R.R. No.1 S.p.A.", "J.R.R. No.1 S.p.A."),
        ("St. Mary 2.0 (.NET)", "St. Mary 2.0 (.NET)"),
        ("A/B Trading (Dr. Who)", "A/B Trading (Dr. Who)"),
    ],
)
def test_names_are_no_links(field: str, name: str, shown: str) -> None:
    """A name that looks like an address or a number is readable and does not link; others stay.

    In the subject, the recipient's name and the greeting it does not appear at all.
    """
    message = received(mail(**{field: name}))
    text = " ".join(content(message).split())
    assert field == "user_name" or shown in text
    assert content(message).count("://") == 1
    assert "www." not in text.lower()
    if shown != name:
        greeting = text.partition(",")[0] if field == "user_name" else ""
        for part in (name, shown):
            assert part not in str(message["Subject"]) + str(message["To"]) + greeting


@pytest.mark.parametrize(
    "name",
    [
        *("evil.example", "pay@evil.example", "https://evil.example", "192.0.2.1", "evil.xn--p1ai"),
        *("\u200b \u2060" * 200 + "evil.example", "\u200b" * 300 + "0800 123456"),
        *("\uff45vil\uff0eexample", "evil\u200b.example", "evil\u3002example", "Zoë.evil.example"),
        *("0800 123456", "+1-555-010-0000", "tel:5550100", "\u0660\u0668\u0660\u0660 123456"),
        *("call 0.8.0.0.1.2.3", "\u2460\u2461\u2462\u2463\u2464\u2465\u2466"),
    ],
)
def test_contact_data_is_in_no_header(name: str) -> None:
    """However it is written: a generic subject, and nobody is greeted."""
    message = received(mail(user_name=name, company_name=name, partner_name=name))
    assert message["Subject"] == "Finish setting up your business"
    assert str(message["To"]) == "owner@example.com"
    assert content(message).startswith("Hello,\n")


def test_what_nobody_sees_changes_nothing() -> None:
    """Names are judged and cut as they are read, however much stands before, within and behind."""
    codes = (*range(0x3200), 0xD800, 0xFE00, 0xFEFF, 0xFFA0, 0xFFF9, 0x1D173, 0xE0041)
    unseen = [one for one in map(chr, codes) if unseen_fault(one) and not one.isspace()]
    assert len(unseen) > 100
    names = (
        "pay at evil.com",
        "call \u2460\u2461\u2462 \u2463\u2464\u2465 \u2466\u2467\u2468",
        "Zo\xeb & Co",
    )
    with every_row() as row:
        for one in unseen:
            for name in names:
                padded = (one * 130).join(f" {name} ")
                with row(ascii(one), ascii(name)):
                    assert (header_name(padded), shown(padded)) == (header_name(name), shown(name))
    assert [header_name(name) for name in names] == ["", "", "Zo\xeb & Co"]
    tower = "\u0301" * 20
    assert header_name(f"l{tower}") == shown(f"l{tower}") == f"l{tower[:4]}"


def test_a_domain_in_any_script_is_no_link() -> None:
    """Whatever sign of words stands before the dot, and under every country's domain."""
    kinds: dict[str, list[str]] = {}
    for one in map(chr, range(0x110000)):
        kinds.setdefault(unicodedata.category(one)[0], []).append(one)
    some = [one for kind in "LMNS" for one in kinds[kind][:: len(kinds[kind]) // 300]]
    names = [f"a{one}.com" for one in some]
    names += [f"a.{name.encode().decode('punycode')}" for name in COUNTRIES.split()]
    assert len(names) > 1000
    left = [ascii(one) for one in names if header_name(one) or one[one.index(".") :] in shown(one)]
    assert left == []


def test_initials_in_any_script_stay() -> None:
    """A letter is one with its marks, too, and where two are joined into one."""
    with every_row() as row:
        for name in INITIALS:
            for form in ("NFC", "NFD"):
                written = unicodedata.normalize(form, name)
                with row(form, name):
                    assert (header_name(written), shown(written)) == (written, written)


def test_a_name_that_nobody_sees_is_replaced() -> None:
    """No sentence has a gap where the company's name would be."""
    for name in ("\u3000", " \u200b", "\ufe00"):
        words = " ".join(content(mail(company_name=name, user_name=name)).split())
        assert words.startswith("Hello, Books & Co has referred your business to us.")
        assert "To finish setting up your business, open" in words
        moved = stage_changed(company_name=name, stage="closed", claim=LINK)
        assert "A claim of your business has moved to a new stage" in moved.text


def test_long_names_are_cut() -> None:
    """No line is longer than mail allows (998 bytes)."""
    message = mail(**dict.fromkeys(["user_name", "company_name", "partner_name"], "語" * 5000))
    assert "語" * (NAME_CHARACTERS_MAX - 1) + "…" in message["Subject"]
    assert max(map(len, message.as_bytes().split(b"\r\n"))) <= 998


@pytest.mark.parametrize(
    "to",
    [
        "",
        "nobody",
        "@example.com",
        "owner@",
        "a@b@example.com",
        "owner@example.com, other@example.com",
        "owner <other@example.com>",
        "owner@exa mple.com",
        f"owner@{'ü' * 70}.example",
        *(f"owner@example.com{mark}Bcc: victim@example.com" for mark in BREAKS),
        *(f"own{mark}er@example.com" for mark in BREAKS[:-1]),
    ],
)
def test_a_malformed_recipient_is_refused(to: str) -> None:
    """It is refused for good: a corrected address might be somebody else's."""
    with pytest.raises(MailRefused) as caught:
        mail(to=to)
    assert caught.value.__context__ is None
    assert "victim" not in str(caught.value)


def test_an_international_domain_is_encoded() -> None:
    """A domain beyond ASCII is sent in its ASCII form, which every server accepts."""
    assert mail(to="owner@münchen.example")["To"].addresses[0].domain == "xn--mnchen-3ya.example"


@pytest.mark.parametrize("field", ["link", "sender", "message_id"])
@pytest.mark.parametrize("line_break", ["\r\n", "\n", "\r"])
def test_a_line_break_in_our_values_is_an_error(field: str, line_break: str) -> None:
    """A line break in what we generate ourselves raises."""
    good = {"link": LINK, "sender": "no-reply@example.com", "message_id": "x@example.com"}[field]
    with pytest.raises(ValueError):  # noqa: PT011 - the standard library's words in part
        mail(**{field: f"{good}{line_break}Bcc: victim@example.com"})


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "https://", "https://example.com/" + "x" * 900]
)
def test_invalid_links_are_refused(link: str) -> None:
    """A link is an http(s) URL that fits on a line."""
    with pytest.raises(ValueError, match="http"):
        mail(link=link)
