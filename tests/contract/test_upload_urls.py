"""`POST /documents/upload-url`: contract 2.4 and 4.3, and their readings."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from service.documents.paths import EXTENSIONS, UPLOADS_OF_CLAIM_MAX
from tests.contract.events import execute
from tests.contract.refusals import fields, refused
from tests.document_store import BUCKETS, CONTENT, PDF
from tests.tables import every_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

RANGE = "x-goog-content-length-range"
BODY = {
    "entity_id": "ent_none",
    "partner_claim_id": "case-1",
    "filename": "a.pdf",
    "mime_type": PDF,
}
SHAPE = re.compile(
    r"entities/(?P<entity>[^/]+)/claims/(?P<key>[0-9a-hjkmnp-tv-z]{26})"
    r"/documents/doc_[0-9a-hjkmnp-tv-z]{26}\.(?P<extension>[a-z]+)"
)


async def minted(documents, **more):
    """Return a partner, its entity and the body of an upload URL."""
    partner, entity = await documents.world.connected()
    answer = await documents.mint(partner, entity, **more)
    assert answer.status_code == 201, answer.text
    return partner, entity, answer.json()


def key_of(body):
    """Return the claim key in a path."""
    match = SHAPE.fullmatch(body["storage_path"])
    assert match
    return match["key"]


async def test_a_fresh_url_is_201_with_the_fields_of_the_contract(documents):
    """Contract 2.4, in its order; no cache may store it."""
    partner, entity = await documents.world.connected()
    answer = await documents.mint(partner, entity)
    body = answer.json()

    assert answer.status_code == 201
    assert list(body) == [
        "upload_url",
        "storage_path",
        "method",
        "expires_at",
        "required_headers",
    ]
    assert body["method"] == "PUT"
    assert body["required_headers"] == {"Content-Type": PDF, RANGE: "0,52428800"}
    assert answer.headers["Cache-Control"] == "no-store"
    assert int(answer.headers["X-RateLimit-Remaining"]) > 0
    match = SHAPE.fullmatch(body["storage_path"])
    assert match
    assert (match["entity"], match["extension"]) == (entity, "pdf")


async def test_the_url_is_signed_for_that_path_and_fifteen_minutes(documents):
    """V4 with both required headers; expires_at is the URL's own date plus its lifetime."""
    _, _, body = await minted(documents)
    url = urlsplit(body["upload_url"])
    query = {name: value for name, (value,) in parse_qs(url.query).items()}
    signed_at = datetime.strptime(query["X-Goog-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)

    assert url.path == f"/{BUCKETS['live']}/{body['storage_path']}"
    assert query["X-Goog-Algorithm"] == "GOOG4-RSA-SHA256"
    assert query["X-Goog-SignedHeaders"] == f"content-type;host;{RANGE}"
    assert query["X-Goog-Expires"] == "900"
    expires_at = datetime.strptime(body["expires_at"], "%Y-%m-%dT%H:%M:%S.%f%z")
    assert expires_at == signed_at + timedelta(seconds=900)
    assert body["expires_at"].endswith(".000Z")


async def test_the_mime_type_decides_on_the_extension(documents):
    """The type has to be sent with the upload; the filename does not matter."""
    partner, entity, _ = await minted(documents)
    with every_row() as row:
        for mime_type, extension in EXTENSIONS.items():
            with row(mime_type):
                answer = await documents.mint(
                    partner, entity, mime_type=mime_type, filename="a.exe"
                )
                body = answer.json()
                assert body["storage_path"].endswith(f".{extension}")
                assert body["required_headers"]["Content-Type"] == mime_type


async def test_the_cap_is_in_the_header_to_echo(documents):
    """Contract 2.4: `0,<max_bytes>`."""
    partner, entity, _ = await minted(documents)
    for most in (1, 1000, 52_428_800):
        answer = await documents.mint(partner, entity, max_bytes=most)
        assert answer.json()["required_headers"][RANGE] == f"0,{most}"


MIME_TYPES = ("", "text/html", "application/PDF", "application/pdf; charset=utf-8", " image/png")
REFUSED = [
    *(("mime_type", value) for value in (*MIME_TYPES, None, 1)),  # byte for byte one of the ten
    *(("max_bytes", value) for value in (0, -1, 52_428_801, 10**30, 1.5, "1", True, None, [])),
    *(("filename", value) for value in ("", "f" * 256, "a\0b")),
]


async def test_invalid_upload_requests_are_refused(documents):
    """Other MIME types, caps outside 1 to 50 MB, filenames that cannot be stored."""
    partner, entity, _ = await minted(documents)
    with every_row() as row:
        for name, value in REFUSED:
            with row(name, repr(value)[:40]):
                assert fields(await documents.mint(partner, entity, **{name: value})) == [name]


async def test_the_cap_holds_for_the_upload(documents):
    """Exactly the cap is stored; one more byte is EntityTooLarge."""
    partner, entity = await documents.world.connected()
    large = await documents.put(
        await documents.mint(partner, entity, max_bytes=len(CONTENT)), CONTENT + b"!"
    )
    fitting = await documents.put(await documents.mint(partner, entity, max_bytes=len(CONTENT)))

    assert (large.status_code, fitting.status_code) == (400, 200)
    assert "<Code>EntityTooLarge</Code>" in large.text


async def test_all_fields_but_max_bytes_are_required(documents):
    """Contract 2.4."""
    partner = await documents.world.partner()
    for name in BODY:
        body = {other: value for other, value in BODY.items() if other != name}
        answer = await partner.call("POST", "/documents/upload-url", json=body)
        assert fields(answer) == [name]


async def test_a_filename_is_no_part_of_the_path(documents):
    """It is for people only, so anything that can be stored is accepted."""
    partner, entity, _ = await minted(documents)
    with every_row() as row:
        for filename in ("../../etc/passwd", "a/b\\c", "a\nb.pdf", "\u202efdp.exe", "f" * 255, " "):
            with row(repr(filename)):
                body = (await documents.mint(partner, entity, filename=filename)).json()
                assert SHAPE.fullmatch(body["storage_path"])
                assert filename not in body["upload_url"]


async def test_the_claim_key_stands_for_partner_and_reference(documents):
    """It is the same for the same pair, differs otherwise, and reveals neither."""
    world = documents.world
    one, other = await world.partner(), await world.partner()
    entity, second = await one.connected_entity(), await one.connected_entity()
    await other.connect(entity)
    asked = [
        (one, entity, "case-canary"),
        (one, entity, "case-canary"),
        (one, second, "case-canary"),
        (one, entity, "case-canarz"),
        (other, entity, "case-canary"),
    ]
    bodies = [(await documents.mint(*row)).json() for row in asked]
    keys = [key_of(body) for body in bodies]

    assert keys[0] == keys[1] == keys[2]
    assert len({keys[0], keys[3], keys[4]}) == 3
    assert len({body["storage_path"] for body in bodies}) == len(bodies)
    for body in bodies:
        assert "canar" not in body["upload_url"]
        assert one.partner_id not in body["upload_url"]


async def test_a_claim_has_so_many_uploads(documents):
    """More are a fault of the body; other claims have theirs, and what is swept makes room."""
    partner, entity, first = await minted(documents)
    more = (
        "with one as materialized (select * from live.uploads where storage_path = $1)"
        " insert into live.uploads (storage_path, claim_stream, mime_type, max_bytes, minted_at)"
        " select storage_path || n, claim_stream, mime_type, max_bytes, minted_at"
        " from one, generate_series(2, $2::int) as n"
    )
    path = first["storage_path"]
    await execute(documents.world, "live", more, path, UPLOADS_OF_CLAIM_MAX - 1)

    assert (await documents.mint(partner, entity)).status_code == 201
    assert fields(await documents.mint(partner, entity)) == ["partner_claim_id"]
    assert (await documents.mint(partner, entity, "case-2")).status_code == 201
    await execute(documents.world, "live", "delete from live.uploads where storage_path = $1", path)
    assert (await documents.mint(partner, entity)).status_code == 201


async def test_an_unconnected_entity_gets_no_url(documents):
    """Contract 7: 404 unknown, 403 not connected, 403 disconnected; nothing is signed."""
    partner, gone = await documents.world.connected()
    await partner.disconnect(gone)
    unconnected = await documents.world.entity()

    refused(await documents.mint(partner, "ent_unknown"), "entity_not_found")
    refused(await documents.mint(partner, unconnected), "entity_not_owned")
    refused(await documents.mint(partner, gone), "partner_disconnected")


async def test_the_modes_have_a_bucket_each(documents):
    """The other mode's entity does not exist."""
    partner, live = await documents.world.connected()
    ids = await partner.sandbox()
    answers = {
        "live": await documents.mint(partner, live),
        "test": await documents.mint(partner, ids.connected_entity_id, mode="test"),
    }
    for mode, answer in answers.items():
        path = urlsplit(answer.json()["upload_url"]).path
        assert path.startswith(f"/{BUCKETS[mode]}/entities/")
    refused(await documents.mint(partner, live, mode="test"), "entity_not_found")
    refused(await documents.mint(partner, ids.connected_entity_id), "entity_not_found")
    test = {"mode": "test"}
    refused(
        await documents.mint(partner, ids.disconnected_entity_id, **test), "partner_disconnected"
    )
    refused(await documents.mint(partner, ids.unconnected_entity_id, **test), "entity_not_owned")


@pytest.mark.parametrize("code", ["internal_error", "service_unavailable"])
async def test_upload_triggers_work_in_test_mode_only(documents, code):
    """Readings: in test mode alone."""
    partner = await documents.world.partner()
    test = (await partner.sandbox()).connected_entity_id
    answer = await documents.mint(partner, test, f"trigger_{code}", mode="test")
    refused(answer, code)
    assert ("Retry-After" in answer.headers) == (answer.status_code == 503)
    live = await documents.mint(partner, await partner.connected_entity(), f"trigger_{code}")
    assert live.status_code == 201


@pytest.mark.in_process("is of an installation without buckets")
async def test_without_a_bucket_documents_alone_are_unavailable(shared):
    """503 with Retry-After; claims without documents are created as usual."""
    partner, entity = await shared.connected()
    body = BODY | {"entity_id": entity}
    answer = await partner.call("POST", "/documents/upload-url", json=body)
    refused(answer, "service_unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    # By a code that no alert takes for PostgreSQL's.
    assert "'code': 'storage_unavailable'" in str(list(shared.metrics.registry.collect()))
    assert (await partner.claim(entity)).status_code == 201
