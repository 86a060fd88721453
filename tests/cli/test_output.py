"""What the command line prints of texts that others wrote."""

import errno
import fcntl
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from service.cli import cli
from service.cli.output import show
from tests.dev_process import environment, state
from tests.patience import PATIENCE_SECONDS, until
from tests.prepared import start_prepared


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


@pytest.mark.server
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("keys-at-rest keygen", 1),
        ("keys-at-rest keygen --json", 1),
        ("claims show \udcff --json", 1),
        ("migrate --json", 1),
        ("audit verify --none --json", 2),
        ("--help", 1),
        ("audit verify --help", 1),
        ("--version", 1),
    ],
)
def test_an_answer_that_cannot_be_written_is_told(tmp_path, arguments, code):
    """In one line, without a traceback: a secret that was not shown is lost."""
    said = tmp_path / "said"
    with Path("/dev/full").open("wb") as full, said.open("wb") as told:
        done = start_prepared(arguments.split(), environment(), full, told)
        ended = done.wait(PATIENCE_SECONDS)
    line = said.read_text()
    assert (ended, line.count("\n")) == (code, 1), line
    assert line.startswith("Error: the answer could not be written: No space left on device")


def test_a_reader_that_is_slow_gets_all_of_it():
    """Also where stdout does not block, and has no room for the answer."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    room = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, select.PIPE_BUF)
    os.write(writing, b"." * room)
    command = [sys.executable, "-c", "from service.cli import main; main()", "--version"]
    with (
        os.fdopen(reading, "rb") as reader,
        subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, env=environment()) as one,
    ):
        os.close(writing)
        until(lambda: state(one.pid) == "S")
        printed = reader.read()
        assert one.stderr is not None
        assert (one.wait(), one.stderr.read()) == (0, b"")
    assert printed.startswith(b"." * room + b"-c, version ")


CLOSED = """
import os, sys
from service.cli.closed_streams import lose_output, open_closed
assert open_closed()
assert not sys.stdin.isatty()
assert sys.stdin.read() == ""
sys.stderr.buffer.write(b"goes nowhere")
assert [os.get_inheritable(one) for one in range(3)] == [True] * 3
try:
    print("lost", flush=True)
except OSError as error:
    lose_output()
    print("a line of a log", flush=True)
    os._exit(error.errno)
"""


@pytest.mark.server
def test_streams_that_are_closed_are_opened_on_nothing():
    """But to write to stdout fails: no answer is lost in silence. A log may be."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, CLOSED], check=False
    )
    assert done.returncode == errno.EBADF


@pytest.mark.server
@pytest.mark.parametrize("command", ["keys-at-rest keygen", "partners list --json", "--help"])
def test_a_closed_stdout_is_told(command):
    """In one line, whatever was to be printed: an answer, a refusal, or help.

    Also at the interpreter's end, which a prepared process has not.
    """
    script = f'exec "$0" -c "from service.cli import main; main()" {command} >&-'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable], stderr=subprocess.PIPE, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("Error: the answer could not be written: Bad file descriptor")
