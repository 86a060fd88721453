"""From bytes to typed values: every fault is named, and nothing is a 500."""

import gc
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

import msgspec
import pytest

from service.claims.wire import ClaimRequest, Defendant, DefendantAddress, Invoice
from service.connections.wire import ConnectRequest
from service.core.errors import Refusal
from service.http.decoding import check, decode
from service.http.validation import FAULTS_MAX
from tests.http.bodies import JSON, body_with, refusal


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json;charset=utf-8",
        'application/json ; charset="UTF-8"',
        "application/json;",
        "application/json;charset=utf8",
        'application/json; charset="Utf8"; profile="a b"',
        "application/json; foo=bar",
        "application/json; foo=bar; charset=UTF-8",
        "application/json; x",
    ],
)
def test_json_in_utf_8_is_taken(content_type: str) -> None:
    """The media type is compared without case; it may name UTF-8, and what means nothing."""
    assert decode(body_with(), content_type, ClaimRequest).entity_id == "ent_1"


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "application/json, text/plain",
        "application/jsonx",
        "application/problem+json",
        "application/json;charset=utf-16",
        "application/json; charset=latin-1",
        "application/json; charset",
        "application/json; foo=bar; charset=latin-1",
        "application/json; charset=utf-8; charset=utf-16",
        'application/json; charset="utf-8',
        "application/json; charset = latin-1",
        "application/json; foo=bar, text/plain",
        "application/json; ; ;" + " ;" * 5_000 + "x",
    ],
)
def test_anything_else_is_not_a_json_body(content_type: str | None) -> None:
    """Contract section 7: `body_required`."""
    assert refusal(body_with(), content_type).code == "body_required"


@pytest.mark.parametrize("body", [b"", b" ", b"\r\n\t "])
def test_nothing_is_not_a_body(body: bytes) -> None:
    """Contract section 7: `body_required`."""
    assert refusal(body).code == "body_required"


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"{}{}",
        b"{'a': 1}",
        b'{"entity_id": "a",}',
        b'{"entity_id": NaN}',
        b'{"other": NaN}',
        b'{"other": Infinity}',
        b"\xef\xbb\xbf{}",
        b'{"entity_id": "\xff"}',
        b'{"other": "\xff"}',
        b'{"\xff": 1}',
        b'{"entity_id": "\xed\xa0\x80"}',
        b'{"entity_id": "\\ud800"}',
        b'{"other": "\\udc00\\ud800"}',
        b'{"entity_id": "a\x00b"}',
        b'{"entity_id": "a\nb"}',
        b'{"entity_id": "\\u00zz"}',
        b"{}\x00",
        body_with().decode().encode("utf-16"),
        b"[" * 200_000,
        b'{"entity_id":' + b"[" * 200_000,
        b'{"other":' + b'{"a":' * 200_000,
        b"[" * 200_000 + b"]" * 200_000,
        body_with()[:-1] + b',"other":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    ],
    ids=lambda body: ascii(body[:30]),
)
def test_malformed_json_is_refused(body: bytes) -> None:
    """Contract section 7: `invalid_json`, in known and in unknown fields alike."""
    assert refusal(body).code == "invalid_json"


def test_malformed_json_is_told_where() -> None:
    """What is wrong, and at which byte; nothing of what the body says."""
    told = refusal(b'{"entity_id": "canary",}').message
    assert told == "The body is not valid JSON: trailing comma in object (byte 23)."


def test_why_a_body_cannot_be_decoded_is_told() -> None:
    """Where it is not UTF-8, and that it is nested too deeply; each is another mistake."""
    other, deep = refusal(b'{"a": "\xff"}'), refusal(b'{"other":' + b"[" * 200_000)
    assert other.message == "The body is not valid JSON: not in UTF-8 (byte 7)."
    assert (deep.code, deep.message) == ("invalid_json", "The body is nested too deeply.")


@pytest.mark.parametrize("text", [rb'"\ud800"', rb'"\ud800x"'])
def test_half_a_surrogate_pair_is_not_told_as_a_truncated_body(text: bytes) -> None:
    """Whoever sent all of it would look for the rest in their network."""
    body = b'{"entity_id":' + text + b"}"
    for whole in (body, body + b"\r\n"):
        assert "surrogate pair (byte " in refusal(whole).message
    assert refusal(body[:-2]).message.endswith(": Input data was truncated.")


