"""Why a dev does not start or ended; `str()` is one line for a person."""


class DevFault(Exception):
    """Anything that keeps a dev from running, beside PostgreSQL's own faults."""


class PortTaken(DevFault):
    """Something else listens on the port."""


class ServiceFailed(DevFault):
    """The service did not start or ended by itself; its log says more."""
