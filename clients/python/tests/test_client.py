"""What a caller of the client sees: answers, typed errors, pages, uploads, and no secret."""

import inspect
import json
import logging
import ssl
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace

import claim_ledger_client
import httpx2
import msgspec
import pytest
from claim_ledger_client import (
    ApiError,
    AsyncClient,
    ClaimRequest,
    Client,
    ConnectionLostError,
    ConnectRequest,
    Defendant,
    IncompatibleAnswerError,
    Invoice,
    Retries,
    UnreachableError,
    UnreadableAnswerError,
    UntrustedServerError,
    UploadRefusedError,
    UploadRequest,
    models,
    operations,
)
from claim_ledger_client._sync import calls
from claim_ledger_client.api_errors import BY_CODE, ValidationFailedError
from claim_ledger_client.models import ClaimResponse
from scripted import BASE_URL, EVENT, KEY, LIMITED, answer, refusal, scripted

DOCUMENT = json.loads((Path(__file__).parents[2] / "openapi.json").read_text())
CLAIM = ClaimRequest(
    entity_id="ent_1",
    partner_claim_id="case-1",
    defendant=Defendant(name="Debtor"),
    invoices=[Invoice(total_amount_for_invoice="10.00")],
)
CREATED = {"claim_id": "clm_1", "message_id": None, "document_ids": [], "already_existed": False}
UPLOAD = UploadRequest(
    entity_id="ent_1", partner_claim_id="case-1", filename="a.pdf", mime_type="application/pdf"
)


def minted(number: int) -> httpx2.Response:
    """Return an answer with an upload URL."""
    body = {
        "upload_url": f"https://storage.example.com/b/doc_{number}.pdf?X-Signature=sIgNaTuRe{number}",
        "storage_path": f"doc_{number}.pdf",
        "method": "PUT",
        "expires_at": "2026-03-01T10:15:30.123Z",
        "required_headers": {"Content-Type": "application/pdf", "x-range": "0,5"},
    }
    return answer(201, body)


def listed(*stages: str, token: str | None = None) -> httpx2.Response:
    """Return a page of claims, as the document's example but for these stages and the token."""
    response = DOCUMENT["paths"]["/claims"]["get"]["responses"]["200"]
    example = response["content"]["application/json"]["examples"]["answer"]["value"]
    claims = [example["claims"][0] | {"stage": stage, "a_new_field": 1} for stage in stages]
    return answer(200, example | {"claims": claims, "next_page_token": token})


def test_a_claim_is_sent_as_the_document_says():
    """The path, the key, the user agent, and nothing of what was left out."""
    client, script = scripted(answer(201, CREATED))
    assert client.claims.create(CLAIM).claim_id == "clm_1"
    (request,) = script.sent
    assert (request.method, str(request.url)) == ("POST", f"{BASE_URL}/claims")
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["User-Agent"].startswith("claim-ledger-client/")
    assert json.loads(request.content) == {
        "entity_id": "ent_1",
        "partner_claim_id": "case-1",
        "defendant": {"name": "Debtor"},
        "invoices": [{"total_amount_for_invoice": "10.00"}],
    }


async def test_the_asynchronous_client_is_the_same():
    """One retry, and an iteration over pages."""
    steps = (httpx2.ReadError("x"), answer(201, CREATED), listed("triage"))
    client, script = scripted(*steps, make=AsyncClient)
    async with client:
        assert (await client.claims.create(CLAIM)).claim_id == "clm_1"
        assert [one.stage async for one in client.claims.list("ent_1")] == ["triage"]
    assert len(script.sent) == 3


def test_a_script_says_which_request_it_has_no_answer_for():
    """A test that fails for want of an answer shows more than that an iterator ended."""
    client, _ = scripted(refusal(503, "service_unavailable"))
    with pytest.raises(AssertionError, match="POST /v1/claims after the last answer"):
        client.claims.create(CLAIM)