@pytest.mark.parametrize("body", [b"[]", b"null", b"1", b'"a"', b"1e999", b"true", b'[{"a": 1}]'])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    """No field is at fault, so the form is."""
    error = refusal(body)

    assert error.code == "validation_failed"
    assert error.form_errors == ["expected an object"]


def test_every_fault_is_named_by_top_level_field_and_inner_path() -> None:
    """Readings: `details.fieldErrors`."""
    body = {
        "partner_claim_id": 1,
        "defendant": {"email": "nobody", "address": {"first_line": None, "second_line": None}},
        "invoices": [
            {"due_date": "2026-02-30", "total_amount_for_invoice": "1"},
            {},
            7,
            {"number": 3, "summary": ["x"]},
        ],
        "message": "a\0b",
        "partner_invoice_ids": ["a", None],
        "is_written": 1,
        "contract_date": "yesterday",
        "document_refs": None,
        "unknown": {"anything": 1},
    }
    error = refusal(json.dumps(body).encode())

    assert error.field_errors == {
        "entity_id": ["required"],
        "partner_claim_id": ["expected a string"],
        "defendant": [
            "name: required",
            "email: not an email address",
            "address.first_line: must not be null",
        ],
        "invoices": [
            "[0].total_amount_for_invoice: not an amount with two decimal places, such as 125.00",
            "[0].due_date: not a calendar date",
            "[2]: expected an object",
            "[3].number: expected a string",
            "[3].summary: expected a string",
        ],
        "partner_invoice_ids": ["[1]: must not be null"],
        "message": ["must not contain NUL"],
        "contract_date": ["not an RFC 3339 timestamp with an offset, such as 2026-01-31T09:30:00Z"],
        "is_written": ["expected true or false"],
        "document_refs": ["must not be null"],
    }
    assert error.form_errors == []


@pytest.mark.parametrize(
    ("field", "entry", "most"),
    [
        ("invoices", {}, 1_000),
        ("partner_invoice_ids", "a", 1_000),
        ("document_refs", None, 100),
    ],
)
def test_arrays_are_bounded(field: str, entry: object, most: int) -> None:
    """At the limit is fine, one more is not."""
    entries = [reference(str(number)) if entry is None else entry for number in range(most + 1)]
    decode(body_with(**{field: entries[1:]}), JSON, ClaimRequest)
    error = refusal(body_with(**{field: entries}))

    assert {field: [f"must have at most {most} entries"]} == error.field_errors


def reference(path: object) -> dict[str, object]:
    """Return a reference to a document."""
    return {"storage_path": path, "mime_type": "application/pdf", "filename": "a.pdf"}


def test_a_path_given_twice_is_a_fault_like_others() -> None:
    """Every repetition is named, not only the first, and beside what else is wrong."""
    repeated = ["[1].storage_path: given more than once", "[4].storage_path: given more than once"]
    paths = ["a", "a", 7, 7, "a"]
    error = refusal(body_with(invoices=[], document_refs=[*map(reference, paths), 1]))
    only = refusal(body_with(document_refs=[reference("a"), reference("b"), reference("a")]))

    assert error.field_errors == {
        "invoices": ["must not be empty"],
        "document_refs": [
            "[2].storage_path: expected a string",
            "[3].storage_path: expected a string",
            "[5]: expected an object",
            *repeated,
        ],
    }
    assert only.field_errors == {"document_refs": ["[2].storage_path: given more than once"]}


def test_the_answer_to_a_body_full_of_faults_is_bounded() -> None:
    """A body of 1 MiB cannot ask for an answer of tens of megabytes."""
    error = refusal(body_with(invoices=[{"number": 1}] * 1_000))

    assert sum(map(len, (error.field_errors or {}).values())) == FAULTS_MAX
    assert [f"at most {FAULTS_MAX} faults are listed"] == error.form_errors


@pytest.mark.parametrize("text", ["\0", "a\0", "\0" * 300])
def test_nul_in_a_known_string_is_refused(text: str) -> None:
    """PostgreSQL cannot store it."""
    errors = refusal(body_with(message=text)).field_errors

    assert errors == {"message": ["must not contain NUL"]}


@pytest.mark.parametrize("text", ["\\u0000", "\\\\u0000"])
def test_a_backslash_before_u0000_is_not_nul(text: str) -> None:
    """A backslash that is itself escaped, and what follows it, is text."""
    assert text == decode(body_with(message=text), JSON, ClaimRequest).message


