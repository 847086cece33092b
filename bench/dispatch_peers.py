"""The peers of ``bench/dispatch.py``, each in its own way and in an environment of its own.

    python -m bench.dispatch_peers NAME

Nothing is durable in any of them but the original, and none of them limits how many run at once: that is how
they are used. Their tracing is off.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import operator
import os
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

from bench.suite.contender import Case, Figures, Spent, serve

Call = Callable[[], Awaitable[Any]]


RUNNER = asyncio.Runner()
"""One loop for all that is asked: some peers keep tasks of their own on it."""


def of_calls(call: Call) -> dict[str, Case]:
    """The cases of a peer whose child is one call."""

    async def one(times: int) -> Figures:
        await call()
        spent = Spent()
        while not spent.enough:
            with spent.counting(times):
                for _ in range(times):
                    await call()
        return spent.figures()

    async def fan_out(size: int) -> Figures:
        await call()
        spent = Spent()
        while not spent.enough:
            with spent.counting(size):
                await asyncio.gather(*(call() for _ in range(size)))
        return spent.figures()

    return {
        "one": lambda times: RUNNER.run(one(times)),
        "fan-out": lambda size: RUNNER.run(fan_out(size)),
    }


class State(TypedDict):
    size: int
    done: Annotated[list[int], operator.add]


def langgraph() -> dict[str, Case]:
    """A map step: one ``Send`` for each node, no checkpointer."""
    from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]  # the peers'
    from langgraph.types import Send  # type: ignore[import-not-found]  # the peers'

    async def node(_: dict[str, Any]) -> dict[str, list[int]]:
        return {"done": [1]}

    def spread(state: State) -> list[Any]:
        return [Send("node", {"number": number}) for number in range(state["size"])]

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_conditional_edges(START, spread, ["node"])
    graph.add_edge("node", END)
    compiled = graph.compile()

    async def run(size: int) -> None:
        state = await compiled.ainvoke({"size": size, "done": []})
        assert len(state["done"]) == size

    async def fan_out(size: int) -> Figures:
        await run(1)
        spent = Spent()
        while not spent.enough:
            with spent.counting(size):
                await run(size)
        return spent.figures()

    return {"one": of_calls(partial(run, 1))["one"], "fan-out": lambda size: RUNNER.run(fan_out(size))}


def openai_agents() -> dict[str, Case]:
    """One run of an agent whose model answers at once."""
    from agents import (  # type: ignore[import-not-found]  # the peers'
        Agent,
        Model,
        ModelResponse,
        RunConfig,
        Runner,
        Usage,
    )
    from openai.types.responses import (  # type: ignore[import-not-found]  # the peers'
        ResponseOutputMessage,
        ResponseOutputText,
    )

    text = ResponseOutputText(text="nothing to do", type="output_text", annotations=[])
    message = ResponseOutputMessage(
        id="1", content=[text], role="assistant", status="completed", type="message"
    )

    class NoOp(Model):  # type: ignore[misc]  # the peers' base
        async def get_response(self, *_: Any, **__: Any) -> Any:
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    agent = Agent(name="reviewer", instructions="Review.", model=NoOp())
    config = RunConfig(tracing_disabled=True)
    return of_calls(lambda: Runner.run(agent, "Review the change.", run_config=config))


def pydantic_ai() -> dict[str, Case]:
    """One run of an agent with its own test model."""
    from pydantic_ai import Agent  # type: ignore[import-not-found]  # the peers'
    from pydantic_ai.models.test import TestModel  # type: ignore[import-not-found]  # the peers'

    agent = Agent(TestModel(custom_output_text="nothing to do"), instructions="Review.")
    return of_calls(lambda: agent.run("Review the change."))


def litellm() -> dict[str, Case]:
    """One completion through the router, with its own mock response."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    from litellm import Router  # type: ignore[import-not-found]  # the peers'

    parameters = {"model": "openai/m", "api_key": "none", "mock_response": "nothing to do"}
    router = Router(model_list=[{"model_name": "m", "litellm_params": parameters}])
    messages = [{"role": "user", "content": "Review the change."}]
    return of_calls(lambda: router.acompletion(model="m", messages=messages))


