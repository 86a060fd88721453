"""`claim-ledger mcp`."""

import asyncio
import os
from typing import Final

import click

from service.app.setting_values import secure_origin
from service.core.extras import extra

KEY: Final = "CLAIMS_API_KEY"
URL: Final = "CLAIMS_API_URL"


@click.command()
@click.option(
    "--url",
    envvar=URL,
    default="http://127.0.0.1:8000/v1",
    show_default=True,
    help=f"Address of the API, which ends in `/v1`; also `{URL}`.",
)
def mcp(url: str) -> None:
    """Serve the sandbox's operations and the reference to an assistant, by MCP over stdio.

    The test key is read from `CLAIMS_API_KEY`. A live key is refused: with one, what an assistant
    does would be real.
    """
    key = os.environ.get(KEY, "")  # noqa: TID251 - a partner's variable, no setting of the service
    if not key.isascii() or not key.isprintable() or not key.startswith("pk_test_"):
        raise click.ClickException(f"{KEY} has to be a test key, which begins with pk_test_.")
    try:
        secure_origin(url.removesuffix("/").removesuffix("/v1"))
    except ValueError as error:
        raise click.ClickException(f"{URL}: {error}, and /v1 after it.") from error
    try:
        from service.cli.mcp.server import SandboxFault, serve_stdio
    except ImportError as error:
        raise click.ClickException(f"The server needs MCP's library: {extra('mcp')}.") from error
    try:
        asyncio.run(serve_stdio(url, key))
    except SandboxFault as fault:
        raise click.ClickException(f"{url}: {fault}.") from fault