def test_unknown_fields_are_ignored() -> None:
    """Readings: also with NUL, and whatever number they hold."""
    body = body_with(message="", **{"x\0": "a\0b"})[:-1] + b', "y": 1e999, "z": -0}'

    assert decode(body, JSON, ClaimRequest).entity_id == "ent_1"


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """Return the runs of Python's collector, by generation, at about its own threshold."""
    runs: list[int] = []
    threshold = gc.get_threshold()

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            runs.append(info["generation"])

    gc.set_threshold(1_000)
    gc.callbacks.append(note)
    yield runs
    gc.callbacks.remove(note)
    gc.set_threshold(*threshold)


@pytest.mark.parametrize("end", [b"]}", b"]"])
def test_a_body_of_many_arrays_is_decoded_without_the_collector(
    end: bytes, collections: list[int]
) -> None:
    """It went through all of them again and again, for half a second of every other request."""
    refused = refusal(b'{"x": [' + b"[]," * 100_000 + b"[]" + end)

    assert refused.code == ("validation_failed" if end == b"]}" else "invalid_json")
    assert len(collections) < 10
    assert gc.isenabled()


def test_of_duplicate_keys_the_last_wins() -> None:
    """Even if an earlier one is of another type."""
    body = b'{"partner_user_id": 1, "partner_user_id": "a", "label": "b", "label": "c"}'
    decoded = decode(body, JSON, ConnectRequest)

    assert (decoded.partner_user_id, decoded.label) == ("a", "c")


@pytest.mark.parametrize("digits", ["1e999", "-1e999", "9" * 30, "1" * 4_000])
def test_a_huge_number_is_no_string(digits: str) -> None:
    """Numbers where strings belong, of any size."""
    body = b'{"partner_user_id": %s}' % digits.encode()

    assert refusal(body, type_=ConnectRequest).field_errors == {
        "partner_user_id": ["expected a string"]
    }


def test_a_number_of_too_many_digits_hides_no_fault() -> None:
    """Python parses no more than 4,300: it is a fault as with fewer, beside the others."""
    digits = b"1" * 5_000
    with_number = body_with(invoices=[], other="\0")[:-1] + b', "unknown": %s}' % digits
    both = b'{"entity_id": 1, "defendant": {"name": %s}, "x": [%s]}' % (digits, digits)

    assert refusal(with_number).field_errors == {"invoices": ["must not be empty"]}
    assert refusal(both).field_errors == {
        "entity_id": ["expected a string"],
        "partner_claim_id": ["required"],
        "defendant": ["name: expected a string"],
        "invoices": ["required"],
    }
    assert refusal(b"[%s]" % digits).form_errors == ["expected an object"]


@pytest.mark.parametrize("beside", ['"\\u0000"', '"a \\\\u0000 b"', '""'])
@pytest.mark.parametrize("number", ["1" * 5_000, "-" + "9" * 5_000, "0." + "1" * 5_000])
def test_unknown_fields_are_ignored_in_each_object(number: str, beside: str) -> None:
    """Whatever number they hold, and whichever way a string beside them has the body decoded."""
    unknown = f'"x": [{number}, {number} ], "y": "\\\\\\"{number}\\\\", "z": {beside}'
    body = f"""{{
        "entity_id": "ent_1", "partner_claim_id": "case-1", {unknown},
        "defendant": {{"name": "Example Ltd", "address": {{{unknown}}}, {unknown}}},
        "invoices": [{{{unknown}}}], "message": "{number}",
        "document_refs": [{{"storage_path": "a", "mime_type": "b", "filename": "c", {unknown}}}]
    }}"""
    decoded = decode(body.encode(), JSON, ClaimRequest)

    assert decoded.message == number
    assert decoded.invoices == [Invoice()]
    assert decoded.defendant == Defendant(name="Example Ltd", address=DefendantAddress())


def test_where_a_body_is_malformed_is_told_behind_a_number_of_any_digits() -> None:
    """As behind one of a single digit, and as many spaces; what may not follow it is a fault."""
    digits = "1" * 5_000
    for end in ("]", ", 1}", f'"{digits}"]', f"-{digits}]", f" {digits}]", f"x{digits}]"):
        errors = [
            refusal(f"[[{number}{end}".encode()) for number in (digits, f"{1:<{len(digits)}}")
        ]
        assert errors[0].code == "invalid_json"
        assert errors[0].message == errors[1].message


