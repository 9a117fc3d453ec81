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
import re
from base64 import b64encode
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import jsonpatch

from arp.hub.past_messages import PastMessages
from arp.protocol.json_value import JsonObject
from arp.runtime import types as ari
from arp.runtime.ag_ui_source import AgUiSource, RunAgent
from arp.runtime.errors import RuntimeInternal
from arp.runtime.task_runtime import TaskRuntime, TaskTurn, error_of_model
from arp.values.shown import arguments_of, component_of, text_of

PROTOCOL_VERSION = "1.0"
_STATUS = re.compile(r"\b(?:status|status_code|error code): (\d{3})\b", re.IGNORECASE)
"""In messages of errors: what the model's server answered; AG-UI has no place for it."""
THINKS = ("REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CHUNK", "THINKING_TEXT_MESSAGE_CONTENT")


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
            finally:  # also what was said until a person cancelled
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
        """Forget the interrupts, and the calls without a result."""
        kept = self._kept(turn.session_id)
        kept["interrupts"] = []
        ended = {one.get("toolCallId") for one in kept["messages"]}
        for message in kept["messages"]:
            calls = [one for one in message.get("toolCalls", ()) if one["id"] in ended]
            message.pop("toolCalls", None)
            if calls:
                message["toolCalls"] = calls
        self._save(turn, kept)

    def _kept(self, session_id: str) -> JsonObject:
        empty: JsonObject = {"messages": [], "state": {}, "interrupts": []}
        saved = self.saved(session_id)
        return empty | json.loads(saved) if saved else empty

    def _save(self, turn: TaskTurn, kept: JsonObject) -> None:
        self.save(turn.session_id, json.dumps(kept).encode())


class AgUiStream:
    """The events of a run, told as they come; messages and state are kept up with them."""

    def __init__(self, turn: TaskTurn, kept: JsonObject) -> None:
        self.turn = turn
        self.kept = kept
        kept["interrupts"] = []
        self._message: JsonObject | None = None
        """The one of the agent that grows."""
        self._call: JsonObject | None = None
        """The call whose arguments come in."""

    def take(self, event: JsonObject) -> None:
        """Tell one event."""
        kind = event["type"]
        if kind.startswith("TEXT_MESSAGE"):
            self._text(event)
        elif kind in THINKS:
            self.turn.think(event.get("delta") or "")
        elif kind == "TOOL_CALL_RESULT":
            self._result(event)
        elif kind.startswith("TOOL_CALL"):
            self._tool_call(kind, event)
        elif kind == "STATE_SNAPSHOT":
            self.kept["state"] = event["snapshot"]
        elif kind == "STATE_DELTA":
            self.kept["state"] = jsonpatch.apply_patch(self.kept["state"], event["delta"])
        elif kind == "MESSAGES_SNAPSHOT":
            self.kept["messages"] = event["messages"]
        elif kind == "CUSTOM" and (made := component_of(event.get("value"))) is not None:
            self.turn.show(made)
        elif kind == "RUN_FINISHED":
            self._finished(event)
        elif kind == "RUN_ERROR":
            self._failed(event)

    def _text(self, event: JsonObject) -> None:
        delta = event.get("delta")
        if delta:
            self._grown(event.get("messageId"))["content"] += delta
            self.turn.say(delta)

    def _grown(self, message_id: str | None) -> JsonObject:
        """Return the message of the agent that grows; a new one under another id."""
        if self._message is None or message_id not in (None, self._message["id"]):
            new_id = message_id or self.turn.session.new_id("message")
            self._message = {"id": new_id, "role": "assistant", "content": ""}
            self.kept["messages"].append(self._message)
        return self._message

    def _tool_call(self, kind: str, event: JsonObject) -> None:
        name = event.get("toolCallName")
        if name and (self._call is None or self._call["id"] != event["toolCallId"]):
            self._end_arguments()
            function = {"name": name, "arguments": ""}
            self._call = {"id": event["toolCallId"], "type": "function", "function": function}
            calls = self._grown(event.get("parentMessageId")).setdefault("toolCalls", [])
            calls.append(self._call)
        if self._call is not None:
            self._call["function"]["arguments"] += event.get("delta") or ""
        if kind == "TOOL_CALL_END":
            self._end_arguments()

    def _end_arguments(self) -> None:
        """Tell the call whose arguments are complete."""
        if self._call is not None:
            function, call_id = self._call["function"], self._call["id"]
            self.turn.start_call(call_id, function["name"], arguments_of(function["arguments"]))
            self._call = None

    def _result(self, event: JsonObject) -> None:
        self._end_arguments()
        call_id, content = event["toolCallId"], text_of(event["content"])
        message = {"id": event["messageId"], "role": "tool", "toolCallId": call_id}
        self.kept["messages"].append({**message, "content": content})
        self._message = None
        self.turn.end_call(call_id, content, shown=component_of(arguments_of(content)))

    def _failed(self, event: JsonObject) -> NoReturn:
        self._use(event)
        message = event.get("message") or "the agent failed"
        answered = _STATUS.search(message)
        if answered is not None:
            raise error_of_model(int(answered[1]), message)
        raise RuntimeInternal(message)

    def _finished(self, event: JsonObject) -> None:
        self._end_arguments()
        self._use(event)
        outcome = event.get("outcome") or {}
        if outcome.get("type") == "interrupt":
            self.kept["interrupts"] = outcome["interrupts"]

    def _use(self, event: JsonObject) -> None:
        for used in event.get("usage") or ():
            self.turn.use(
                used.get("inputTokens") or 0,
                used.get("outputTokens") or 0,
                used.get("cachedInputTokens") or 0,
                used.get("reasoningTokens") or 0,
                used.get("model") or "",
            )


def _start_open_calls(turn: TaskTurn, messages: Sequence[JsonObject]) -> None:
    """Tell the calls again that wait for their result."""
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
    name, tool_input = turn.open_calls.get(call_id, ("tool", {}))
    answer = await turn.allowed(call_id, name, tool_input, takes_updated_input=is_editable)
    payload: JsonObject = {"approved": answer.decision == "allow"}
    if answer.updated_input is not None:
        payload["editedArgs"] = answer.updated_input
    if answer.message:
        payload["reason"] = answer.message
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}


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
