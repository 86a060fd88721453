"""References that make an endpoint refuse, for errors that nothing else produces (decision 16)."""

from collections.abc import Mapping, Sequence
from typing import Final

from service.core.errors import Refusal

TRIGGERS: Final[Mapping[str, Sequence[str]]] = {
    "start_onboarding": ("onboarding_unavailable", "internal_error", "service_unavailable"),
    "mint_upload_url": ("internal_error", "service_unavailable"),
    "create_claim": (
        "claim_conflict",
        "internal_error",
        "service_unavailable",
        "document_verification_failed",
    ),
}
"""In test mode, a first write of an endpoint under the reference `trigger_<code>` is refused with
that code: only codes that the endpoint can give in earnest."""

PREFIX: Final = "trigger_"


def refuse_trigger(mode: str, endpoint: str, reference: str) -> None:
    """Refuse with the error that a partner's reference asks for, in test mode alone."""
    code = reference.removeprefix(PREFIX)
    if mode == "test" and code != reference and code in TRIGGERS[endpoint]:
        # To the partner like any other, and no failure of the service.
        raise Refusal(code, counted_as=reference)
