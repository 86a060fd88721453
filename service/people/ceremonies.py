"""Ceremonies of WebAuthn: what a browser is asked to do with a passkey, and checking its response.

A challenge is an HMAC of the session and the moment, so nothing is stored for it. It is good for
one use: a ceremony that succeeds ends the session that its challenge belongs to.
"""

import hmac
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from typing import Final, Literal, NamedTuple

from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import parse_authentication_credential_json
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from service.core.clock import Clock
from service.core.errors import Refusal
from service.facts.passkeys import Passkey
from service.ledger.service_keys import ServiceKeyStore
from service.people.sessions import Person

CHALLENGE_LIFETIME: Final = timedelta(minutes=5)
CREDENTIAL_CHARACTERS_MAX: Final = 8_000
"""A response without attestation is a tenth of that."""
CREDENTIAL: Final = "credential"
"""The field of a form that has the browser's answer."""
SECONDS_DIGITS_MAX: Final = 12
SERVICE_NAME: Final = "claim-ledger"

Purpose = Literal["add", "prove"]


class Ceremony(NamedTuple):
    """What a page needs: the options for the browser, as JSON, and the challenge in them."""

    options: str
    challenge: str


@dataclass(frozen=True, slots=True)
class Ceremonies:
    """Begins and checks ceremonies of pages at `origin`.

    Passkeys belong to `host`: the origin's own, or one above it.
    """

    secrets: ServiceKeyStore
    clock: Clock
    origin: str
    host: str

    @property
    def are_possible(self) -> bool:
        """Whether browsers know passkeys of this host: they know none of a bare IP address."""
        try:
            ip_address(self.host)
        except ValueError:
            return True
        return False

    async def creation(self, person: Person, known: Sequence[Passkey]) -> Ceremony:
        """Return the ceremony that adds a passkey to those that a person has.

        The user handle is the library's, random bytes that nothing stores. An authenticator would
        put each new passkey in the place of the one before it if both had the person's id.
        """
        challenge = await self._challenge(person, "add", _seconds(self.clock))
        options = generate_registration_options(
            rp_id=self.host,
            rp_name=SERVICE_NAME,
            user_name=person.email,
            challenge=challenge.encode(),
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.PREFERRED,
                user_verification=UserVerificationRequirement.REQUIRED,
            ),
            exclude_credentials=_descriptors(known),
        )
        return Ceremony(options_to_json(options), challenge)

    async def request(self, person: Person, known: Sequence[Passkey]) -> Ceremony:
        """Return the ceremony by which a person proves that they have one of their passkeys."""
        challenge = await self._challenge(person, "prove", _seconds(self.clock))
        options = generate_authentication_options(
            rp_id=self.host,
            challenge=challenge.encode(),
            allow_credentials=_descriptors(known),
            user_verification=UserVerificationRequirement.REQUIRED,
        )
        return Ceremony(options_to_json(options), challenge)

    async def created(self, person: Person, form: Mapping[str, str]) -> tuple[bytes, bytes]:
        """Return the id and the public key of the passkey that a form holds.

        Refuses with `passkey_refused` what was not made by that ceremony, for this person, lately.
        """
        challenge, credential = await self._returned(person, "add", form)
        with _refusing():
            made = verify_registration_response(
                credential=credential,
                expected_challenge=challenge,
                expected_rp_id=self.host,
                expected_origin=self.origin,
                require_user_verification=True,
            )
        return made.credential_id, made.credential_public_key

    async def prove(
        self, person: Person, form: Mapping[str, str], known: Sequence[Passkey]
    ) -> None:
        """Refuse with `passkey_refused` unless a form proves that a person has one of these.

        Signature counters are not compared: passkeys that people synchronise have none.
        """
        challenge, text = await self._returned(person, "prove", form)
        with _refusing():
            credential = parse_authentication_credential_json(text)
            (passkey,) = [one for one in known if one.credential_id == credential.raw_id]
            verify_authentication_response(
                credential=credential,
                expected_challenge=challenge,
                expected_rp_id=self.host,
                expected_origin=self.origin,
                credential_public_key=passkey.public_key,
                credential_current_sign_count=0,
                require_user_verification=True,
            )

    async def _returned(
        self, person: Person, purpose: Purpose, form: Mapping[str, str]
    ) -> tuple[bytes, str]:
        """Return the challenge that a form answers, and the answer; refuse one that is not ours."""
        challenge, credential = form.get("challenge", ""), form.get(CREDENTIAL, "")
        seconds = challenge.partition(".")[0]
        is_number = seconds.isascii() and seconds.isdigit() and len(seconds) <= SECONDS_DIGITS_MAX
        at = int(seconds) if is_number else 0
        age = timedelta(seconds=_seconds(self.clock) - at)
        ours = await self._challenge(person, purpose, at)
        if not hmac.compare_digest(challenge.encode(), ours.encode()) or age > CHALLENGE_LIFETIME:
            raise Refusal("passkey_refused")
        if not 0 < len(credential) <= CREDENTIAL_CHARACTERS_MAX:
            raise Refusal("passkey_refused")
        return challenge.encode(), credential

    async def _challenge(self, person: Person, purpose: Purpose, at: int) -> str:
        secrets = await self.secrets.get()
        return f"{at}.{secrets.link_token(f'passkey-{purpose}', f'{person.session_id} {at}')}"


def _seconds(clock: Clock) -> int:
    return int(clock().timestamp())


def _descriptors(known: Sequence[Passkey]) -> list[PublicKeyCredentialDescriptor]:
    return [PublicKeyCredentialDescriptor(id=one.credential_id) for one in known]


@contextmanager
def _refusing() -> Generator[None]:
    """Refuse whatever the library cannot read or does not accept."""
    try:
        yield
    # All of them: it lets through whatever its decoders raise for bytes that a stranger chose.
    except Exception as error:
        raise Refusal("passkey_refused") from error
