import asyncio
from email import message_from_bytes, policy


async def until(condition, seconds=5.0):
    """Wait until a condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - a file appears, which wakes nobody
            await asyncio.sleep(0.01)


def onboarding(reference="u1", email="owner@example.com"):
    """Answer a small valid onboarding."""
    return {"partner_user_id": reference, "company_name": "New business", "user_email": email}


async def test_the_magic_link_is_mailed_once(world):
    """An onboarding mails its link to the person; a replay mails nothing more."""
    partner = await world.partner()
    await partner.call("POST", "/onboardings", json=onboarding())
    await until(lambda: world.mail_dir.exists() and list(world.mail_dir.glob("*.eml")))
    await partner.call("POST", "/onboardings", json=onboarding())
    await asyncio.sleep(0.3)
    (path,) = world.mail_dir.glob("*.eml")
    mail = message_from_bytes(path.read_bytes(), policy=policy.default)
    assert mail["To"] == "owner@example.com"
    assert "https://api.example.com/onboarding/" in mail.get_content()
