"""Characters that nobody sees are refused in names, and shown where they stand elsewhere."""

import unicodedata

from service.core.invisible_characters import blanked, name_fault, unseen_fault, visible
from tests.tables import every_row

SEEN = (
    *("", "plain", "é", "Łódź & Söhne", "בנק", "شركة", "株式会社", "a\u00a0b"),
    *("\u2764\ufe0f", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2600\ufe0e"),
    *("\u2764\ufe0f\u200d\U0001f525", "1\ufe0f\u20e3", "#\ufe0f\u20e3", "Books\u2122\ufe0f"),
    *("1\u20e3", "ng\u0302\u0301\u0323\u0308", "\u101b\u103d\u103e\u1036\u1037"),
)
UNSEEN = (
    *("\x00", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\ud800"),
    *("\u200e", "\u200f", "\u061c", "\u202a", "\u202e", "\u2066", "\u2069"),
    *("\xad", "\u034f", "\u200b", "\u200c", "\u200d", "\u2060", "\u2064", "\ufeff", "\ufe0f"),
    *("\u115f", "\u3164", "\uffa0", "\u2800", "\u180e", "\ufff9", "\U000e0041"),
)
VISIBLE_FORMATS = range(0x600, 0x606), (0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)
"""Signs before numbers and the like, which fonts draw, though Unicode calls them formats."""


def test_what_is_seen_stays():
    """Whatever the script; emoji keep the marks that they are made with."""
    with every_row() as row:
        for text in SEEN:
            with row(text):
                assert (visible(text), unseen_fault(text), name_fault(text)) == (text, None, None)
                assert blanked(text) == text


def test_what_is_not_seen_is_shown_and_refused():
    """Anywhere in a text, also where it looks like a part of an emoji."""
    with every_row() as row:
        for mark in UNSEEN:
            for text in (mark, f"a{mark}b", f"{mark}\u2764", f"a{mark}"):
                with row(ascii(text)):
                    shown = f"[U+{ord(mark):04X}]"
                    assert visible(text) == text.replace(mark, shown)
                    assert shown[1:-1] in (unseen_fault(text) or "")
                    assert name_fault(text)
                    assert blanked(text) == text.replace(mark, " ")


def test_what_makes_emoji_is_seen_in_them_alone():
    """Neither after what is no emoji, nor after a selector that is itself unseen there."""
    texts = {
        "a\ufe0f\u200d\u2764": "a[U+FE0F][U+200D]\u2764",
        "\u2764\ufe0f\ufe0f\u200d\u2764": "\u2764\ufe0f[U+FE0F][U+200D]\u2764",
        "\u2122\ufe0f\u200d\u2764": "\u2122\ufe0f[U+200D]\u2764",
        "a\ufe0f\u20e3": "a[U+FE0F]\u20e3",
        "1\ufe0e\u20e3": "1[U+FE0E]\u20e3",
        "1\ufe0f": "1[U+FE0F]",
    }
    with every_row() as row:
        for text, shown in texts.items():
            with row(ascii(text)):
                assert visible(text) == shown
                assert "cannot be seen" in (unseen_fault(text) or "")


def test_a_tower_of_marks_is_cut():
    """Four stay on each letter. Whatever they are, those above are shown and refused."""
    marks = [one for one in map(chr, range(0x110000)) if unicodedata.category(one) in {"Mn", "Me"}]
    assert len(marks) > 1900
    with every_row() as row:
        for mark in marks:
            with row(ascii(mark)):
                tower = f"l{mark * 6}"
                assert not visible(tower).endswith(mark)
                assert f"U+{ord(mark):04X}" in (name_fault(tower) or "")
    towers = ("l" + "\u0301" * 20) * 12
    assert visible(towers) == ("l" + "\u0301" * 4 + "[U+0301]" * 16) * 12
    assert blanked(towers) == ("l" + "\u0301" * 4 + " " * 16) * 12
    assert unseen_fault(towers) == "contains more than 4 marks on a letter (U+0301)"
    assert visible("\u0301\u0300\u20dd\u0e47\u0302") == "\u0301\u0300\u20dd\u0e47[U+0302]"


def test_a_text_of_white_space_alone_is_shown():
    """A name of nothing else would be a link that nobody sees; people's forms refuse it."""
    with every_row() as row:
        for code in (0x20, 0xA0, 0x2003, 0x3000):
            with row(hex(code)):
                assert visible(chr(code) * 2) == f"[U+{code:04X}]" * 2
                assert name_fault(chr(code)) == "contains only white space"
                assert visible(f"{chr(code)}a") == f"{chr(code)}a"


def test_lines_end_in_texts_and_not_in_names():
    """A text of several lines keeps them; a name has one."""
    with every_row() as row:
        for end in ("\n", "\r\n", "\t"):
            with row(ascii(end)):
                text = f"a{end}b"
                assert (visible(text), unseen_fault(text)) == (text, None)
                assert name_fault(text) == "contains line breaks"
                assert set(blanked(text)) == {"a", " ", "b"}


def test_no_control_or_format_of_unicode_is_left_out():
    """A release of Unicode that adds one fails here."""
    seen = {one for codes in VISIBLE_FORMATS for one in codes} | set(range(0x13430, 0x13456))
    left = [
        hex(code)
        for code in {*range(0x110000)} - seen - {9, 10, 13}
        if unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        and unseen_fault(chr(code)) is None
    ]
    assert left == []
