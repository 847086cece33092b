"""Each page's parts, rendered from the project as it stands: what a view keeps up to date."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from urllib.parse import quote

import anyio.to_thread

from custodes.hub import trace_link
from custodes.hub.adapters_view import AdapterNow, due_s
from custodes.hub.hub import Hub
from custodes.hub.live import Rendered
from custodes.hub.picture import picture
from custodes.hub.runs_view import TreeRow, element_id, tree_rows
from custodes.hub.settings_fields import Draft
from custodes.hub.settings_view import settings_page
from custodes.hub.templates_env import render
from custodes.policy.settings import SettingsError
from custodes.store import StoreError
from custodes.supervision.record.run_view import conversations_of, runs_of
from custodes.supervision.record.threads import with_threads

LISTED = 100
"""Runs that the list shows; a search finds the newest so many of all."""
GROWING_S = 5.0
"""How often the picture of what still runs is drawn anew."""


Renderer = Callable[[Hub, str], Awaitable[Rendered]]
"""Renders a page about its argument: an id, or the words that are searched for."""


async def render_settings(hub: Hub, _: str = "", draft: Draft | None = None) -> Rendered:
    """With what somebody typed into one section, where that was refused."""
    try:
        now = await anyio.to_thread.run_sync(hub.project.settings_now)
    except SettingsError as error:
        return Rendered(texts={"problem": render("_problem.html", message=str(error))})
    adapters: tuple[AdapterNow, ...] | None = None
    problem = ""
    try:
        adapters = await hub.adapters()
    except StoreError as error:  # the policy can be seen and changed all the same
        problem = render("_problem.html", message=str(error))
    page = settings_page(now, draft)
    texts = {
        "status": render("_status.html", page=page, problems=now.overview.problems, csrf=hub.access.csrf)
    }
    if problem:
        texts["problem"] = problem
    if page.enabled:
        if adapters is not None:
            agents = [each for each in adapters if each.agent]
            texts["ready"] = render("_ready.html", adapters=agents, at=time.time())
        for number, (title, sections) in enumerate(page.groups.items()):
            name = f"group-{number}"
            texts[name] = render(
                "_group.html", name=name, title=title, sections=sections, csrf=hub.access.csrf
            )
    return Rendered(texts=texts, due_s=due_s(adapters or ()))


async def render_adapters(hub: Hub, _: str = "") -> Rendered:
    try:
        adapters = await hub.adapters()
    except (SettingsError, StoreError) as error:
        return Rendered(texts={"problem": render("_problem.html", message=str(error))})
    registry = hub.project.registry()
    texts = {
        element_id("adapter", each.id): render(
            "_adapter.html",
            id=element_id("adapter", each.id),
            adapter=each,
            csrf=hub.access.csrf,
            at=time.time(),
        )
        for each in adapters
    }
    if notes := (*registry.errors.values(), *registry.warnings):
        texts["notes"] = render("_notes.html", notes=notes)
    return Rendered(texts=texts, due_s=due_s(adapters))


async def render_runs(hub: Hub, words: str) -> Rendered:
    try:
        file = hub.project.file
        found = await (file.matching(words, LISTED) if words.split() else file.latest(LISTED))
        asks, due = await _asks(hub)
    except StoreError as error:
        return Rendered(texts={"problem": render("_problem.html", message=str(error))})
    conversations = conversations_of(found)
    texts = {} if words.split() else asks
    if not conversations:
        return Rendered(texts={**texts, "nothing": render("_nothing.html", words=words)}, due_s=due)
    for each in conversations:
        name = element_id("c", each.conversation)
        texts[name] = render("_conversation.html", id=name, conversation=each)
    return Rendered(texts=texts, due_s=due)


async def _asks(hub: Hub, conversation: str | None = None) -> tuple[dict[str, str], float | None]:
    """What waits for leave, in one conversation or all, and the seconds until the first is denied."""
    now = time.time()
    asks = [each for each in await hub.project.file.asks() if conversation in (None, each.conversation)]
    if not asks:
        return {}, None
    back = "/runs" if conversation is None else f"/conversations/{quote(conversation)}"
    text = render("_asks.html", asks=asks, now=now, csrf=hub.access.csrf, back=back)
    return {"asks": text}, max(0.1, min(each.deadline for each in asks) - now)


class _TreeTexts:
    """The rows of one conversation's tree. Of a thousand rows few change at a time: the others are kept."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[TreeRow, str]] = {}

    def texts(self, rows: tuple[TreeRow, ...], csrf: str) -> dict[str, str]:
        found: dict[str, tuple[TreeRow, str]] = {}
        for row in rows:
            name = element_id("r", row.run.run_id)
            kept = self._kept.get(name)
            text = kept[1] if kept and kept[0] == row else render("_row.html", id=name, row=row, csrf=csrf)
            found[name] = (row, text)
        self._kept = found
        return {name: text for name, (_, text) in found.items()}


def conversation_renderer() -> Renderer:
    rows = _TreeTexts()

    async def render_conversation(hub: Hub, conversation: str) -> Rendered:
        try:
            now = time.time()
            attempts = await hub.project.file.conversation(conversation)
            plans = await hub.project.file.plan_accounts(conversation, now)
            fan_outs = await hub.project.file.fan_outs(conversation, now)
            asks, due = await _asks(hub, conversation)
        except StoreError as error:
            return Rendered(texts={"problem": render("_problem.html", message=str(error))})
        if not attempts:
            return Rendered(texts={"nothing": render("_nothing.html", words=conversation)})
        (found,) = conversations_of(attempts)
        running = any(run.status == "running" and not run.abandoned for run in found.runs)
        texts = {
            **asks,
            "summary": render(
                "_summary.html",
                conversation=found,
                running=running,
                plans=plans,
                fan_outs=fan_outs,
                csrf=hub.access.csrf,
            ),
            "picture": render("_picture.html", picture=picture(found.runs, now)),
            **rows.texts(tree_rows(found.runs), hub.access.csrf),
        }
        if running:
            due = min(GROWING_S, due or GROWING_S)
        return Rendered(texts=texts, due_s=due)

    return render_conversation


async def render_run(hub: Hub, run_id: str) -> Rendered:
    try:
        found = runs_of(await hub.project.file.run(run_id))
    except StoreError as error:
        return Rendered(texts={"problem": render("_problem.html", message=str(error))})
    if not found:
        return Rendered(texts={"nothing": render("_nothing.html", words=run_id)})
    (run,) = found
    shown = await anyio.to_thread.run_sync(with_threads, run, hub.project.path)
    threads = {thread.attempt: thread for thread in shown.threads}
    traces = {each.trace.trace for each in run.attempts if each.trace is not None} if hub.trace_url else ()
    links = {trace: trace_link.link(hub.trace_url, trace) for trace in traces}
    dashed = ("--",) if run.conversation.startswith("-") else ()
    command = ("cos", "cognition", "trace", *dashed, run.conversation)
    return Rendered(
        texts={
            "run": render(
                "_run.html", run=run, threads=threads, links=links, command=command, csrf=hub.access.csrf
            )
        }
    )
