"""The details of a business when staff register it."""

from msgspec import UNSET, UnsetType

from service.http.scalars import Checked, EmailAddress, RequiredText, Text


class NewEntity(Checked, frozen=True, kw_only=True):
    """A business that uses the service already."""

    name: RequiredText
    email: EmailAddress
    company_number: Text | UnsetType = UNSET
