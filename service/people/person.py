"""Who is signed in."""

from typing import NamedTuple

from service.core.ids import derived_id


class Person(NamedTuple):
    """A signed-in person. `address_hash` is the keyed look-up of the folded e-mail address, hex."""

    email: str
    address_hash: str
    session_id: str

    @property
    def person_id(self) -> str:
        """The id by which events name this person: it reveals nothing without the look-up key."""
        return derived_id("per", self.address_hash)
