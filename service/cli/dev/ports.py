"""Free ports of this machine."""

import socket
from typing import Final

HOST: Final = "127.0.0.1"


def free_port(port: int = 0) -> int:
    """Return the port, or a free one for 0. Raises OSError if it is taken or is no port."""
    with held_port(port) as probe:
        return port_of(probe)


def held_port(port: int) -> socket.socket:
    """Return what keeps everybody else from the port, or a free one for 0, until it is closed.

    Raises OSError if it is taken or is no port.
    """
    try:
        return socket.create_server((HOST, port))
    except OverflowError as error:
        raise OSError(f"{port} is no port") from error


def port_of(held: socket.socket) -> int:
    """Return the port that is held."""
    return int(held.getsockname()[1])
