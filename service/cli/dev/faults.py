"""The base of the errors of `claim-ledger dev`."""


class DevFault(Exception):
    """Anything that keeps a dev, its PostgreSQL or its document store from running.

    `str()` is one line for a person.
    """
