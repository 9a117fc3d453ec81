"""`OpenAIAgentsRuntime`: an agent of the OpenAI Agents SDK as an agent runtime.

```python
app.runtime(OpenAIAgentsRuntime(Agent(name="Shop", tools=[refund], handoffs=[complaints])))
```

The memory of the agent is stored for each session as items of the Responses API. The state of a run
that waits for an approval is stored too, so that the approval is asked again when its session is
resumed.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from agents import (
    Agent,
    ModelBehaviorError,
    RunConfig,
    Runner,
    RunResultStreaming,
    RunState,
    ToolApprovalItem,
)

from arp.protocol.json_value import JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.task_runtime import TaskRuntime, TaskTurn
from arp.runtime.frameworks.agents_finish import watch, watched_end
from arp.runtime.frameworks.agents_stream import AgentsStream, input_of
from arp.turn.past_messages import PastMessages


class OpenAIAgentsRuntime(TaskRuntime):
    """A runtime that runs an `agents.Agent`.

    Args:
        agent: First agent; the agents that it can hand off to are found through it.
        context: Value of `context` for tools.
        run_config: Configuration, as for `Runner.run_streamed`.
        max_turns: Largest number of requests to a model within one turn.
        cwd: Directory of the runtime, as in `DrivenRuntime`.
        directory: Directory that stores sessions so that other processes find them; `None` means in
            memory.
    """

    name = "openai-agents"
    part_types: ClassVar[frozenset[str]] = frozenset({"text", "image", "file"})
    more_capabilities: ClassVar[tuple[str, ...]] = ("permission_rules",)

    def __init__(
        self,
        agent: Agent[Any],
        *,
        context: Any = None,
        run_config: RunConfig | None = None,
        max_turns: int = 25,
        cwd: str | Path = ".",
        directory: str | Path | None = None,
    ) -> None:
        super().__init__(cwd=cwd, directory=directory)
        self.agent = agent
        self._options: Any = {
            "context": context, "run_config": run_config, "max_turns": max_turns,
        }  # fmt: skip

    async def run_turn(self, turn: TaskTurn) -> None:
        """Run the agent, and run it again with the answers as long as it asks for approvals."""
        kept: JsonObject = json.loads(self.saved(turn.session_id) or b"{}")
        rules: list[str] = kept.get("rules", [])
        agents = {one.name: one for one in _reachable(self.agent)}
        first = agents.get(kept.get("agent", ""), self.agent)
        run_input: Any = [*kept.get("items", []), _user_item(turn)]
        if "state" in kept and not turn.has_message:
            state = await RunState.from_json(self.agent, kept["state"])
            await _ask(turn, state, state.get_interruptions(), rules)
            run_input = state
        stream = AgentsStream(turn, first)
        watch(agents.values(), self._options["run_config"])
        while True:
            result = await self._run(stream, first, run_input)
            items = [*result.to_input_list(), *stream.marked()]
            kept = {"agent": result.last_agent.name, "items": items, "rules": rules}
            if not result.interruptions:
                break
            state = result.to_state()
            kept["state"] = state.to_json()
            self._save(turn, kept)
            await _ask(turn, state, result.interruptions, rules)
            run_input = state
        self._save(turn, kept)
        stream.show_output(result)

    async def _run(
        self, stream: AgentsStream, first: Agent[Any], run_input: Any
    ) -> RunResultStreaming:
        """Run the agent until it ends, asks, or its answer is cut off."""
        stream.end = watched_end()
        result = Runner.run_streamed(first, run_input, hooks=stream.requests, **self._options)
        try:
            async for event in result.stream_events():
                stream.receive(event)
        except asyncio.CancelledError:
            result.cancel()
            raise
        except ModelBehaviorError:
            # The SDK raises for an incomplete answer of a Responses API. People have already read
            # its text, so the turn ends with a warning instead.
            if stream.cut is None or not stream.part:
                raise
        return result

    async def begin_with(self, session_id: str, past: PastMessages) -> None:
        """Store the earlier messages as items of the Responses API."""
        kept = {"items": past.as_openai_responses()}
        self.save(session_id, json.dumps(kept).encode())

    async def is_interrupted(self, session_id: str) -> bool:
        """Return whether the agent waits for an approval."""
        return "state" in json.loads(self.saved(session_id) or b"{}")

    async def cut_off(self, turn: TaskTurn) -> None:
        """Store the message and the partial answer, without calls that have no result."""
        kept: JsonObject = json.loads(self.saved(turn.session_id) or b"{}")
        kept.pop("state", None)
        items = kept.setdefault("items", [])
        ended = {one.get("call_id") for one in items if "output" in one}
        items[:] = [
            one
            for one in items
            if one.get("type") != "function_call" or one.get("call_id") in ended
        ]
        if turn.has_message and not turn.is_saved:
            items.append(_user_item(turn))
        text = "".join(turn.said) or "(interrupted)"
        items.append({"role": "assistant", "content": text})
        self._save(turn, kept)

    def _save(self, turn: TaskTurn, kept: JsonObject) -> None:
        self.save(turn.session_id, json.dumps(kept).encode())
        turn.is_saved = True

    async def _runtime_version(self) -> str:
        return version("openai-agents")


async def _ask(
    turn: TaskTurn, state: RunState[Any, Any], items: Sequence[ToolApprovalItem], rules: list[str]
) -> None:
    """Ask for all approvals that a run waits for, and put the answers into its state.

    Args:
        turn: Turn that asks.
        state: State of the run.
        items: Approvals that the run waits for.
        rules: Names of the tools that need no approval in this session; an answer may add one.
    """
    undecided = [item for item in items if item.name not in rules]
    for item in items:
        if item not in undecided:
            state.approve(item)
    answers = await asyncio.gather(*(_ask_one(turn, item) for item in undecided))
    for item, answer in zip(undecided, answers, strict=True):
        if answer.decision == "allow":
            state.approve(item)
            if answer.rule_id and item.name:
                rules.append(item.name)
        else:
            state.reject(item, rejection_message=answer.message or "The user denied it.")


async def _ask_one(turn: TaskTurn, item: ToolApprovalItem) -> ari.PermissionResponse:
    name = item.name or "tool"
    rule = ari.PermissionRule("always", f"every call of {name}")
    return await turn.allowed(
        item.call_id or "", name, input_of(item), takes_updated_input=False, rules=[rule]
    )


def _reachable(agent: Agent[Any]) -> Iterator[Agent[Any]]:
    """Yield an agent and all agents that it can hand off to, each once."""
    seen: list[Agent[Any]] = []
    waiting: list[Any] = [agent]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Agent) and not any(one is other for other in seen):
            seen.append(one)
            waiting += [getattr(to, "_agent_ref", lambda to=to: to)() for to in one.handoffs]
    return iter(seen)


def _user_item(turn: TaskTurn) -> JsonObject:
    """Return the message of a turn.

    A message without parts is sent as a string, because not every model accepts parts.
    """
    if not turn.message.parts:
        return {"role": "user", "content": turn.message.content}
    content: list[JsonObject] = []
    for part in turn.content:
        place = part.uri or f"data:{part.mime_type};base64,{b64encode(part.data).decode()}"
        match part.type:
            case "text":
                content.append({"type": "input_text", "text": part.text})
            case "image":
                content.append({"type": "input_image", "image_url": place, "detail": "auto"})
            case _:
                file = {"type": "input_file", "filename": part.name or "file"}
                content.append(file | {"file_url" if part.uri else "file_data": place})
    return {"role": "user", "content": content}
