"""What each handler says about its endpoint.

The OpenAPI document, the reference page and the guide are made from it.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, Literal, Protocol

import msgspec
from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from projections.claim_list.reader import ClaimListReader
from projections.partner_events.reader import PartnerEventsReader
from service.claims.commands import ClaimCommands
from service.claims.details import ClaimDetails
from service.connections.commands import ConnectionCommands
from service.core.errors import ERRORS, Refusal
from service.documents.commands import DocumentCommands
from service.facts.caller import Mode
from service.http.bodies import AnyRequest, caller_of
from service.http.scalars import struct_info
from service.onboardings.commands import OnboardingCommands

WireType = type[msgspec.Struct]
Handler = Callable[[AnyRequest], Awaitable[Response[bytes]]]

AUTHENTICATION: Final = tuple(code for code in ERRORS if code.startswith("auth_"))
EVERYWHERE: Final = (*AUTHENTICATION, "rate_limited", "internal_error", "service_unavailable")
"""Codes that every endpoint can return."""
WITH_BODY: Final = (
    "validation_failed",
    "invalid_json",
    "body_required",
    "request_timeout",
    "payload_too_large",
)
"""Codes that every endpoint with a body can return as well."""
ANY_PATH: Final = ("not_found", "method_not_allowed", "host_unknown")
"""Codes of requests that reach no endpoint."""

REPLAY_HEADERS: Final = {"Idempotent-Replayed": True, "Idempotent-Payload-Match": False}
"""Headers of a replay; True: always there. The match is absent once the data was erased."""


class PartnerParts(Protocol):
    """What the endpoints need of a mode's ledger."""

    onboardings: OnboardingCommands
    connections: ConnectionCommands
    documents: DocumentCommands
    claims: ClaimCommands
    claim_list: ClaimListReader
    details: ClaimDetails
    partner_events: PartnerEventsReader


Modes = Mapping[Mode, PartnerParts]


@dataclass(frozen=True, slots=True)
class ResponseLink:
    """What a response leads to: `operation` is the id of an endpoint.

    Its query's `parameters` and the part of its `body` that follows from this request and response
    are runtime expressions of OpenAPI, such as `$response.body#/storage_path`.
    """

    operation: str
    description: str
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Success:
    """A 2xx response. `changes` are what its example has instead of the fields' own examples."""

    status: int
    type: WireType
    description: str
    headers: Mapping[str, bool] = field(default_factory=dict[str, bool])
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    links: Sequence[ResponseLink] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One operation of the API: its route, and what the documentation says about it."""

    id: str
    method: Literal["get", "post"]
    path: str
    tag: Literal["Businesses", "Documents", "Claims", "Events"]
    summary: str
    description: str
    successes: Sequence[Success]
    own_errors: Sequence[str] = ()
    ours: bool = False
    """Whether the operation is our addition, which the contract does not have."""
    body: WireType | None = None
    query: WireType | None = None
    in_path: WireType | None = None
    """The parameters that stand in the path, as `{name}`."""
    repeat: Literal["safe", "unsafe"] = "safe"
    """Whether a repeat does no harm where it is unknown what the first request did."""

    def __post_init__(self) -> None:
        """Raise TypeError for a type whose rules msgspec refuses: it would do so on first use."""
        for kind in (self.body, self.query, self.in_path, *(one.type for one in self.successes)):
            if kind is not None:
                try:
                    struct_info(kind)
                except TypeError as error:
                    raise TypeError(f"{self.id}, {kind.__name__}: {error}") from error

    @property
    def errors(self) -> tuple[str, ...]:
        """Every code of the error table that it can return.

        What is given for a part of the path may make it another path, such as nothing or `..`.
        """
        in_path = ("not_found",) if self.in_path else ()
        return (*(WITH_BODY if self.body else ()), *self.own_errors, *in_path, *EVERYWHERE)

    def handler(self, function: Handler) -> HTTPRouteHandler:
        """Make a function this endpoint's handler (a decorator)."""
        if "entity_not_found" in self.own_errors:
            function = _naming_the_mode(function)
        decorate = {"get": get, "post": post}[self.method]
        route = self.path.replace("}", ":str}")
        return decorate(route, opt={"endpoint": self})(function)


def _naming_the_mode(function: Handler) -> Handler:
    """Add to the message in which mode there is no such entity: a key of the other may be meant."""

    @wraps(function)
    async def named(request: AnyRequest) -> Response[bytes]:
        try:
            return await function(request)
        except Refusal as refusal:
            if refusal.code != "entity_not_found":
                raise
            mode = caller_of(request).mode
            message = f"No such entity in {mode} mode, which is the mode of this API key."
            raise Refusal(refusal.code, message) from refusal

    return named


def no_such_path(endpoints: Iterable[Endpoint], base_path: str) -> str:
    """Return what is said of a path that does not exist: which do."""
    paths = [f"{one.method.upper()} {base_path}{one.path}" for one in endpoints]
    return f"No such path. There are {', '.join(paths[:-1])} and {paths[-1]}."


def endpoints_of(handlers: Iterable[HTTPRouteHandler]) -> tuple[Endpoint, ...]:
    """Return the endpoints that these handlers serve."""
    return tuple(handler.opt["endpoint"] for handler in handlers)
