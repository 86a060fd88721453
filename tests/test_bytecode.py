"""Bytecode that is written ahead is what pytest reads."""

from _pytest.assertion import rewrite

from tests.bytecode import write


def test_pytest_takes_what_is_written(tmp_path):
    """With its assertions; and it compiles a file anew that has changed since."""
    source = tmp_path / "test_something.py"
    source.write_text("def test_it(): assert 1 == 2\n")
    (written,) = write(tmp_path)
    assert written.name == f"test_something{rewrite.PYC_TAIL}"
    code = rewrite._read_pyc(source, written)  # noqa: SLF001 - what pytest's import does
    assert code is not None
    assert "@pytest_ar" in code.co_names
    source.write_text("def test_it(): assert 2 == 2\n")
    assert rewrite._read_pyc(source, written) is None  # noqa: SLF001 - as above
