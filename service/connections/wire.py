"""What `POST /connect-requests` takes and answers (contract 2.3)."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from service.http.scalars import RequiredText, Text, Timestamp


class ConnectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A link to ask for. Unknown fields are ignored."""

    partner_user_id: Annotated[
        RequiredText,
        Meta(description="Your user reference. Put no personal data in it.", examples=["user-17"]),
    ]
    label: Annotated[
        Text | UnsetType, Meta(description="A note for people.", examples=["Spring campaign"])
    ] = UNSET


class ConnectResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A single-use link for the partner to deliver."""

    connect_url: Annotated[
        str,
        Meta(
            description="Send it to the customer; a credential.",
            examples=["https://app.example.com/connect/token"],
        ),
    ]
    expires_at: Annotated[
        Timestamp | None,
        Meta(
            description="One hour after issue; null in test mode.",
            examples=["2026-03-01T11:15:30.123Z", None],
        ),
    ]