@pytest.mark.parametrize(
    "text", ["\u00e9", "e\u0301", "\u00c9", "a ", " a", "a\r\n", "\u200b", "𐀀"]
)
def test_references_are_byte_exact(text: str) -> None:
    """Nothing is normalised, folded or trimmed, whether escaped in the body or not."""
    for escaped in (True, False):
        body = json.dumps({"partner_user_id": text}, ensure_ascii=escaped).encode()
        decoded = decode(body, JSON, ConnectRequest)
        assert text.encode() == decoded.partner_user_id.encode()


def test_values_from_elsewhere_are_checked_by_the_same_rules() -> None:
    """The command line's arguments, for one."""
    assert check(ConnectRequest, partner_user_id="a").partner_user_id == "a"
    with pytest.raises(Refusal) as refused:
        check(ConnectRequest, partner_user_id="", label="\udcff")
    assert refused.value.field_errors == {
        "partner_user_id": ["must not be empty"],
        "label": ["must be valid Unicode"],
    }


class Upload(msgspec.Struct):
    """A type with a bounded number and with a kind that the walk does not know."""

    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1
    moment: datetime | None = None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "must be at least 1"),
        (10, "must be at most 9"),
        (2**70, "must be at most 9"),
        (True, "expected a whole number"),
        (1.5, "expected a whole number"),
        (1e20, "must be at most 9"),
        ("1", "expected a whole number"),
        (None, "must not be null"),
    ],
)
def test_whole_numbers_are_bounded(value: object, message: str) -> None:
    """Contract 2.4, `max_bytes`."""
    error = refusal(json.dumps({"max_bytes": value}).encode(), type_=Upload)

    assert error.field_errors == {"max_bytes": [message]}


@pytest.mark.parametrize("text", [b"2.0", b"2e0", b"0.2E1", b"20e-1"])
def test_a_whole_number_may_be_written_with_a_point(text: bytes) -> None:
    """As JSON Schema has it, and so the document."""
    assert decode(b'{"max_bytes": %s}' % text, "application/json", Upload).max_bytes == 2


def test_a_number_beyond_every_range_is_no_whole_number() -> None:
    """Nor is it a 500."""
    error = refusal(b'{"max_bytes": 1e999}', type_=Upload)

    assert error.field_errors == {"max_bytes": ["expected a whole number"]}


def test_what_the_walk_does_not_know_is_answered_in_the_words_of_msgspec() -> None:
    """Never a 500, whatever a later wire type is made of."""
    error = refusal(b'{"moment": "yesterday"}', type_=Upload)

    assert error.form_errors == ["Invalid RFC3339 encoded datetime - at `$.moment`"]


def test_only_structs_are_decoded() -> None:
    """A mistake of ours, found by the first request with a fault."""
    with pytest.raises(TypeError, match="dict is not a Struct"):
        decode(b'{"a": "\\u0000"}', JSON, dict)


def test_no_more_objects_are_made_than_a_field_takes() -> None:
    """A megabyte of empty ones is refused before the first, in the words of a few too many."""
    made = []

    class Item(msgspec.Struct):
        def __post_init__(self) -> None:
            made.append(self)

    class Items(msgspec.Struct):
        items: Annotated[list[Item], msgspec.Meta(max_length=1_000)]

    with pytest.raises(Refusal) as refused:
        decode(b'{"items":[' + b"{}," * 300_000 + b"{}]}", JSON, Items)
    assert refused.value.field_errors == {"items": ["must have at most 1000 entries"]}
    assert made == []


def test_a_text_may_have_as_many_braces_as_characters() -> None:
    """It is decoded another way, to the same."""
    texts = [body_with(message=one * 20_000) for one in ("{", "(")]
    one, other = [decode(text, JSON, ClaimRequest) for text in texts]
    assert msgspec.structs.replace(one, message=other.message) == other


def test_a_string_of_another_form_is_a_fault_of_its_field() -> None:
    """Beside the other fields' faults, where a type says by a pattern what it takes."""

    class Coded(msgspec.Struct):
        code: Annotated[str, msgspec.Meta(max_length=9, pattern=r"\A[a-z]+\Z")]
        name: str

    with pytest.raises(Refusal) as caught:
        check(Coded, code="A\n", name=1)
    faults = {"code": [r"must match \A[a-z]+\Z"], "name": ["expected a string"]}
    assert caught.value.field_errors == faults
    assert check(Coded, code="a", name="b").code == "a"
