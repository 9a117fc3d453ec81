"""`AgUiRuntime`: an agent that speaks AG-UI, in this process or at an address, as an agent runtime.

```python
app.runtime(AgUiRuntime("http://localhost:8000/agent"))
```

Events are read as plain JSON objects, so that agents of every release of AG-UI work. An agent
receives all messages and its state with each run, so both are stored here. An interrupt becomes a
question on every screen, also after a restart, and its answer is the `resume` of the next run.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, ClassVar

from arp.protocol.json_value import JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.task_runtime import TaskRuntime, TaskTurn
from arp.runtime.frameworks.ag_ui_source import AgUiSource, RunAgent
from arp.runtime.frameworks.ag_ui_stream import AgUiStream, of_newest_turn
from arp.turn.past_messages import PastMessages
from arp.values.display import arguments_of

PROTOCOL_VERSION = "1.0"


class AgUiRuntime(TaskRuntime):
    """A runtime that runs an AG-UI agent.

    Args:
        agent: Address of the agent, a function that receives a `RunAgentInput` and returns events,
            or an object with a method `run` that does this.
        headers: Headers of requests to an address, such as `Authorization`.
        cwd: Directory of the runtime, as in `DrivenRuntime`.
        directory: Directory that stores sessions so that other processes find them; `None` means in
            memory.
    """

    name = "ag-ui"
    part_types: ClassVar[frozenset[str]] = frozenset({"text", "image", "audio", "file"})
    more_capabilities: ClassVar[tuple[str, ...]] = ("updated_input",)

    def __init__(
        self,
        agent: str | RunAgent | Any,
        *,
        headers: dict[str, str] | None = None,
        cwd: str | Path = ".",
        directory: str | Path | None = None,
    ) -> None:
        super().__init__(cwd=cwd, directory=directory)
        self._source = AgUiSource(agent, headers)

    async def run_turn(self, turn: TaskTurn) -> None:
        """Run the agent, and run it again with the answers as long as it is interrupted."""
        kept = self._kept(turn.session_id)
        resume: list[JsonObject] = []
        if turn.has_message:
            kept["interrupts"] = []
            kept["messages"].append(_user_message(turn))
        else:  # the turn continues an interrupted one: ask first
            _start_open_calls(turn, kept["messages"])
            resume = await _ask(turn, kept["interrupts"])
        self._save(turn, kept)
        while True:
            stream = AgUiStream(turn, kept)
            run_input: JsonObject = {
                "threadId": turn.session_id,
                "runId": turn.session.new_id("run"),
                "protocolVersion": PROTOCOL_VERSION,
                "state": kept["state"],
                "messages": kept["messages"],
                "tools": [],
                "context": [],
                "forwardedProps": {},
                **({"resume": resume} if resume else {}),
            }
            try:
                async with aclosing(self._source.events(run_input)) as events:
                    async for event in events:
                        stream.receive(event)
                stream.end()
            finally:  # a cancelled run must not lose its text
                stream.flush()
                self._save(turn, kept)
            if not kept["interrupts"]:
                return
            resume = await _ask(turn, kept["interrupts"])

    async def begin_with(self, session_id: str, past: PastMessages) -> None:
        """Store the earlier messages in the form of AG-UI."""
        messages = [
            {"id": f"past-{number}", **_as_ag_ui(message)}
            for number, message in enumerate(past.as_openai())
        ]
        self.save(session_id, json.dumps({"messages": messages}).encode())

    async def is_interrupted(self, session_id: str) -> bool:
        """Return whether an interrupt waits for an answer."""
        return bool(self._kept(session_id)["interrupts"])

    async def cut_off(self, turn: TaskTurn) -> None:
        """Remove the interrupts and the calls without a result; mark a partial answer."""
        kept = self._kept(turn.session_id)
        kept["interrupts"] = []
        ended = {one.get("toolCallId") for one in kept["messages"]}
        for message in kept["messages"]:
            calls = [one for one in message.get("toolCalls", ()) if one["id"] in ended]
            message.pop("toolCalls", None)
            if calls:
                message["toolCalls"] = calls
        last = kept["messages"][-1] if kept["messages"] else {}
        if turn.mark and last.get("role") == "assistant" and isinstance(last.get("content"), str):
            last["content"] = f"{last['content']}\n\n{turn.mark}".lstrip()
        self._save(turn, kept)

    def _kept(self, session_id: str) -> JsonObject:
        empty: JsonObject = {"messages": [], "state": {}, "interrupts": []}
        saved = self.saved(session_id)
        return empty | json.loads(saved) if saved else empty

    def _save(self, turn: TaskTurn, kept: JsonObject) -> None:
        self.save(turn.session_id, json.dumps(kept).encode())


def _start_open_calls(turn: TaskTurn, messages: list[JsonObject]) -> None:
    """Emit the calls without a result, in a turn that continues an interrupted one."""
    messages = of_newest_turn(messages)
    ended = {one.get("toolCallId") for one in messages}
    for call in [call for one in messages for call in one.get("toolCalls") or ()]:
        if call["id"] not in ended:
            function = call["function"]
            turn.start_call(call["id"], function["name"], arguments_of(function["arguments"]))


async def _ask(turn: TaskTurn, interrupts: Sequence[JsonObject]) -> list[JsonObject]:
    """Ask about all open interrupts, and return the entries of `resume`."""
    return await asyncio.gather(*(_ask_one(turn, one) for one in interrupts))


async def _ask_one(turn: TaskTurn, interrupt: JsonObject) -> JsonObject:
    properties = (interrupt.get("responseSchema") or {}).get("properties", {})
    if interrupt.get("toolCallId") and "approved" in properties:
        return await _ask_permission(turn, interrupt, "editedArgs" in properties)
    question = interrupt.get("message") or interrupt.get("reason") or "The agent asks"
    about = {**(interrupt.get("metadata") or {}), "question": question}
    schema = interrupt.get("responseSchema")
    answer = await turn.answered(interrupt["id"], about, schema, can_decline=True)
    status = "cancelled" if answer is None else "resolved"
    return {"interruptId": interrupt["id"], "status": status, "payload": answer}


async def _ask_permission(turn: TaskTurn, interrupt: JsonObject, is_editable: bool) -> JsonObject:
    """Ask for permission for a call."""
    call_id = interrupt["toolCallId"]
    name, tool_input = turn.open_calls.get(call_id) or _described(interrupt)
    answer = await turn.allowed(call_id, name, tool_input, takes_updated_input=is_editable)
    payload: JsonObject = {"approved": answer.decision == "allow"}
    if answer.updated_input is not None:
        payload["editedArgs"] = answer.updated_input
    if answer.message:
        payload["reason"] = answer.message
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}


def _described(interrupt: JsonObject) -> tuple[str, JsonObject]:
    """Return a name and an input for a call that no event has described."""
    about = interrupt.get("metadata") or {}
    return str(interrupt.get("reason") or "tool"), {**about, "message": interrupt.get("message")}


def _as_ag_ui(message: JsonObject) -> JsonObject:
    """Return a message of OpenAI's Chat Completions with the field names of AG-UI."""
    names = {"tool_calls": "toolCalls", "tool_call_id": "toolCallId"}
    return {names.get(name, name): value for name, value in message.items() if value is not None}


def _user_message(turn: TaskTurn) -> JsonObject:
    parts = [_input_part(part) for part in turn.content]
    content = parts if turn.message.parts else turn.message.content
    return {"id": turn.session.new_id("message"), "role": "user", "content": content}


def _input_part(part: ari.ContentPart) -> JsonObject:
    if part.type == "text":
        return {"type": "text", "text": part.text}
    value = part.uri or b64encode(part.data).decode()
    source = {"type": "url" if part.uri else "data", "value": value, "mimeType": part.mime_type}
    return {"type": "document" if part.type == "file" else part.type, "source": source}
