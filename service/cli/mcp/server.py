"""The MCP server: the API's operations as tools, its reference as resources."""

import json
from typing import Any, Final

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from service.cli.mcp.sandbox import Sandbox, SandboxFault
from service.cli.mcp.tools import (
    MINT,
    UPLOAD,
    Json,
    Text,
    Tool,
    texts_of,
    tools_of,
    upload_tool,
)

INSTRUCTIONS: Final = (
    "The sandbox of an API for partners that create debt-recovery claims. Nothing here is real: no "
    "mail is sent, no claim is pursued. Read claim-ledger://guide first; each operation has a page "
    "of its own, claim-ledger://operations/<tool>. The partner's own references are the "
    "idempotency keys: repeating a call makes nothing twice, except request_connection."
)

Context = ServerRequestContext[Any]


def sandbox_server(document: Json, sandbox: Sandbox) -> Server[Any]:
    """Return the server of a sandbox that this document describes."""
    tools = {one.name: one for one in tools_of(document)}
    tools[UPLOAD] = upload_tool(tools[MINT])
    texts = {one.uri: one for one in texts_of(document)}

    async def list_tools(_: Context, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(one) for one in tools.values()])

    async def call_tool(_: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in tools:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name}.")
        do = sandbox.upload if params.name == UPLOAD else sandbox.call
        try:
            refused, answer = await do(tools[params.name], params.arguments or {})
        except SandboxFault as fault:
            refused, answer = True, {"message": str(fault)}
        text = types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=answer, is_error=refused)

    async def list_resources(_: Context, __: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[_resource(one) for one in texts.values()])

    async def read_resource(
        _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if (one := texts.get(str(params.uri))) is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no resource {params.uri}.")
        contents = types.TextResourceContents(uri=one.uri, mime_type=one.mime_type, text=one.text)
        return types.ReadResourceResult(contents=[contents])

    return Server(
        "claim-ledger",
        version=document["info"]["version"],
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


async def serve_stdio(url: str, key: str) -> None:
    """Serve an assistant over stdin and stdout until it ends them; raises SandboxFault."""
    async with Sandbox(url, key) as sandbox:
        server = sandbox_server(await sandbox.document(), sandbox)
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())


def _tool(one: Tool) -> types.Tool:
    return types.Tool(
        name=one.name,
        title=one.title,
        description=one.description,
        input_schema=one.schema,
        annotations=types.ToolAnnotations(
            read_only_hint=one.method == "get",
            destructive_hint=False,
            idempotent_hint=one.repeatable,
            open_world_hint=False,
        ),
    )


def _resource(one: Text) -> types.Resource:
    return types.Resource(uri=one.uri, name=one.name, mime_type=one.mime_type)
