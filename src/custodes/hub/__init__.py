"""The Hub: the policy, the adapters and what runs, in a browser and as JSON over HTTP.

`serve` is the whole of it; `make_app` over `open_hub` is the same for a server of one's own. A surface: it
holds no rule. Importing it loads starlette, uvicorn and jinja2 (the extra ``custodes[hub]``), so only
`cos hub` does.
"""

from custodes.hub.access import Access
from custodes.hub.app import make_app
from custodes.hub.hub import Hub, open_hub
from custodes.hub.server import AddressError, access_for, listen, serve
from custodes.hub.trace_link import TraceLinkError

__all__ = [
    "Access",
    "AddressError",
    "Hub",
    "TraceLinkError",
    "access_for",
    "listen",
    "make_app",
    "open_hub",
    "serve",
]
