"""One process of a run has the browser."""

from tests.one_browser import visits


def test_files_that_visit_pages_are_known_as_such(request):
    """By their text, which is all that the scheduler has, and by their tests' fixtures alike."""
    visiting = {item.path for item in request.session.items if "browser" in item.fixturenames}
    assert {path for path in visiting if not visits(path)} == set()
