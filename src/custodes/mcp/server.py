"""The tools behind the protocol: the SDK's low-level server over standard input and output, on both loops."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

import custodes
from custodes.adapters.errors import AdapterError
from custodes.mcp.stdio import standard_streams
from custodes.mcp.tools import TOOLS, Tool, Tools, Watch
from custodes.overseer.by_hand import SwitchRefused
from custodes.overseer.reading import ConfigError
from custodes.policy.arguments import ArgumentsError, schema_of
from custodes.policy.settings import SettingsError
from custodes.signals import heeding_signals
from custodes.store import StoreError
from custodes.supervision.asks.operator_ask import OperatorError
from custodes.supervision.record.audit import AuditError
from custodes.supervision.supervision import Supervision

logger = logging.getLogger("custodes.mcp")

INSTRUCTIONS = """\
Supervised child work for this project. You stay the parent: children get bounded work by role \
(cos_dispatch, cos_fan_out) and hand back typed evidence, never a transcript. The operator's policy decides \
the runtime and the model; cos_supervision_config shows it. A refusal states which pools wait and how many \
seconds until the soonest recovers: wait that long or go on without, and do not ask again before. An outcome \
of status "unknown" may have had an effect: look before you have it done again."""

_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (ArgumentsError, "arguments"),
    (SettingsError, "settings"),
    (AdapterError, "adapters"),
    (OperatorError, "request"),
    (AuditError, "audit"),
    (ConfigError, "overseer"),
    (SwitchRefused, "overseer"),
    (StoreError, "store"),
)
"""The errors of a person's input or project, under the names that the command line gives them."""


async def serve(project: Path, *, adapter: str = "") -> int | None:
    """Serve a project until the client closes its end, or a signal comes: its number is the answer.

    Either way every child is ended, with everything it started, before this returns.

    :param adapter: the runtime that the session itself runs on; the first ready one where empty.
    """
    watch, work = Watch(), anyio.CancelScope()
    async with heeding_signals(work.cancel) as ended_by:
        with work:
            async with (
                Supervision(project, observer=watch.observe) as supervision,
                supervision.conversation(f"mcp-{secrets.token_hex(8)}", adapter=adapter) as parent,
                standard_streams() as (lines, writer),
                stdio_server(lines, writer) as (incoming, outgoing),  # type: ignore[arg-type]  # all it uses
            ):
                server = make_server(Tools(supervision, parent))
                await server.run(incoming, outgoing, server.create_initialization_options())
    return ended_by[0] if ended_by else None


def make_server(tools: Tools) -> Server[dict[str, Any]]:
    """The protocol's server over the tools, for any transport."""

    async def list_tools(
        _: ServerRequestContext[dict[str, Any]], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed(tool) for tool in TOOLS])

    async def call_tool(
        context: ServerRequestContext[dict[str, Any]], asked: types.CallToolRequestParams
    ) -> types.CallToolResult:
        async def report(progress: float, message: str) -> None:
            await context.session.report_progress(progress, None, message)

        try:
            document = await tools.call(asked.name, asked.arguments, report)
        except Exception as error:
            return _failed(error)
        return _result(document)

    server = Server(
        "custodes",
        title="Custodes",
        version=custodes.__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware.clear()  # its span for each message would stand beside the tree that a fan-out is
    return server


def _listed(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=schema_of(tool.call),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=tool.open_world,
            open_world_hint=tool.open_world,
        ),
    )


def _result(document: object, *, is_error: bool = False) -> types.CallToolResult:
    """The document as structured content, and as text for the clients that show a model only that."""
    encoded = msgspec.json.encode(document)
    return types.CallToolResult(
        content=[types.TextContent(text=encoded.decode())],
        structured_content=msgspec.json.decode(encoded),
        is_error=is_error,
    )


def _failed(error: BaseException) -> types.CallToolResult:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    kind = next((kind for known, kind in _KINDS if isinstance(error, known)), None)
    if kind is None:
        # Its words may hold a secret: the client is told no more than where to look.
        logger.error("a tool failed", exc_info=error)
        return _result(
            {"error": {"kind": "internal", "message": f"{type(error).__name__}; see the server's stderr"}},
            is_error=True,
        )
    return _result({"error": {"kind": kind, "message": str(error)}}, is_error=True)
