"""What a call raises. The errors of the service's codes are in `api_errors`.

Everything is a `ClaimLedgerError`. None of them holds the API key.
"""

from claim_ledger_client.models import Details


class ClaimLedgerError(Exception):
    """A call has failed."""


class ApiError(ClaimLedgerError):
    """The service has refused a request. Branch on `code`, or on the classes of `api_errors`.

    A code of a later release, which this one does not know, is an `ApiError` itself.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int,
        details: Details | None = None,
        request_id: str | None = None,
        retry_after_seconds: int | None = None,
        charged: bool = True,
    ) -> None:
        """`charged` tells whether the request counted against the rate limit."""
        super().__init__(f"{code}: {message}" + (f" ({request_id})" if request_id else ""))
        self.code = code
        self.message = message
        self.status = status
        self.details = details
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds
        self.charged = charged


class UnreadableAnswerError(ClaimLedgerError):
    """An answer is not what the API answers, perhaps that of a proxy in between.

    Whether the request was carried out is unknown.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        retry_after_seconds: int | None = None,
        *,
        request_id: str | None = None,
    ) -> None:
        super().__init__(f"{reason} (HTTP {status})" + (f" ({request_id})" if request_id else ""))
        self.status = status
        self.retry_after_seconds = retry_after_seconds
        self.request_id = request_id


class IncompatibleAnswerError(UnreadableAnswerError):
    """The API has carried the request out, and its answer lacks what this client needs.

    Another attempt would get the same answer; a client of the service's own release can read it.
    """


class UnreachableError(ClaimLedgerError):
    """No connection could be made, so nothing was sent."""


class UntrustedServerError(UnreachableError):
    """The server's certificate is not one of an authority that this machine trusts."""


class ConnectionLostError(ClaimLedgerError):
    """The connection ended, or an answer took too long; whether it was carried out is unknown."""


class UploadRefusedError(ClaimLedgerError):
    """The storage has refused an upload; `code` is its own, such as `EntityTooLarge`."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"the storage answered {code or 'without a code'} (HTTP {status})")
        self.status = status
        self.code = code


class WebhookRefusedError(ClaimLedgerError):
    """A webhook is not from the service, was changed on its way, or is too old."""
