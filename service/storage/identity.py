"""The credentials of the place where a process runs, which are looked for at their first use."""

from typing import Any, Final

import google.auth
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError

from service.storage.deadline import CallFailed

_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)


class NoIdentity(GoogleAuthError):
    """There are no credentials here, or the metadata server, which has them, does not answer."""


class NoAddress(GoogleAuthError):
    """The credentials are nobody's whom IAM could sign for."""


class WorkloadIdentity(Credentials):
    """Google's default credentials, found at the first refresh, with that refresh's transport.

    The library looks for them as they are made, and asks the metadata server without an end. Here
    this is part of a call, in its thread and under its deadline: making these asks nobody.
    """

    def __init__(self) -> None:
        super().__init__()
        self._found: Any = None

    def refresh(self, request: Any) -> None:  # noqa: ANN401 - a transport; theirs is untyped
        """Get a token. Raises NoIdentity where there are no credentials."""
        if self._found is None:
            try:
                self._found, _ = google.auth.default(scopes=_SCOPES, request=request)
            except (CallFailed, GoogleAuthError, OSError, ValueError) as error:
                raise NoIdentity("no default credentials") from error
        self._found.refresh(request)
        self._quota_project_id = self._found.quota_project_id
        self.token, self.expiry = self._found.token, self._found.expiry

    @property
    def service_account_email(self) -> str:
        """Their account, as the metadata server names it in a refresh."""
        return getattr(self._found, "service_account_email", None) or ""


def own_address(credentials: Any, request: Any) -> str:  # noqa: ANN401 - theirs share no type
    """Return the account that the credentials are of. Raises NoAddress if they are of none."""
    if not credentials.valid:
        credentials.refresh(request)
    address: str = credentials.service_account_email
    if "@" not in address:  # a person's credentials, or a pool's that has no account
        raise NoAddress(f"no account: {address!r}")
    return address
