"""Keyboard use and screen readers. What axe-core finds is in test_gallery.py."""

from datetime import datetime, timedelta

from playwright.sync_api import Page, expect

from tests.pages.filled import PEOPLE


def test_the_skip_link_comes_first_and_skips(filled):
    """The first Tab focuses it, and Enter skips the navigation bar."""
    page = filled.page_of("owner")
    page.goto("/account")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to main content")).to_be_focused()
    expect(page.get_by_role("link", name="Skip to main content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_a_partner_can_be_approved_by_keyboard(filled):
    """Choosing among several businesses and approving need no pointer."""
    page = filled.page_of("owner")
    page.goto(filled.connect_link(filled.other_key))
    _tab_to(page, page.get_by_role("radio").first)
    for _ in range(5):
        if page.get_by_role("radio", name="Workshop").is_checked():
            break
        page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Workshop")).to_be_checked()
    _tab_to(page, page.get_by_role("button", name="Approve"))
    page.keyboard.press("Enter")
    expect(page.get_by_text(filled.alone, exact=True)).to_be_visible()


def test_an_onboarding_can_be_finished_by_keyboard(filled):
    """When the form returns with errors, they take the focus; the fields are kept."""
    page = filled.page_of(None)
    page.goto(filled.onboarding_link())
    page.locator("form").evaluate("form => form.noValidate = true")
    _tab_to(page, page.get_by_label("Business name"))
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_label("Address line 1")).to_have_value("1 Example Street")
    _tab_to(page, page.get_by_label("Business name"))
    page.keyboard.type("Bakery")
    _tab_to(page, page.get_by_role("button", name="Finish"))
    page.keyboard.press("Enter")
    expect(page.locator(".copyable code")).to_contain_text("ent_")


def test_an_open_menu_does_not_cover_what_has_the_focus(filled):
    """It closes when the focus leaves it, and not before."""
    page = filled.page_of("developer", viewport={"width": 360, "height": 640})
    page.goto(f"/console/{filled.partner}/settings")
    menu = page.locator("nav details").last
    menu.locator("summary").press("Enter")
    _tab_to(page, menu.get_by_role("link").last)
    expect(menu).to_have_attribute("open", "")
    page.keyboard.press("Tab")
    expect(menu).not_to_have_attribute("open", "")


def test_focus_is_visible(filled):
    """Whatever Tab reaches on a page has an outline."""
    page = filled.page_of("owner")
    page.goto("/account")
    reached = 0
    while True:
        page.keyboard.press("Tab")
        width = page.evaluate(
            "document.activeElement === document.body ? null"
            " : getComputedStyle(document.activeElement).outlineWidth"
        )
        if width is None:
            break
        assert width == "3px"
        reached += 1
    assert reached > 5


def test_copying_is_announced(filled):
    """The button copies the entity id, says so, and a screen reader announces it."""
    page = filled.page_of("owner")
    filled.site.keep_apart(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/connected/{filled.entity}/{filled.partner}")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == filled.entity


def test_the_gallerys_people_are_fictitious():
    """Their addresses are of the reserved domain."""
    assert {address.rpartition("example.com")[2] for address in PEOPLE.values()} == {""}


def _tab_to(page: Page, wanted) -> None:
    for _ in range(40):
        if wanted.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {wanted}")


def test_times_are_the_readers_own_with_utc_on_hover(filled):
    """Without a script they are in UTC; the words and the attribute name the same moment."""
    page = filled.page_of("owner", timezone_id="Asia/Tokyo")
    page.goto("/account")
    time = page.locator("time").first
    at = datetime.fromisoformat(time.get_attribute("datetime") or "")
    expect(time).to_have_attribute("title", f"{at.day} {at:%B %Y, %H:%M} UTC")
    there = at + timedelta(hours=9)
    expect(time).to_have_text(f"{there.day} {there:%B %Y, %H:%M}")
