"""What a process does in the background, by its settings."""

from service.app.background import background
from service.app.bootstrap import Service
from service.mail.transport import mail_transport
from tests.patience import PATIENCE_SECONDS
from tests.world import settings_for

NO_SERVER = "postgresql://nobody@127.0.0.1:1/none"


def test_documents_are_checked_where_their_buckets_are_known(tmp_path):
    """Another process would take checks that it cannot make, and use their attempts up."""
    buckets = {"LIVE_BUCKET": "a-bucket", "TEST_BUCKET": "another-bucket"}
    for given, checked in (
        ({}, set()),
        (buckets, {"live.document_checks", "test.document_checks"}),
    ):
        names = followers(settings_for(NO_SERVER, tmp_path, **given))
        assert {name for name in names if name.endswith("document_checks")} == checked, given


def followers(settings):
    """Return the names of what follows a log, or repeats a step."""
    names = []

    def noted(name, step):
        names.append(name)
        return step

    service = Service(settings, deadline_seconds=PATIENCE_SECONDS)
    background(service, mail_transport(settings.smtp_url), around=noted)
    return names
