"""``cos hub``: this project's supervision in a browser."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from custodes.cli.options import ProjectDir, project_at
from custodes.cli.output import DONE, SIGNALLED, CliError, complain, usage_error, write
from custodes.extras import missing

PORT = 8787


def hub(
    *,
    host: Annotated[str, Parameter(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port; 0 takes a free one.")] = PORT,
    open: Annotated[  # noqa: A002 - the option's word
        bool, Parameter(name="--open", negative=(), help="Open it in the browser.")
    ] = False,
    token: Annotated[
        bool,
        Parameter(
            name="--token",
            negative=(),
            help="Ask for a token on loopback, too: other users of this machine reach it.",
        ),
    ] = False,
    trace_url: Annotated[
        str,
        Parameter(
            help="Link each trace to where you look at traces: an address with {trace} for its id, as "
            "http://localhost:16686/trace/{trace}.",
        ),
    ] = "",
    project_dir: ProjectDir = Path(),
) -> int:
    """See and change all this in a browser.

    It serves this project's settings, adapters, and what runs, live. On loopback
    it asks for nothing. On any other address it asks for the token that is
    printed as it starts, and what goes over the network is not encrypted. Ctrl-C
    ends it; what runs in the project goes on.
    """
    project = project_at(project_dir)
    if not 0 <= port <= 65_535:
        raise usage_error(f"--port {port} is no port; 0 to 65535 would work")
    if any(importlib.util.find_spec(name) is None for name in ("starlette", "uvicorn", "jinja2")):
        raise CliError(missing("the Hub needs", "hub"), kind="missing")

    import anyio

    from custodes.hub import AddressError, TraceLinkError, access_for, listen, serve, trace_link

    try:
        if trace_url:
            trace_link.check(trace_url)
        bound = listen(host, port)
    except TraceLinkError as error:
        raise usage_error(f"--trace-url {error}") from error
    except AddressError as error:
        raise CliError(str(error), kind="address") from error
    listening = access_for(host, bound.getsockname()[1], ask_token=token)
    write(f"Hub of {project}: {listening.url}")
    if listening.access.token is not None:
        write("whoever has this address with its token can change the policy; it is not shown again")
    if open:
        import webbrowser

        if not webbrowser.open(listening.url):
            complain("cos hub: no browser was found; open the address above")
    ended_by = anyio.run(serve, project, bound, listening.access, trace_url, backend="asyncio")
    return DONE if ended_by is None else SIGNALLED + ended_by
