"""The service's secrets, for what needs no installation."""

from service.ledger.service_keys import EventRoots, Secrets

SECRETS = Secrets(b"p" * 32, b"l" * 32, b"k" * 32, EventRoots({}, True, 1))