def test_every_operation_has_a_method():
    """With each parameter of its path and query."""
    client, _ = scripted()
    takes = {
        "get_claim": client.claims.get,
        "list_claims": client.claims.page,
        "list_events": client.events.page,
    }
    called = inspect.getsource(sys.modules[type(client.claims).__module__])
    for methods in DOCUMENT["paths"].values():
        for one in methods.values():
            assert f"{one['operationId'].upper()}, " in called
            names = {parameter["name"] for parameter in one.get("parameters", [])}
            if names:
                assert names <= set(inspect.signature(takes[one["operationId"]]).parameters)


def test_every_code_has_its_error():
    """With status, code, message, details and request id."""
    assert set(BY_CODE) == set(DOCUMENT["x-retry"]["codes"])
    details = {"formErrors": [], "fieldErrors": {"invoices": ["[0]: wrong"]}}
    body = {
        "error": "Bad Request",
        "code": "validation_failed",
        "message": "No.",
        "details": details,
    }
    client, _ = scripted(answer(400, body, X_Request_Id="req_1"))
    with pytest.raises(ValidationFailedError) as caught:
        client.claims.create(CLAIM)
    error = caught.value
    assert (error.status, error.code, error.request_id) == (400, "validation_failed", "req_1")
    assert error.details is not None
    assert error.details.field_errors == {"invoices": ["[0]: wrong"]}


def test_what_is_new_never_raises():
    """An unknown stage and field are answered, an unknown code is an ApiError of that code."""
    client, _ = scripted(listed("a_new_stage"), refusal(418, "a_new_code"))
    assert [one.stage for one in client.claims.list("ent_1")] == ["a_new_stage"]
    with pytest.raises(ApiError) as caught:
        client.claims.create(CLAIM)
    assert (type(caught.value), caught.value.code) == (ApiError, "a_new_code")


def test_what_may_be_null_may_be_absent():
    """Of each type: an older release answers without a member that was added later."""
    seen = 0
    for name, schema in DOCUMENT["components"]["schemas"].items():
        fields = {one.encode_name: one for one in msgspec.structs.fields(getattr(models, name))}
        for member, described in schema["properties"].items():
            if {"type": "null"} in described.get("anyOf", ()):
                assert fields[member].default in {None, msgspec.UNSET}, (name, member)
                seen += 1
    assert seen > 20


def test_an_answer_of_the_api_that_cannot_be_read_is_not_asked_for_again():
    """It would be the same; a page without the API's request id is a proxy's, and is."""
    short = {"claims": [], "next_page_token": None}
    client, script = scripted(answer(200, json.dumps(short).encode()), answer(200, short))
    with pytest.raises(IncompatibleAnswerError, match="entity_disconnected") as caught:
        client.claims.page("ent_1")
    assert caught.value.request_id == "req_1"
    assert len(script.sent) == 2


def test_a_part_of_a_path_is_escaped():
    """So that it can name nothing else."""
    client, script = scripted(refusal(404, "not_found"))
    with pytest.raises(ApiError):
        client.claims.get("../x?y=1")
    assert script.sent[0].url.raw_path == b"/v1/claims/..%2Fx%3Fy%3D1"


def test_pages_follow_one_another():
    """Until there is no token."""
    client, script = scripted(listed("a", "b", token="clm_b"), listed(token="clm_c"), listed("c"))
    stages = [one.stage for one in client.claims.list("ent_1", limit=2, partner_user_id="u")]
    assert stages == ["a", "b", "c"]
    tokens = [request.url.params.get("page_token") for request in script.sent]
    assert tokens == [None, "clm_b", "clm_c"]
    assert {request.url.params["partner_user_id"] for request in script.sent} == {"u"}


def test_events_are_read_until_there_are_none():
    """The cursor goes with each page, and an empty page ends."""
    event = EVENT | {"type": "a.new_type"}
    pages = ({"events": [event], "next_cursor": "c1"}, {"events": [], "next_cursor": "c1"})
    client, script = scripted(*(answer(200, page) for page in pages))
    assert [one.type for one in client.events.list()] == ["a.new_type"]
    assert [request.url.params.get("after") for request in script.sent] == [None, "c1"]


