"""One process of a run has what is slow to start and shared."""

from tests.shared_scopes import SHARED, shared_by


def test_files_that_share_something_are_known_as_such(request):
    """By their text, which is all that the scheduler has, and by their tests' fixtures alike."""
    for name, (folder, _) in SHARED.items():
        uses = {item.path for item in request.session.items if name in item.fixturenames}
        here = [path for path in uses if path.parent.name == folder]
        assert [path.name for path in here if shared_by(path) != name] == []
