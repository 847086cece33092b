"""A Hub over a project with something to show, and requests to it as a browser sends them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import msgspec
from starlette.types import Message, Receive, Send

from custodes.hub import Access, Hub, make_app, open_hub
from custodes.store import Connection, Database
from custodes.supervision.budgets.fan_out_table import FanOutRow, save_fan_out
from custodes.supervision.record import records
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.record.schema import DATABASE, MIGRATIONS
from support.program import running

PORT = 8787
BASE = f"http://127.0.0.1:{PORT}"


class Browser:
    """Asks as a page of the Hub does: its Host, its Origin, its token."""

    def __init__(self, hub: Hub, client: httpx2.AsyncClient) -> None:
        self.hub = hub
        self.client = client

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self.client.get(path, headers=headers)

    async def post(self, path: str, fields: dict[str, str], *, script: bool = True) -> httpx2.Response:
        """Send a form: by the page's script, or by the browser itself."""
        headers = {"origin": BASE, "content-type": "application/x-www-form-urlencoded"}
        if script:
            headers["hx-request"] = "true"
        content = urlencode({"csrf": self.hub.access.csrf, **fields})
        return await self.client.post(path, content=content, headers=headers)

    async def call(self, method: str, path: str, body: object = None, **headers: str) -> httpx2.Response:
        """Call the API as a program does."""
        content = b"" if body is None else msgspec.json.encode(body)
        token = {"x-csrf-token": self.hub.access.csrf}
        return await self.client.request(method, path, content=content, headers={**token, **headers})

    async def save(self, section: str, *, script: bool = True, **typed: str) -> httpx2.Response:
        """Fill in a section as the page shows it now, and send it. Fields: ``roles__reviewer__model``."""
        page = (await self.get("/settings")).text
        fields = {**form_of(page, section), **{key.replace("__", "."): value for key, value in typed.items()}}
        return await self.post("/settings", fields, script=script)


@asynccontextmanager
async def browser(project: Path, *, token: str | None = None, trace_url: str = "") -> AsyncIterator[Browser]:
    access = Access(host="127.0.0.1", port=PORT, token=token)
    async with open_hub(project, access, trace_url=trace_url) as hub:
        transport = httpx2.ASGITransport(app=make_app(hub))
        async with httpx2.AsyncClient(transport=transport, base_url=BASE) as client:
            yield Browser(hub, client)


async def asked(
    hub: Hub,
    method: str,
    path: str,
    receive: Receive,
    headers: dict[str, str] | None = None,
    send: Send | None = None,
) -> list[Message]:
    """Ask the application itself, message by message; what it sent, where ``send`` does not take it."""
    sent: list[Message] = []

    async def keep(message: Message) -> None:
        sent.append(message)

    place, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": place,
        "raw_path": place.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [
            (name.encode(), value.encode()) for name, value in {"host": BASE[7:], **(headers or {})}.items()
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", PORT),
    }
    await make_app(hub)(scope, receive, send or keep)
    return sent


def form_of(page: str, section: str) -> dict[str, str]:
    """What a browser would send of a section's form, untouched."""
    found = re.search(rf'<form id="f-{re.escape(section)}".*?</form>', page, re.DOTALL)
    assert found, f"the page has no section {section}"
    form = found.group()
    fields = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form))
    fields |= dict(re.findall(r'<input id="[^"]*" name="([^"]*)" type="text"[^>]*? value="([^"]*)"', form))
    for name, options in re.findall(r'<select id="[^"]*" name="([^"]*)".*?>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected( disabled)?', options)
        if chosen and not chosen.group(2):
            fields[name] = chosen.group(1)
    return fields


async def put_on_record(
    project: Path,
    rows: Iterable[AttemptRow],
    *,
    update: bool = False,
    fan_outs: Iterable[FanOutRow] = (),
) -> None:
    """Write attempts, and accounts of fan-outs, into the project's database as a host does."""
    (project / DATABASE).parent.mkdir(exist_ok=True)
    database = await Database.open(project / DATABASE, MIGRATIONS)
    try:
        kept, accounts = tuple(rows), tuple(fan_outs)

        async def write(connection: Connection) -> None:
            await (records.update if update else records.insert)(connection, kept)
            for each in accounts:
                await save_fan_out(connection, each)

        await database.write(write)
    finally:
        await database.aclose()


@contextmanager
def started(project: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`cos hub` as a process of its own, and the address that it prints."""
    command = [sys.executable, "-m", "custodes.cli", "hub", "--port", "0", "-d", str(project), *options]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()[-1]
        finally:
            if process.poll() is None:
                process.kill()
