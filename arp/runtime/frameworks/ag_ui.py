"""`AgUiRuntime`: an agent that speaks AG-UI, in this process or at an address, as an agent runtime.

```python
app.runtime(AgUiRuntime("http://localhost:8000/agent"))
```

Events are read as JSON objects, so that agents of every release of AG-UI can be read. An agent gets
all messages with each run: they are kept here, and so is its state. What an interrupt asks is asked
on every screen, again after a restart, and its answer is the `resume` of the next run.
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
from arp.values.shown import arguments_of

PROTOCOL_VERSION = "1.0"


class AgUiRuntime(TaskRuntime):
    """A runtime whose agent speaks AG-UI.

    Args:
        agent: Its address, a function that gets a `RunAgentInput` and returns its events, or an
            object whose `run` is that.
        headers: Of requests to an address, such as an `Authorization`.
        cwd: As for every runtime.
        directory: Where sessions are kept, so that other processes find them; `None`: in memory.
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
        """Run the agent, and again with the answers for as long as it is interrupted."""
        kept = self._kept(turn.session_id)
        resume: list[JsonObject] = []
        if turn.has_message:
            kept["interrupts"] = []
            kept["messages"].append(_user_message(turn))
        else:  # taken up again: ask first
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
                        stream.take(event)
                stream.end()
            finally:  # also what was said until a person cancelled
                stream.flush()
                self._save(turn, kept)
            if not kept["interrupts"]:
                return
            resume = await _ask(turn, kept["interrupts"])

    async def begin_with(self, session_id: str, past: PastMessages) -> None:
        """Begin with the messages as those of AG-UI."""
        messages = [
            {"id": f"past-{number}", **_renamed(message)}
            for number, message in enumerate(past.as_openai())
        ]
        self.save(session_id, json.dumps({"messages": messages}).encode())

    async def is_interrupted(self, session_id: str) -> bool:
        """Return whether an interrupt waits for an answer."""
        return bool(self._kept(session_id)["interrupts"])

    async def cut_off(self, turn: TaskTurn) -> None:
        """Forget the interrupts and the calls without a result; mark an answer as cut off."""
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
    """Tell the calls of the turn again that wait for their result."""
    messages = of_newest_turn(messages)
    ended = {one.get("toolCallId") for one in messages}
    for call in [call for one in messages for call in one.get("toolCalls") or ()]:
        if call["id"] not in ended:
            function = call["function"]
            turn.start_call(call["id"], function["name"], arguments_of(function["arguments"]))


async def _ask(turn: TaskTurn, interrupts: Sequence[JsonObject]) -> list[JsonObject]:
    """Ask all that an agent waits for, and return the entries of `resume`."""
    return await asyncio.gather(*(_asked(turn, one) for one in interrupts))


async def _asked(turn: TaskTurn, interrupt: JsonObject) -> JsonObject:
    properties = (interrupt.get("responseSchema") or {}).get("properties", {})
    if interrupt.get("toolCallId") and "approved" in properties:
        return await _approved(turn, interrupt, "editedArgs" in properties)
    question = interrupt.get("message") or interrupt.get("reason") or "The agent asks"
    about = {**(interrupt.get("metadata") or {}), "question": question}
    schema = interrupt.get("responseSchema")
    answer = await turn.answered(interrupt["id"], about, schema, can_decline=True)
    status = "cancelled" if answer is None else "resolved"
    return {"interruptId": interrupt["id"], "status": status, "payload": answer}


async def _approved(turn: TaskTurn, interrupt: JsonObject, is_editable: bool) -> JsonObject:
    """Ask for a call that waits for its approval."""
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
    """Return what is known of a call that no event has told."""
    about = interrupt.get("metadata") or {}
    return str(interrupt.get("reason") or "tool"), {**about, "message": interrupt.get("message")}


def _renamed(message: JsonObject) -> JsonObject:
    """Return a message of OpenAI's Chat Completions as AG-UI names it."""
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
