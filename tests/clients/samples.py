"""The samples of the reference with the ids of a running dev, and what they are configured by."""

from typing import Any

import httpx

from service.partner_api.docs.openapi import document
from service.partner_api.docs.page import samples
from tests.conformance import DESCRIBED
from tests.dev_process import Dev
from tests.patience import PATIENCE_SECONDS

Json = dict[str, Any]


def samples_of(dev: Dev, language: str) -> dict[str, str]:
    """Return the sample of each endpoint in a language, for what is in the dev's sandbox."""
    api = document(DESCRIBED, dev.facts["base_url"], "")
    fields = api["components"]["schemas"]["ClaimRequest"]["properties"]
    entity_id = dev.facts["sandbox"]["connected_entity_id"]
    ids = {
        fields["entity_id"]["examples"][0]: entity_id,
        _example(api, "/claims/{claim_id}", "claim_id"): _claim(dev, entity_id),
    }
    found: dict[str, str] = {}
    for endpoint in DESCRIBED:
        (code,) = (one.code for one in samples(endpoint, api) if one.language == language)
        for shown, real in ids.items():
            code = code.replace(shown, real)
        found[endpoint.id] = code
    return found


def settings_of(dev: Dev) -> dict[str, str]:
    """Return what samples are configured by."""
    return {"CLAIMS_API_KEY": dev.facts["test_key"], "CLAIMS_API_URL": dev.facts["base_url"]}


def _example(api: Json, path: str, parameter: str) -> str:
    (found,) = (one for one in api["paths"][path]["get"]["parameters"] if one["name"] == parameter)
    return found["example"]


def _claim(dev: Dev, entity_id: str) -> str:
    answer = httpx.post(
        f"{dev.facts['base_url']}/claims",
        headers={"Authorization": f"Bearer {dev.facts['test_key']}"},
        json={
            "entity_id": entity_id,
            "partner_claim_id": "case-of-samples",
            "defendant": {"name": "Debtor Ltd"},
            "invoices": [{"total_amount_for_invoice": "10.00"}],
        },
        timeout=PATIENCE_SECONDS,
    )
    return answer.raise_for_status().json()["claim_id"]
