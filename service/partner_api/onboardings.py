"""`POST /onboardings` (contract 4.1)."""

from collections.abc import Mapping

import msgspec
from litestar import Response, Router, post

from service.facts.caller import Mode
from service.http.answers import json_answer, replay_headers
from service.http.bodies import AnyRequest, caller_of, read_body
from service.http.decoding import decode
from service.onboardings.commands import OnboardingCommands
from service.onboardings.wire import OnboardingRequest, OnboardingResponse


def onboardings_router(commands: Mapping[Mode, OnboardingCommands]) -> Router:
    """Return the router of `/onboardings`."""

    @post("/onboardings", opt={"endpoint": "start_onboarding"})
    async def start_onboarding(request: AnyRequest) -> Response[bytes]:
        caller = caller_of(request)
        body = await read_body(request)
        onboarding = decode(body, request.headers.get("content-type"), OnboardingRequest)
        outcome = await commands[caller.mode].start(caller, onboarding)
        link = outcome.magic_link_url if caller.return_link else msgspec.UNSET
        return json_answer(
            OnboardingResponse(
                onboarding_id=outcome.onboarding_id,
                already_existed=outcome.already_existed,
                magic_link_url=link,
            ),
            200 if outcome.already_existed else 201,
            replay_headers(outcome.already_existed, outcome.matches)
            | {"Cache-Control": "no-store"},  # the answer may hold a credential
        )

    return Router("/", route_handlers=[start_onboarding])
