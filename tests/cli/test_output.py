"""What the command line prints of texts that others wrote."""

from click.testing import CliRunner

from service.cli import cli
from service.cli.output import show


def test_a_number_is_called_so():
    """Click calls it an integer range, as if two numbers had to be given."""
    done = CliRunner().invoke(cli, ["dev", "--port", "foo"])
    assert (done.exit_code, "'foo' is not a valid number." in done.output) == (2, True)


def test_what_nobody_sees_is_shown(capsys):
    """Whether Unicode calls it printable or not; nothing of it reaches the terminal."""
    show({"name": "Books\u3164", "label": "a\u202eb", "esc": "\x1b[31m"}, as_json=False)
    printed = capsys.readouterr().out
    assert "Books[U+3164]" in printed
    assert "\\u202e" in printed
    assert "\\u001b" in printed
    assert {"\u3164", "\u202e", "\x1b"} & set(printed) == set()
