"""The MCP server: the policy, health and supervised work as tools, for the agent that is running.

`serve` is the whole of it, over stdio. A surface: it holds no rule. Importing it loads the ``mcp`` SDK (the
extra ``custodes[mcp]``), so only `cos mcp` does.
"""

from custodes.mcp.server import make_server, serve

__all__ = ["make_server", "serve"]