NOOP_DISPATCHER = """\
from thinking_os.dispatcher import DispatchResult

class NoOp:
    name = "noop"

    def available(self):
        return True

    async def dispatch(self, request):
        output = {"summary": "nothing to do", "_meta": {"total_cost_usd": 0.0}}
        return DispatchResult(
            formula_id=request.formula_id, status="ok", output_json=output, dispatcher_name="noop"
        )

def build_dispatcher():
    return NoOp()
"""


def original() -> dict[str, Case]:
    """Its own tools for one role and for many, with its adapters as shipped but for one dispatcher: that
    returns at once. Its metering, its health rows, its bundle and its record are its own."""
    import thinking_os  # type: ignore[import-not-found]  # the peers'

    home = Path(tempfile.mkdtemp(prefix="original-"))
    shipped = Path(thinking_os.__file__).parent
    adapters = home / "src" / "adapters"
    shutil.copytree(shipped.parent / "adapters", adapters)
    (adapters / "codex" / "sdk_dispatcher.py").write_text(NOOP_DISPATCHER)
    project = home / "project"
    (project / ".coding-os").mkdir(parents=True)
    (project / ".coding-os.yaml").write_text("agents: [codex]\n")
    settings = {"model_routing": {"enabled": True, "max_parallel": 16}}
    (project / ".coding-os" / "hub-settings.json").write_text(json.dumps(settings))
    database = project / ".coding-os" / "thinking_os.db"
    os.chdir(project)
    os.environ |= {
        "COS_CODING_OS_ROOT": str(home),
        "COS_PROJECT_ROOT": str(project),
        "COS_DB_PATH": str(database),
        "COS_AGENT": "codex",
        "COS_AGENT_DIR": str(project / ".coding-os" / "codex"),
    }
    sys.path.insert(0, str(shipped))  # it imports its own modules by bare names, too
    from thinking_os.database import init_db  # type: ignore[import-not-found]  # the peers'
    from thinking_os.tools import _cognition_dispatch as tools  # type: ignore[import-not-found]  # the peers'

    init_db(str(database))

    class Registrar:
        def tool(self, **_: Any) -> Callable[[Any], Any]:
            return lambda function: function

    run_one = tools.register_cos_dispatch_formula_run(Registrar(), str(database))
    run_many = tools.register_cos_dispatch_parallel_run(Registrar(), str(database))
    session = {"session_id": "bench", "task_marker": "T-1", "persona_id": "p", "complexity": "COMPLEX"}

    def checked(answer: str, wanted: str) -> None:
        assert wanted in answer, answer[:300]

    def one(times: int) -> Figures:
        spent = Spent()
        while not spent.enough:
            with spent.counting(times):
                for _ in range(times):
                    checked(run_one("reviewer", **session), '"status": "ok"')
        return spent.figures()

    def fan_out(size: int) -> Figures:
        spent = Spent()
        while not spent.enough:
            with spent.counting(size):
                checked(run_many(["reviewer"] * size, **session), f'"ok_count": {size}')
        return spent.figures()

    checked(run_one("reviewer", **session), '"status": "ok"')  # once unmeasured
    return {"one": one, "fan-out": fan_out}


PEERS = {
    "langgraph": langgraph,
    "openai-agents": openai_agents,
    "pydantic-ai-slim": pydantic_ai,
    "litellm": litellm,
    "coding-os": original,
}


def main() -> None:
    name = sys.argv[1]
    try:
        cases = PEERS[name]()
    except Exception as error:  # a peer that cannot run is named, and the others go on
        print(json.dumps({"cannot": f"{type(error).__name__}: {error}"[:300]}), flush=True)
        return
    serve(importlib.metadata.version(name), cases)


if __name__ == "__main__":
    main()
