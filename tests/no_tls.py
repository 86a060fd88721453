"""What clients of plain HTTP are given to verify by."""

import ssl
from typing import Final

NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""httpx's `verify`, which trusts nobody. Its own reads all of the system's authorities for each
call: 20 ms, more than most calls take."""
