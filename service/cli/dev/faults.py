"""Why a dev does not start or ended."""


class DevFault(Exception):
    """Anything that keeps a dev, its PostgreSQL or its document store from running.

    `str()` is one line for a person.
    """