def test_an_upload_mints_again_after_a_403(tmp_path):
    """A lost answer is followed by a 403, and that by another URL; the storage gets no key."""
    lost, used_up = (
        httpx2.ReadError("cut"),
        answer(403, b"<Error><Code>AccessDenied</Code></Error>"),
    )
    client, script = scripted(minted(1), lost, used_up, minted(2), answer(200, b""))
    path = tmp_path / "a.pdf"
    path.write_bytes(b"bytes")
    reference = client.documents.upload(UPLOAD, path)
    assert (reference.storage_path, reference.filename) == ("doc_2.pdf", "a.pdf")
    puts = [request for request in script.sent if request.method == "PUT"]
    targets = [request.extensions["target"] for request in puts]
    assert targets == [b"/b/doc_%d.pdf?X-Signature=sIgNaTuRe%d" % (n, n) for n in (1, 1, 2)]
    for request in puts:
        assert "Authorization" not in request.headers
        assert (request.headers["x-range"], request.content) == ("0,5", b"bytes")


def test_an_upload_that_storage_refuses_is_an_error():
    """It has the storage's own code."""
    body = b"<?xml version='1.0'?><Error><Code>EntityTooLarge</Code></Error>"
    client, _ = scripted(minted(1), answer(400, body))
    with pytest.raises(UploadRefusedError) as caught:
        client.documents.upload(UPLOAD, b"bytes")
    assert (caught.value.status, caught.value.code) == (400, "EntityTooLarge")


def test_an_answers_body_is_bounded_in_time():
    """One that drips is given up, although each of its bytes comes in time."""
    client, _ = scripted(answer(200, CREATED), timeout_seconds=0, retries=Retries(attempts=1))
    with pytest.raises(ConnectionLostError, match="too long"):
        client.claims.create(CLAIM)


def test_a_long_upload_is_not_cut_short(monkeypatch):
    """The time for the answer begins when the bytes have been sent."""
    now = [0.0]
    monkeypatch.setattr(calls, "time", SimpleNamespace(monotonic=lambda: now[0]))
    client, script = scripted(minted(1), answer(200, b"<Stored/>"), timeout_seconds=30)

    def send(request: httpx2.Request) -> httpx2.Response:
        now[0] += 300
        return script(request)

    client.claims._calls._http._transport = httpx2.MockTransport(send)  # noqa: SLF001 - takes time
    assert client.documents.upload(UPLOAD, b"bytes").storage_path == "doc_1.pdf"


