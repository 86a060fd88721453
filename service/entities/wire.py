"""The details of a business when staff register it."""

from msgspec import UNSET, UnsetType

from service.http.scalars import Checked, EmailAddress, Line, Name


class NewEntity(Checked, frozen=True, kw_only=True):
    """A business that uses the service already."""

    name: Name
    email: EmailAddress
    company_number: Line | UnsetType = UNSET
