"""Pressing a button in a browser again before the answer is there."""

from playwright.sync_api import Locator, Page, Route


def press_twice(page: Page, button: Locator) -> None:
    """Press a button twice while the first request is held up, as on a slow network."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.method != "POST":
            route.continue_()
        elif held:
            route.abort()  # though the browser has dropped the first one by now
        else:
            held.append(route)

    page.route("**", hold)
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box
    place = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    with page.expect_request(lambda request: request.method == "POST"):
        page.mouse.click(*place)  # most else would wait for the page to come
    page.mouse.click(*place)
    held[0].continue_()
