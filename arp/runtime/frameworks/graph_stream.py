"""`GraphStream`: applies the stream of a LangGraph run to a turn: text, thoughts, calls, usage."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any, Final

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)

from arp.runtime.contract import types as ari
from arp.runtime.contract.cut_off import CUT_OFF_WORDS, CutOffReason, cut_off_of, mark_of
from arp.runtime.contract.task_runtime import TaskTurn
from arp.runtime.frameworks.spoken_messages import SpokenMessages
from arp.values.display import component_of, display_of, text_of

OUTPUT: Final = "structured_response"
"""State field with the answer of `create_agent(response_format=…)`."""


class GraphStream:
    """Applies the stream of a graph's run to a turn.

    Args:
        turn: Turn that receives the output.
        counted: Ids of the messages with usage that `RequestReporter` has already reported.
    """

    def __init__(self, turn: TaskTurn, counted: Set[str | None] = frozenset()) -> None:
        self.turn = turn
        self._counted = counted
        self.seen: set[str | None] = set()
        """Ids of the messages that were emitted, or are older than the turn."""
        self._streamed: set[str | None] = set()
        """Ids of messages with text that was streamed, at least in part."""
        self.spoken = SpokenMessages()
        """Emits one message after the other. The chunks of nodes that run at the same time arrive
        mixed."""
        self.holds_output = False
        """Whether the graph has an output with a schema. Models write this output as JSON text."""
        self._held: dict[str | None, str] = {}
        """Texts that may be this output and are not emitted yet, by message id."""
        self._call_ids: dict[str, deque[str]] = {}
        """Emitted ids of the calls without a result, by original id, oldest first. An emitted id
        differs from the original one if that is empty or already in use."""
        self._marked: list[AIMessage] = []
        """Copies of the messages of this run that were cut off, each with a mark for the model."""

    def resume(self, messages: Sequence[BaseMessage]) -> None:
        """Continue an interrupted run: emit its calls that have no result yet."""
        self.seen.update(message.id for message in messages)
        begins = [place for place, one in enumerate(messages, 1) if isinstance(one, HumanMessage)]
        newest = messages[begins[-1] if begins else 0 :]
        ended = {one.tool_call_id for one in newest if isinstance(one, ToolMessage)}
        for message in newest:
            for call in message.tool_calls if isinstance(message, AIMessage) else ():
                if call["id"] not in ended:
                    self._start(call)

    def marked(self) -> Sequence[AIMessage]:
        """Return the messages that were cut off, each with a mark for the model."""
        return self._marked

    def end(self) -> None:
        """Handle the end of the graph: emit held texts that are not its output."""
        for message_id in list(self._held):
            self._emit_held(message_id)

    def receive(self, mode: str, data: Any) -> None:
        """Apply one item of the stream."""
        if mode == "messages":
            self._chunk(data[0])
        elif mode == "updates":
            for update in data.values() if isinstance(data, Mapping) else ():
                output = update.get(OUTPUT) if isinstance(update, Mapping) else None
                for message in messages_in(update):
                    if output is not None:
                        self._held.pop(message.id, None)
                    self._message(message)
                if output is not None:
                    self._show_output(output)
        elif isinstance(data, str):
            self.turn.say(data)
        else:
            self._custom(data)

    def _chunk(self, message: BaseMessage) -> None:
        if not isinstance(message, AIMessage) or message.id in self.seen:
            return
        is_whole = not isinstance(message, AIMessageChunk)
        if is_whole and message.id in self._streamed:  # its text was already emitted in chunks
            return
        self._streamed.add(message.id)
        if isinstance(message.content, str) and not message.additional_kwargs:
            if message.content:  # fast path: this runs for each token
                self._say(message, message.content)
        else:
            for block in message.content_blocks:
                if block["type"] == "text":
                    self._say(message, block["text"])
                elif block["type"] == "reasoning":
                    self._add(message, self.turn.think, block.get("reasoning", ""))
            if refusal := refusal_in(message):
                self._say(message, refusal)
        if is_whole or getattr(message, "chunk_position", None) == "last":
            self.spoken.end(message.id or "")

    def _say(self, message: BaseMessage, text: str) -> None:
        """Emit a text, unless it may be the output that the graph shows at its end."""
        # The output is shown as a component at the end; its JSON must not appear as text before.
        held = self._held.get(message.id, "")
        begins = self.holds_output and not self.spoken.is_open(message.id or "")
        if held or (begins and text.lstrip()[:1] in ("{", "[")):
            self._held[message.id] = held + text
        else:
            self._add(message, self.turn.say, text)

    def _emit_held(self, message_id: str | None) -> None:
        text = self._held.pop(message_id, "")
        if text:
            self.turn.say(text)

    def _show_output(self, output: Any) -> None:
        """Show the output of the graph as a component if possible, otherwise as text."""
        made = display_of(output)
        if made is not None:
            self.turn.show(made)
        elif output not in (None, ""):
            self.turn.say(text_of(output))

    def _add(self, message: BaseMessage, tell: Callable[[str], None], text: str) -> None:
        self.spoken.add(message.id or "", partial(tell, text), is_closed_later=True)

    def _message(self, message: BaseMessage) -> None:
        """Emit the tool calls, results and usage of a complete message."""
        if message.id in self.seen:
            return
        self.seen.add(message.id)
        self.spoken.end(message.id or "")
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                self._start(call)
            self._mark_if_cut_off(message)
            used = message.usage_metadata
            if used is not None and message.id not in self._counted:
                self.turn.use(
                    used["input_tokens"],
                    used["output_tokens"],
                    used.get("input_token_details", {}).get("cache_read"),
                    used.get("output_token_details", {}).get("reasoning"),
                    str(message.response_metadata.get("model_name") or ""),
                )
        elif isinstance(message, ToolMessage):
            failed = message.status == "error"
            made = component_of(message.artifact)
            names = self._call_ids.get(message.tool_call_id)
            call_id = names.popleft() if names else message.tool_call_id or message.name or "tool"
            self.turn.end_call(call_id, str(message.text), failed=failed, shown=made)

    def _start(self, call: Any) -> None:
        """Emit the start of a call; a call with an empty or repeated id gets an id of its own."""
        given = call["id"] or ""
        names = self._call_ids.setdefault(given, deque())
        call_id = given if given and given not in self.turn.open_calls else ""
        names.append(call_id or f"{given or call['name']}.{self.turn.session.new_id('call')}")
        self.turn.start_call(names[-1], call["name"] or "tool", call["args"])

    def _mark_if_cut_off(self, message: AIMessage) -> None:
        """Mark a message as cut off, if its model reports that."""
        reason = _cut_off(message)
        if reason is None:
            return
        self.turn.mark_cut_off(reason)
        mark = {"type": "text", "text": mark_of(CUT_OFF_WORDS[reason])}
        parts = message.content
        content = [{"type": "text", "text": parts}] if isinstance(parts, str) and parts else parts
        marked: list[Any] = [*(content or ()), mark]
        self._marked.append(message.model_copy(update={"content": marked}))

    def _custom(self, data: Any) -> None:
        """Show a component, or the progress of the tool that wrote the data.

        The data names its call only if the tool adds `tool_call_id`. Otherwise the call is known
        only if exactly one call is open; if it is unknown, the data becomes a warning.
        """
        made = component_of(data)
        named = data.get("tool_call_id") if isinstance(data, Mapping) else None
        calls = [named] if named in self.turn.open_calls else list(self.turn.open_calls)
        if made is not None:
            self.turn.show(made)
        elif len(calls) == 1:
            self.turn.call_progress(str(calls[0]), _line(data))
        else:
            self.turn.tell(ari.Lifecycle.WARNING, f"the graph wrote {_line(data)}")


def _cut_off(message: AIMessage) -> CutOffReason | None:
    """Return why a model's message is incomplete; `None` if nothing shows that it is."""
    if message.tool_calls or message.invalid_tool_calls:
        return None
    about = message.response_metadata
    incomplete = about.get("incomplete_details") or {}
    for name in ("finish_reason", "stop_reason", "done_reason"):
        if (found := cut_off_of(about.get(name))) is not None:
            return found
    if isinstance(incomplete, Mapping) and incomplete:
        return cut_off_of(incomplete.get("reason")) or CutOffReason.UNFINISHED
    if about and not str(message.text).strip() and not refusal_in(message):
        return CutOffReason.EMPTY
    is_ended = about.keys() & {"finish_reason", "status"}
    return (
        CutOffReason.UNFINISHED
        if about.get("model_provider") == "openai" and not is_ended
        else None
    )


def refusal_in(message: BaseMessage) -> str:
    """Return a model's refusal, which LangChain does not treat as text; empty if there is none."""
    if refusal := message.additional_kwargs.get("refusal"):
        return str(refusal)
    parts = message.content if isinstance(message.content, list) else ()
    refusals = (one.get("refusal") for one in parts if isinstance(one, dict))
    return "".join(str(one) for one in refusals if one)


def messages_in(state: Any) -> Iterator[BaseMessage]:
    """Yield the messages in an update of a graph's state, or in the whole state."""
    values = state.values() if isinstance(state, Mapping) else (state,)
    for value in values:
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, BaseMessage):
                yield one


def _line(data: Any) -> str:
    """Return data of a graph as text: `message`, `status`, `text` or `progress`, or all of it."""
    if isinstance(data, Mapping):
        for name in ("message", "status", "text", "progress"):
            if isinstance(data.get(name), str):
                return str(data[name])
    return text_of(data)
