from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from service.core.errors import Refusal
from service.core.ids import new_id
from service.documents import paths
from service.documents.wire import MimeType

ENTITY = "ent_01jexample00000000000000000"
KEY = "01234567890123456789abcdef"
ID = "doc_01jexamp1e0000000000000000"
GOOD = f"entities/{ENTITY}/claims/{KEY}/documents/{ID}.pdf"


@dataclass
class Bad:
    """A path that no claim may have, and what is wrong with it."""

    why: str
    path: str


OUTSIDE = [
    Bad("nothing", ""),
    Bad("the prefix alone", paths.prefix(ENTITY, KEY)),
    Bad("a parent", GOOD.replace("documents/", "documents/../documents/")),
    Bad("a parent at the end", GOOD + "/.."),
    Bad("the same folder", GOOD.replace("documents/", "documents/./")),
    Bad("an escaped parent", GOOD.replace("documents/", "documents/%2e%2e/documents/")),
    Bad("an escaped slash", GOOD.replace("/documents/", "%2Fdocuments%2F")),
    Bad("two slashes", GOOD.replace("documents/", "documents//")),
    Bad("a slash before", "/" + GOOD),
    Bad("a slash after", GOOD + "/"),
    Bad("a back-slash", GOOD.replace("/", "\\")),
    Bad("a sibling whose prefix is alike", GOOD.replace(KEY, KEY + "0")),
    Bad("another claim", GOOD.replace(KEY, KEY[::-1])),
    Bad("another entity", GOOD.replace(ENTITY, "ent_other")),
    Bad("a newline after", GOOD + "\n"),
    Bad("a newline before", "\n" + GOOD),
    Bad("NUL after", GOOD + "\0"),
    Bad("DEL after", GOOD + "\x7f"),
    Bad("the folder itself", GOOD.replace(f"{ID}.pdf", ".")),
    Bad("its parent", GOOD.replace(f"{ID}.pdf", "..")),
    Bad("upper case", GOOD.upper()),
    Bad("a folder more", GOOD.replace("documents/", "documents/more/")),
]
UNKNOWN = [
    Bad("an escaped point", GOOD.replace(".pdf", "%2epdf")),
    Bad("white space after", GOOD + " "),
    Bad("an upper-case extension", GOOD.replace(".pdf", ".PDF")),
    Bad("another extension", GOOD.replace(".pdf", ".exe")),
    Bad("two extensions", GOOD + ".pdf"),
    Bad("no extension", GOOD.removesuffix(".pdf")),
    Bad("a short name", GOOD.replace(ID, ID[:-1])),
    Bad("a long name", GOOD.replace(ID, ID + "0")),
    Bad("a letter that is not Crockford's", GOOD.replace(ID, ID.replace("exam", "exau"))),
    Bad("another digit", GOOD.replace(ID, ID.replace("01jex", "0\u0661jex"))),
    Bad("another kind of id", GOOD.replace("doc_", "msg_")),
    Bad("a query", GOOD + "?x=1"),
]


def test_a_path_has_the_contracts_shape():
    """Contract 2.4: entity, claim key, generated name, extension of the MIME type."""
    assert paths.storage_path(ENTITY, KEY, ID, "application/pdf") == GOOD
    assert paths.document_id_of(GOOD, ENTITY, KEY) == ID


@pytest.mark.parametrize("mime_type", paths.EXTENSIONS)
def test_every_mime_type_makes_a_path_that_is_recognised(mime_type):
    """Every minted path can be referred to."""
    path = paths.storage_path(ENTITY, KEY, ID, mime_type)
    assert paths.document_id_of(path, ENTITY, KEY) == ID


def test_mime_types_match_the_wire_types():
    """Every accepted type has an extension, and no other type has one."""
    assert set(MimeType.__args__) == set(paths.EXTENSIONS)
    assert len(set(paths.EXTENSIONS.values())) == len(paths.EXTENSIONS) == 10


