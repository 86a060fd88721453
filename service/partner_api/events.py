"""`GET /events`: what happened to a partner's claims and businesses, in the ledger's order."""

from typing import Final

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from service.events import cursor
from service.events.cloud_events import cloud_event, source_of
from service.events.wire import LIMIT_MAX, EventList, EventQuery
from service.http.bodies import AnyRequest, caller_of
from service.http.decoding import decode_query
from service.http.responses import json_response
from service.http.scalars import given
from service.partner_api.endpoints import Endpoint, Modes, Success

LIST_EVENTS: Final = Endpoint(
    id="list_events",
    method="get",
    path="/events",
    tag="Events",
    ours=True,
    summary="Follow your events",
    description=(
        "Returns what happened to your claims, onboardings, connect links and connections since a "
        "cursor, oldest first, in the form of CloudEvents 1.0. Events are kept for ever; those of "
        "test mode are apart.\n\n"
        "Begin without `after`. Keep `next_cursor` with what you made of the events, and pass it "
        "as `after`: with each answer, and again after a pause when there were no events. Nobody "
        "who goes on so misses one, however many are written meanwhile. An event is there a moment "
        "after what it tells of; its `id` never changes.\n\n"
        "Events have ids, stages and your own references, and nothing else: what else you need "
        "to know you ask the API for. `entity_id` is null until you have created a claim with it; "
        "`onboarding_id`, `link_id` and `partner_user_id` say what brought the entity: the "
        "onboarding or link that connected it last. A connection by our team, or in the sandbox's "
        "console, has none of its own: if none came before it, its events name nothing until you "
        "have created a claim. Pass over types that you do not know.\n\n"
        "If the service was restored to an earlier state, a cursor of what is gone is 400 "
        "`validation_failed`: read again without `after`, and leave out the events whose `id` you "
        "have."
    ),
    query=EventQuery,
    successes=(Success(200, EventList, "Events, none: there are no later ones yet."),),
    own_errors=("validation_failed",),
)


def event_handlers(modes: Modes, public_url: str) -> list[HTTPRouteHandler]:
    """Return the handlers of `/events`."""

    @LIST_EVENTS.handler
    async def list_events(request: AnyRequest) -> Response[bytes]:
        caller = caller_of(request)
        query = decode_query(request.scope["query_string"], EventQuery)
        after = given(query.after)
        position = 0 if after is None else cursor.place_of(after)
        limit = max(1, min(query.limit, LIMIT_MAX))
        page = await modes[caller.mode].partner_events.page(caller.partner_id, position, limit)
        if after is None:
            after = cursor.cursor(caller.partner_id, 0, None)
        cursor.check(after, caller.partner_id, page.after_hash)
        source = source_of(public_url, caller.mode)
        if page.events:
            last = page.events[-1]
            after = cursor.cursor(caller.partner_id, last.position, last.leaf_hash)
        events = [cloud_event(event, source) for event in page.events]
        return json_response(EventList(events=events, next_cursor=after))

    return [list_events]
