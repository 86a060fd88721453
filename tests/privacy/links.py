"""A link whose label is about a person."""

CANARY = "zoe@example.com"


async def labelled_link(partner) -> str:
    """Return the token of a new link whose label is about a person."""
    body = {"partner_user_id": "u", "label": f"for {CANARY}"}
    answer = await partner.call("POST", "/connect-requests", json=body)
    return answer.json()["connect_url"].rpartition("/")[2]
