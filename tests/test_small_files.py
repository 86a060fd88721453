import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.small_files import files_of_at_most

pytestmark = pytest.mark.server  # for the process that it starts


def test_no_bytecode_is_cut_off(tmp_path, monkeypatch):
    """A module that is imported under the limit leaves none, from this process or another."""
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("imported_here", "imported_there"):
        (tmp_path / f"{name}.py").write_text("NUMBERS = [*range(100)]\n")
    with files_of_at_most(100):
        import_module("imported_here")
        other = [sys.executable, "-c", "import imported_there"]
        subprocess.run(other, cwd=tmp_path, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "imported_here.py",
        "imported_there.py",
    ]


def test_sizes_are_limited_by_the_helper_alone():
    """A limit without it would leave the installed program broken where a module was new."""
    root = Path(__file__).parent
    found = {
        str(path.relative_to(root)) for path in root.rglob("*.py") if "_FSIZE" in path.read_text()
    }
    assert found == {"small_files.py", "test_small_files.py"}, (
        "limit the size of files by files_of_at_most of tests/small_files.py"
    )
