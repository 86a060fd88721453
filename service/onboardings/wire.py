"""What `POST /onboardings` accepts and returns (contract 2.1, 2.2)."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from service.http.scalars import Checked, EmailAddress, Line, Name, RequiredText, Text, described


class OnboardingAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the business is: `locality` and `region`, unlike a defendant's address."""

    first_line: Annotated[Text | UnsetType, described("First line.", "1 Example Street")] = UNSET
    second_line: Annotated[
        Text | UnsetType | None, described("Second line, or null.", "Unit 2", None)
    ] = UNSET
    locality: Annotated[Text | UnsetType, described("Town or city.", "London")] = UNSET
    region: Annotated[Text | UnsetType, described("County or region.", "Greater London")] = UNSET
    postcode: Annotated[Text | UnsetType, described("Postcode.", "AB1 2CD")] = UNSET
    country: Annotated[Text | UnsetType, described("Country.", "GB")] = UNSET


class OnboardingRequest(Checked, frozen=True, kw_only=True):
    """A business that is new to the service (contract 2.1). Unknown fields are ignored."""

    partner_user_id: Annotated[
        RequiredText,
        described(
            "Your user reference: the idempotency key, compared byte for byte. "
            "Put no personal data in it.",
            "user-17",
        ),
    ]
    company_name: Annotated[RequiredText, described("Name of the business.", "Example Trading Ltd")]
    user_email: Annotated[
        EmailAddress,
        described(
            "Where the magic link goes. In ASCII: an international domain in its xn-- form.",
            "owner@example.com",
        ),
    ]
    company_number: Annotated[
        Text | UnsetType, described("Number in its register.", "00000000")
    ] = UNSET
    user_name: Annotated[Text | UnsetType, described("Name of the person.", "The owner")] = UNSET
    address: Annotated[OnboardingAddress | UnsetType, described("Address of the business.")] = UNSET


class Confirmed(Checked, frozen=True, kw_only=True):
    """What a person confirms on the onboarding page. The email address stays: it was proved."""

    company_name: Name
    company_number: Line = ""
    user_name: Line = ""
    first_line: Line = ""
    second_line: Line = ""
    locality: Line = ""
    region: Line = ""
    postcode: Line = ""
    country: Line = ""

    def details(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Return the details in the shape of the request (contract 2.1), `sent` corrected."""
        given = {name: value for name, value in msgspec.to_builtins(self).items() if value}
        kept = {name: sent[name] for name in ("partner_user_id", "user_email") if name in sent}
        names = OnboardingAddress.__struct_fields__
        address = {name: given.pop(name) for name in names if name in given}
        return kept | given | ({"address": address} if address else {})


class OnboardingResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of `POST /onboardings` (contract 2.2)."""

    onboarding_id: Annotated[
        str,
        described(
            "Id of the onboarding, the same on every replay.", "onb_01jexample00000000000000000"
        ),
    ]
    already_existed: Annotated[bool, described("True on a replay.", False)]
    # UNSET is left out of the response: the partner has not enabled it.
    magic_link_url: Annotated[
        str | UnsetType | None,
        described(
            "A credential. Present only where the partner's settings ask for it; null on a replay.",
            "https://app.example.com/onboarding/token",
            None,
        ),
    ] = UNSET
