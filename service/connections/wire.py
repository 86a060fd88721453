"""What `POST /connect-requests` accepts and returns (contract 2.3)."""

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from service.http.scalars import RequiredText, Text, Timestamp, described


class ConnectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A link to ask for. Unknown fields are ignored."""

    partner_user_id: Annotated[
        RequiredText, described("Your user reference. Put no personal data in it.", "user-17")
    ]
    label: Annotated[Text | UnsetType, described("A note for people.", "Spring campaign")] = UNSET


class ConnectResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A single-use link for the partner to deliver."""

    connect_url: Annotated[
        str,
        described(
            "Send it to the customer; a credential.", "https://app.example.com/connect/token"
        ),
    ]
    expires_at: Annotated[
        Timestamp | None,
        described("One hour after issue; null in test mode.", "2026-03-01T11:15:30.123Z", None),
    ]
