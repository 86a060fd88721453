"""Write the bytecode of the tests, with pytest's assertions, before several processes need it.

Each process of a run imports all tests, all at once: without this, each compiles them all.
"""

from pathlib import Path
from types import SimpleNamespace

from _pytest.assertion import rewrite

ROOT = Path(__file__).parents[1]
REWRITTEN = ("test_*.py", "conftest.py")


def write(directory: Path) -> list[Path]:
    """Write it for the tests below a directory; return where it is."""
    sources = [file for pattern in REWRITTEN for file in sorted(directory.rglob(pattern))]
    return [_written(source) for source in sources]


def _written(source: Path) -> Path:
    """Do what pytest does when it first imports a file: it has no public name for that."""
    cache = rewrite.get_cache_dir(source)
    cache.mkdir(exist_ok=True)
    written = cache / f"{source.stem}{rewrite.PYC_TAIL}"
    digest, code = rewrite._rewrite_test(source, None)  # noqa: SLF001 - as above
    rewrite._write_pyc(SimpleNamespace(trace=print), code, digest, written)  # noqa: SLF001 - as above
    return written


if __name__ == "__main__":
    write(ROOT / "tests")