@pytest.mark.parametrize(
    ("key", "url", "fault"),
    [
        ("sk_live_x", BASE_URL, "api_key"),
        (f"{KEY}\n", BASE_URL, "api_key"),
        (KEY, "http://api.example.com/v1", "https"),
        (KEY, "https://api.example.com", "/v1"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(key, url, fault):
    """And the message has no key."""
    with pytest.raises(ValueError, match=fault) as caught:
        Client(key, base_url=url)
    assert key.strip() not in str(caught.value)


def test_no_secret_is_shown(caplog):
    """Neither key nor signed URL is in a repr, an error, its frames, or any library's log."""
    caplog.set_level(logging.DEBUG)
    steps = (
        minted(1),
        answer(500, b"?"),
        answer(200, b""),
        minted(2),
        refusal(401, "auth_revoked"),
    )
    client, _ = scripted(*steps)
    client.documents.upload(UPLOAD, b"bytes")
    shown = [repr(client), repr(client.claims), repr(client.documents.mint_upload_url(UPLOAD))]
    with pytest.raises(ApiError) as caught:
        client.claims.create(CLAIM)
    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    shown += told.format()  # as reports of errors show it
    shown += [caplog.text, repr(vars(caught.value)), str(vars(client.claims._calls._http))]  # noqa: SLF001 - what a debugger shows
    assert "PUT" in caplog.text
    for secret in (KEY, "sEcReT", "sIgNaTuRe"):
        assert secret not in "".join(shown)


def test_the_public_names_exist():
    """`__all__` is complete, and the operations are those of the document."""
    assert all(hasattr(claim_ledger_client, name) for name in claim_ledger_client.__all__)
    names = {one.id for one in vars(operations).values() if isinstance(one, operations.Operation)}
    assert names == {
        one["operationId"] for methods in DOCUMENT["paths"].values() for one in methods.values()
    }


def test_a_page_of_a_proxy_is_no_answer():
    """A 200 that is not JSON is an error of its own, after the retries."""
    pages = [answer(200, b"<html>") for _ in range(3)]
    client, _ = scripted(*pages, retries=Retries(attempts=3, first_wait_seconds=0))
    with pytest.raises(UnreadableAnswerError):
        client.claims.create(CLAIM)


def test_a_connect_request_is_not_repeated_once_it_may_have_minted():
    """It is after a refusal that came first, and a connection that was never made."""
    link = answer(201, {"connect_url": "https://x", "expires_at": None})
    first = refusal(503, "service_unavailable")
    client, script = scripted(first, httpx2.ConnectError("refused"), link)
    assert client.connect_requests.create(ConnectRequest(partner_user_id="u")).expires_at is None
    assert len(script.sent) == 3
    for step, raised in (
        (refusal(503, "service_unavailable", LIMITED), ApiError),
        (refusal(500, "internal_error"), ApiError),
        (httpx2.ReadTimeout("slow"), ConnectionLostError),
        (answer(200, b"<html>"), UnreadableAnswerError),
        (answer(502, b"<html>"), UnreadableAnswerError),
    ):
        client, script = scripted(step, link)
        with pytest.raises(raised):
            client.connect_requests.create(ConnectRequest(partner_user_id="u"))
        assert len(script.sent) == 1


def test_nothing_can_be_reached():
    """The last error is raised, and says that nothing was sent."""
    steps = [httpx2.ConnectError("refused")] * 2
    client, _ = scripted(*steps, retries=Retries(attempts=2, first_wait_seconds=0))
    with pytest.raises(UnreachableError, match="ConnectError: refused"):
        client.claims.create(CLAIM)


def test_a_certificate_that_is_not_trusted_is_told_at_once():
    """The API's and the storage's: trying again would not change it. It is an UnreachableError."""
    refused = httpx2.ConnectError("certificate verify failed")
    refused.__context__ = OSError("as the transport wraps it")
    refused.__context__.__cause__ = ssl.SSLCertVerificationError("self-signed")
    client, script = scripted(refused)
    with pytest.raises(UntrustedServerError, match="verify failed") as caught:
        client.claims.create(CLAIM)
    assert isinstance(caught.value, UnreachableError)
    assert len(script.sent) == 1
    client, script = scripted(minted(1), refused)
    with pytest.raises(UntrustedServerError):
        client.documents.upload(UPLOAD, b"bytes")
    assert [request.method for request in script.sent] == ["POST", "PUT"]


def test_an_answer_has_its_request_id_and_whether_the_body_matches():
    """Beside its members: neither is shown or compared, and a caller's own has none."""
    matches = ({}, {"Idempotent_Payload_Match": "true"}, {"Idempotent_Payload_Match": "false"})
    client, _ = scripted(*(answer(200, CREATED, X_Request_Id="req_9", **one) for one in matches))
    answers = [client.claims.create(CLAIM) for _ in matches]
    assert [one.payload_matches for one in answers] == [None, True, False]
    assert {one.request_id for one in answers} == {"req_9"}
    own = ClaimResponse(**CREATED)
    assert (own.request_id, own.payload_matches) == (None, None)
    assert all((one, repr(one)) == (own, repr(own)) for one in answers)


def test_a_replay_with_another_body_is_logged(caplog):
    """Without the references, which may be confidential."""
    headers = {"Idempotent_Payload_Match": "false", "X_Request_Id": "req_9"}
    client, _ = scripted(answer(200, CREATED | {"already_existed": True}, **headers))
    assert client.claims.create(CLAIM).already_existed
    assert "req_9" in caplog.text
    assert "case-1" not in caplog.text
