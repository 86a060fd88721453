"""`POST /onboardings` (contract 4.1)."""

from typing import Final

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler

from service.http.bodies import AnyRequest, caller_of, read_as
from service.http.responses import json_response, replay_headers
from service.onboardings.wire import OnboardingRequest, OnboardingResponse
from service.partner_api.endpoints import REPLAY_HEADERS, Endpoint, Modes, Success

START_ONBOARDING: Final = Endpoint(
    id="start_onboarding",
    method="post",
    path="/onboardings",
    tag="Businesses",
    summary="Onboard a business that is new to the service",
    description=(
        "Registers the business and mails its user a magic link with which to finish. When the "
        "user has finished, the entity is connected to you; its `entity_id` reaches you through"
        " the customer, never through this API.\n\n"
        "Idempotent on `partner_user_id`, for ever: a repeat answers 200 with the original "
        "`onboarding_id`, mails nothing, and has no link. For a fresh link, onboard under a new"
        " `partner_user_id`.\n\n"
        "422 `onboarding_unavailable`: the email address (whatever its case) or the company "
        "number (whatever its spaces and case) belongs to a business that already uses the "
        "service. Send it a connect link instead: `POST /connect-requests`. An onboarding that "
        "was never finished blocks nobody.\n\n"
        "If you have asked for links in answers, having one proves nothing: the user signs in with"
        " `user_email`, by another mail from us, before finishing.\n\n"
        "In test mode nothing is mailed, the entity is connected at once, and the link, if you "
        "have asked for links in answers, is a placeholder."
    ),
    body=OnboardingRequest,
    successes=(
        Success(201, OnboardingResponse, "A new onboarding."),
        Success(
            200,
            OnboardingResponse,
            "A replay: the onboarding that the first call made.",
            REPLAY_HEADERS,
            {"already_existed": True, "magic_link_url": None},
        ),
    ),
    own_errors=("partner_disconnected", "onboarding_unavailable"),
)


def onboarding_handlers(modes: Modes) -> list[HTTPRouteHandler]:
    """Return the handlers of `/onboardings`."""

    @START_ONBOARDING.handler
    async def start_onboarding(request: AnyRequest) -> Response[bytes]:
        caller = caller_of(request)
        onboarding = await read_as(request, OnboardingRequest)
        outcome = await modes[caller.mode].onboardings.start(caller, onboarding)
        link = outcome.magic_link_url if caller.return_link else msgspec.UNSET
        return json_response(
            OnboardingResponse(
                onboarding_id=outcome.onboarding_id,
                already_existed=outcome.already_existed,
                magic_link_url=link,
            ),
            200 if outcome.already_existed else 201,
            replay_headers(outcome.already_existed, outcome.matches),
        )

    return [start_onboarding]
