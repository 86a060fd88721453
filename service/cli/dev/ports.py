"""Free ports of this machine."""

import socket
from typing import Final

HOST: Final = "127.0.0.1"


def free_port(port: int = 0, host: str = HOST) -> int:
    """Return the port, or a free one for 0. Raises OSError if it is taken or is no port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family) as probe:
            return int(probe.getsockname()[1])
    except OverflowError as error:
        raise OSError(f"{port} is no port") from error