@pytest.mark.parametrize("bad", [*OUTSIDE, *UNKNOWN], ids=lambda one: one.why)
def test_any_other_path_is_refused(bad):
    """Paths are matched in full, byte for byte; names under the prefix are told from others."""
    assert paths.document_id_of(bad.path, ENTITY, KEY) is None
    assert paths.is_under(bad.path, ENTITY, KEY) is (bad in UNKNOWN)


def test_references_keep_their_order_and_clean_their_names():
    """Each has the id that its path was minted with."""
    other = GOOD.replace(ID, ID[:-1] + "1")
    found = paths.references(
        [(other, "image/png", "b/../x.png"), (GOOD, "application/pdf", "a.pdf")],
        ENTITY,
        KEY,
        {GOOD, other},
    )
    assert found == [
        paths.Reference(ID[:-1] + "1", other, "image/png", "b_.._x.png"),
        paths.Reference(ID, GOOD, "application/pdf", "a.pdf"),
    ]


@pytest.mark.parametrize(
    ("names", "code", "named"),
    [
        (("nowhere", GOOD, f"{GOOD}x", ""), "document_path_invalid", "[0], document_refs[3]:"),
        ((f"{GOOD}x", GOOD, f"{GOOD}y"), "document_not_uploaded", "[0], document_refs[2]:"),
    ],
)
def test_every_path_that_was_not_minted_is_named(names, code, named):
    """By its number, in the message: the code is of the whole request, and one outside wins."""
    asked = [(path, "application/pdf", "a.pdf") for path in names]
    with pytest.raises(Refusal, match=code) as refused:
        paths.references(asked, ENTITY, KEY, {GOOD})
    assert refused.value.message.startswith(f"document_refs{named}")


@pytest.mark.parametrize(
    ("ends", "common"),
    [(("a1.pdf",), "a1.pdf"), (("a3.pdf", "a1.pdf", "a2.png"), "a"), (("a.pdf", "b.pdf"), "")],
)
def test_what_paths_have_in_common(ends, common):
    """Of one path it is all of it; of several, what each of them begins with."""
    paths_of = [paths.Reference("doc", f"documents/{end}", "", "") for end in ends]
    assert paths.common_prefix(paths_of) == f"documents/{common}"


@pytest.mark.parametrize(
    ("filename", "shown"),
    [
        ("invoice.pdf", "invoice.pdf"),
        ("Rechnung für Zoë (2).pdf", "Rechnung für Zoë (2).pdf"),
        ("発票.pdf", "発票.pdf"),
        ("../../etc/passwd", ".._.._etc_passwd"),
        ("C:\\temp\\a.pdf", "C__temp_a.pdf"),
        ("a\r\nb\t.pdf", "a__b_.pdf"),
        ("a\x7f\x1b[0m.pdf", "a__[0m.pdf"),
        ("gpj\u202efdp.exe", "gpj_fdp.exe"),
        ("a\u2028b\u2029c", "a_b_c"),
        ('"<a>|*?', "__a____"),
        ("  a.pdf ", "a.pdf"),
        (" ", "document"),
        (".", "document"),
        ("..", "document"),
        (".profile", ".profile"),
    ],
)
def test_a_filename_is_cleaned_for_showing(filename, shown):
    """It contains no path and no characters that reverse the text direction."""
    assert paths.shown(filename) == shown


def test_a_path_says_when_it_was_minted_and_whose_it_is():
    """By the id in it. What this service never mints says neither, or no moment that there is."""
    moment = datetime(2026, 7, 1, 12, 0, 0, 123000, tzinfo=UTC)
    path = paths.storage_path("ent_1", "key", new_id("doc", moment), "application/pdf")
    assert (paths.minted_at(path), paths.entity_of(path)) == (moment, "ent_1")
    for other in (path + "x", path.replace("doc_", "dok_"), f"entities/a/{path}", "entities/a.pdf"):
        assert (paths.minted_at(other), paths.entity_of(other)) == (None, None)
    far = paths.storage_path("ent_1", "key", "doc_" + "z" * 26, "application/pdf")
    assert (paths.minted_at(far), paths.entity_of(far)) == (None, "ent_1")
