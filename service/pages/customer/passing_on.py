"""How a customer passes their entity's id on to a partner: nobody else tells it (contract 1).

They copy it, send a mail that is prepared for them, or return to the partner's page with it.
"""

from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from service.core.invisible_characters import visible
from service.pages.words import TEXTS
from service.partners.commands import Profile
from service.partners.wire import ENTITY_PARAMETER


class Ways(NamedTuple):
    """Links that take the id along. `url` is None where the partner has registered none.

    `host` is that of the URL, which people are told before they follow it.
    """

    mail: str
    url: str | None
    host: str | None


def ways(entity_id: str, name: str, partner: Profile) -> Ways:
    """Return the links for an entity's id and name."""
    said = {"name": visible(name), "entity_id": entity_id}
    subject, body = (TEXTS[f"connected.mail_{part}"].format(**said) for part in ("subject", "body"))
    asked = urlencode({"subject": subject, "body": body.replace("\n", "\r\n")}, quote_via=quote)
    mail = f"mailto:{quote(partner.email or '', safe='@')}?{asked}"
    if partner.return_url is None:
        return Ways(mail, None, None)
    parts = urlsplit(partner.return_url)
    added = urlencode({ENTITY_PARAMETER: entity_id})
    query = f"{parts.query}&{added}" if parts.query else added
    return Ways(mail, urlunsplit(parts._replace(query=query)), parts.hostname)
