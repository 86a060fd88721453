"""The local store as a process of its own, which adds a byte to a file for each listing.

The file is the first argument; the others are those of `service.cli.dev.store`.
"""

import sys

from service.cli.dev.gcs.http import Answer
from service.cli.dev.gcs.json_side import JsonSide
from service.cli.dev.gcs.verifier import Request
from service.cli.dev.store import serve


def main() -> None:
    """Serve."""
    listings, answer = open(sys.argv.pop(1), "ab", buffering=0), JsonSide.answer  # noqa: PTH123,SIM115 - as long as the process

    async def counted(side: JsonSide, request: Request) -> Answer:
        if request.raw_path.endswith("/o"):
            listings.write(b".")
        return await answer(side, request)

    JsonSide.answer = counted
    serve()


if __name__ == "__main__":
    main()
