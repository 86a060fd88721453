"""Client of a debt-recovery service's partner API: `Client`, and `AsyncClient` for asyncio or trio.

Requests and answers are the structs of `models`, errors those of `errors` and `api_errors`.
"""

from claim_ledger_client._async.client import AsyncClient
from claim_ledger_client._sync.client import Client
from claim_ledger_client.errors import (
    ApiError,
    ClaimLedgerError,
    ConnectionLostError,
    IncompatibleAnswerError,
    UnreachableError,
    UnreadableAnswerError,
    UntrustedServerError,
    UploadRefusedError,
    WebhookRefusedError,
)
from claim_ledger_client.models import (
    ClaimRequest,
    ConnectRequest,
    Defendant,
    DefendantAddress,
    DocumentRef,
    Invoice,
    OnboardingAddress,
    OnboardingRequest,
    UploadRequest,
)
from claim_ledger_client.retries import Retries
from claim_ledger_client.webhooks import Webhooks

__all__ = [
    "ApiError",
    "AsyncClient",
    "ClaimLedgerError",
    "ClaimRequest",
    "Client",
    "ConnectRequest",
    "ConnectionLostError",
    "Defendant",
    "DefendantAddress",
    "DocumentRef",
    "IncompatibleAnswerError",
    "Invoice",
    "OnboardingAddress",
    "OnboardingRequest",
    "Retries",
    "UnreachableError",
    "UnreadableAnswerError",
    "UntrustedServerError",
    "UploadRefusedError",
    "UploadRequest",
    "WebhookRefusedError",
    "Webhooks",
]
