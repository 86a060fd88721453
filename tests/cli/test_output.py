"""What the command line prints of texts that others wrote."""

from service.cli.output import show


def test_what_nobody_sees_is_shown(capsys):
    """Whether Unicode calls it printable or not; nothing of it reaches the terminal."""
    show({"name": "Books\u3164", "label": "a\u202eb", "esc": "\x1b[31m"}, as_json=False)
    printed = capsys.readouterr().out
    assert "Books[U+3164]" in printed
    assert "\\u202e" in printed
    assert "\\u001b" in printed
    assert {"\u3164", "\u202e", "\x1b"} & set(printed) == set()
