"""What a partner says of itself when it applies."""

from service.web.scalars import Checked, EmailAddress, RequiredText


class PartnerApplication(Checked, frozen=True, kw_only=True):
    """A partner's name and the address of its contact."""

    name: RequiredText
    email: EmailAddress
