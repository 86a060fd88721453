"""What a form refuses: said at its field, which keeps what was entered."""

import html
import re
from pathlib import Path

import msgspec
import pytest

from service.onboardings.wire import Confirmed
from service.pages.visit import REVIEW_FIELD, STATUS_FIELD, VERSION_FIELD
from service.partners.wire import (
    ConsoleApplication,
    KeyName,
    NewMember,
    PartnerApproval,
    PartnerNote,
    ReturnUrl,
)
from tests.pages.customers import onboarding
from tests.pages.forms import forms_of
from tests.pages.visitor import Visitor
from tests.tables import every_row
from tests.world import STAFF

MEMBER, TEAM = "dev@example.com", "team@example.com"
ENTERED = 'a"/\u00ad<b'
"""Which no field takes: no website, no URL, no address, and in a name something is not seen."""


@pytest.fixture
async def forms(world):
    """Return each type of form: who posts it, where, and with what else."""
    partner, partners = await world.partner(), world.service.partners
    await partners.add_member(partner.partner_id, MEMBER, STAFF)
    await world.service.staff.add(TEAM, STAFF)
    pending = await partners.add("Books", "p@example.com", STAFF)
    member, staff = [await Visitor(world).sign_in(one) for one in (MEMBER, TEAM)]
    console, page = f"/console/{partner.partner_id}", f"/backoffice/partners/{pending}"
    return {
        ConsoleApplication: (member, "/console/apply", {}),
        KeyName: (member, f"{console}/keys", {}),
        NewMember: (member, f"{console}/team", {}),
        ReturnUrl: (member, f"{console}/settings", {}),
        PartnerApproval: (staff, f"{page}/approve", {}),
        PartnerNote: (staff, f"{page}/review", {"review_version": "0"}),
        Confirmed: (Visitor(world), await onboarding(world, partner), {}),
    }


async def test_each_field_says_what_it_refuses_and_keeps_it(forms):
    """Also where it is of another form than its type takes: no form comes back in silence."""
    with every_row() as row:
        for type_, (visitor, path, more) in forms.items():
            for one in msgspec.structs.fields(type_):
                with row(type_.__name__, one.name):
                    answer = await visitor.post(path, **more, **{one.name: ENTERED})
                    assert answer.status_code == 400
                    assert f'id="{one.name}-fault"' in answer.text
                    assert ENTERED in kept(answer.text, one.name)


async def test_a_refused_form_is_still_about_what_its_sender_looked_at(forms):
    """Once it is corrected, it is refused where a colleague has changed that meanwhile."""
    staff, approving, _ = forms[PartnerApproval]
    declining = approving.replace("/approve", "/decline")
    rows = [
        (*forms[ReturnUrl][:2], {"return_url": ENTERED}),
        (*forms[PartnerNote][:2], {"note": ENTERED}),
        (staff, approving, {"website": ENTERED}),
        (staff, declining, {"reason": ""}),
    ]
    with every_row() as row:
        for visitor, path, wrong in rows:
            with row(path):
                versions = {VERSION_FIELD: "7", STATUS_FIELD: "8", REVIEW_FIELD: "9"}
                answer = await visitor.post(path, **versions, **wrong)
                assert answer.status_code == 400
                hidden = forms_of(answer.text, path)[path].hidden
                found = {one: hidden[one] for one in versions if one in hidden}
                names = {STATUS_FIELD, REVIEW_FIELD} if visitor is staff else {VERSION_FIELD}
                assert found == {one: versions[one] for one in names}


def kept(page, name):
    """Return what a page's fields of a name hold."""
    found = re.findall(rf'<input id="{name}"[^>]* value="([^"]*)"', page)
    found += re.findall(rf'<textarea id="{name}"[^>]*>([^<]*)</textarea>', page)
    return [html.unescape(one) for one in found]


async def test_a_name_comes_back_as_its_field_holds_it(world):
    """Of a partner's text without what nobody sees; the picture of such a character is no text."""
    partner = await world.partner()
    sent = {"company_name": "Bakery\u200b Ltd", "user_name": "\u0645\u06cc\u200c\u062e"}
    path, visitor = await onboarding(world, partner, **sent), Visitor(world)
    page = (await visitor.get(path)).text
    assert {"\u200b", "\u200c"} & set(page) == set()
    form = {name: kept(page, name)[0] for name in Confirmed.__struct_fields__}
    done = (await visitor.post(path, **form)).headers["location"]
    entity_id = re.findall(r"<code[^>]*>(ent_\w+)</code>", (await visitor.get(done)).text)[0]
    live = world.service.modes["live"]
    access = await live.connection_list.access(partner.partner_id, entity_id)
    assert (access.name, form["user_name"]) == ("Bakery Ltd", "\u0645\u06cc\u062e")


def test_no_field_of_a_template_holds_a_picture_of_what_nobody_sees():
    """What is looked for, too, is sent again as it was; ids and tokens hold nothing such."""
    shown = re.compile(
        r'<input(?![^>]*type="(?:hidden|radio|checkbox)")[^>]* value="(\{\{[^"]*)"'
        r"|<textarea[^\n]*>(\{\{.*)</textarea>"
    )
    found = [
        (path.name, *filter(None, one))
        for path in Path("service/pages/templates").rglob("*.html")
        for one in shown.findall(path.read_text().replace("\n    {%-", "{%-"))
    ]
    assert len(found) > 5
    assert [one for one in found if "| entered" not in one[1]] == []


async def test_a_website_is_taken_as_it_is_copied_from_a_browser(world, forms):
    """With what stands before and after its host, in an application and an approval."""
    partners = world.service.partners
    copied = {"website": "https://WWW.Example.com/"}
    visitor, path, _ = forms[ConsoleApplication]
    applied = await visitor.post(path, company="C", contact_name="N", use="U", **copied)
    partner_id = applied.headers["location"].rpartition("/")[2]
    assert (await partners.look(partner_id)).website == "www.example.com"
    staff, path, _ = forms[PartnerApproval]
    assert (await staff.post(path, version="1", **copied)).status_code == 303
    approved = await partners.profile(path.split("/")[3])
    assert approved.website == "www.example.com"
