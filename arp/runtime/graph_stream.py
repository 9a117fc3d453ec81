"""What a run of a LangGraph graph streams, as text, thoughts, tool calls and costs of a turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage

from arp.runtime import types as ari
from arp.runtime.spoken_messages import SpokenMessages
from arp.runtime.task_runtime import TaskTurn
from arp.values.shown import component_of, text_of


class GraphStream:
    """What a run of the graph streams, told as it comes."""

    def __init__(self, turn: TaskTurn) -> None:
        self.turn = turn
        self.seen: set[str | None] = set()
        """Ids of the messages that were told, or are older than the turn."""
        self._streamed: set[str | None] = set()
        """Ids of messages whose text was streamed, at least in part."""
        self.spoken = SpokenMessages()
        """What is told of them: nodes may run at the same time, and their models stream then."""

    def take(self, mode: str, data: Any) -> None:
        """Tell one item of the stream."""
        if mode == "messages":
            self._chunk(data[0])
        elif mode == "updates":
            for update in data.values() if isinstance(data, Mapping) else ():
                for message in messages_in(update):
                    self._message(message)
        elif isinstance(data, str):
            self.turn.say(data)
        else:
            self._custom(data)

    def _chunk(self, message: BaseMessage) -> None:
        if not isinstance(message, AIMessage) or message.id in self.seen:
            return
        is_whole = not isinstance(message, AIMessageChunk)
        if is_whole and message.id in self._streamed:
            return
        self._streamed.add(message.id)
        if isinstance(message.content, str) and not message.additional_kwargs:
            if message.content:  # each token is one: be quick
                self._add(message, self.turn.say, message.content)
        else:
            for block in message.content_blocks:
                if block["type"] == "text":
                    self._add(message, self.turn.say, block["text"])
                elif block["type"] == "reasoning":
                    self._add(message, self.turn.think, block.get("reasoning", ""))
        if is_whole or getattr(message, "chunk_position", None) == "last":
            self.spoken.end(message.id or "")

    def _add(self, message: BaseMessage, tell: Callable[[str], None], text: str) -> None:
        self.spoken.add(message.id or "", partial(tell, text), is_closed_later=True)

    def _message(self, message: BaseMessage) -> None:
        """Tell the tool calls, results and costs of a message that is complete."""
        if message.id in self.seen:
            return
        self.seen.add(message.id)
        self.spoken.end(message.id or "")
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                self.turn.start_call(call["id"] or call["name"], call["name"], call["args"])
            used = message.usage_metadata
            if used is not None:
                self.turn.use(
                    used["input_tokens"],
                    used["output_tokens"],
                    used.get("input_token_details", {}).get("cache_read"),
                    used.get("output_token_details", {}).get("reasoning"),
                    str(message.response_metadata.get("model_name") or ""),
                )
        elif isinstance(message, ToolMessage):
            failed = message.status == "error"
            shown = component_of(message.artifact)
            self.turn.end_call(message.tool_call_id, str(message.text), failed=failed, shown=shown)

    def _custom(self, data: Any) -> None:
        """Show a component, or how far the tool is that wrote it.

        What a tool writes does not say which call it is of, unless it names it. If several run,
        nobody can know.
        """
        shown = component_of(data)
        named = data.get("tool_call_id") if isinstance(data, Mapping) else None
        calls = [named] if named in self.turn.open_calls else list(self.turn.open_calls)
        if shown is not None:
            self.turn.show(shown)
        elif len(calls) == 1:
            self.turn.call_progress(str(calls[0]), _line(data))
        else:
            self.turn.tell(ari.Lifecycle.WARNING, f"the graph wrote {_line(data)}")


def messages_in(state: Any) -> Iterator[BaseMessage]:
    """Return the messages in an update of a graph's state, or in the whole of it."""
    values = state.values() if isinstance(state, Mapping) else (state,)
    for value in values:
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, BaseMessage):
                yield one


def _line(data: Any) -> str:
    """Return what a graph wrote, as one line: its `message`, `status` or `text`, or all of it."""
    if isinstance(data, Mapping):
        for name in ("message", "status", "text", "progress"):
            if isinstance(data.get(name), str):
                return str(data[name])
    return text_of(data)
