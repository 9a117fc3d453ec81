"""What a run of a LangGraph graph streams, as text, thoughts, tool calls and costs of a turn."""

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
from arp.runtime.contract.cut_off import CUT_OFF_WORDS, CutOff, cut_off_of, mark_of
from arp.runtime.contract.task_runtime import TaskTurn
from arp.runtime.frameworks.spoken_messages import SpokenMessages
from arp.values.shown import component_of, shown, text_of

OUTPUT: Final = "structured_response"
"""Where `create_agent(response_format=…)` puts what the agent answers with."""


class GraphStream:
    """What a run of the graph streams, told as it comes.

    Args:
        turn: Where it is told.
        counted: Ids of the messages whose tokens were told when their request ended.
    """

    def __init__(self, turn: TaskTurn, counted: Set[str | None] = frozenset()) -> None:
        self.turn = turn
        self._counted = counted
        self.seen: set[str | None] = set()
        """Ids of the messages that were told, or are older than the turn."""
        self._streamed: set[str | None] = set()
        """Ids of messages whose text was streamed, at least in part."""
        self.spoken = SpokenMessages()
        """What is told of them: nodes may run at the same time, and their models stream then."""
        self.holds_output = False
        """Whether the graph has an output with a schema, which models write as a text of JSON."""
        self._held: dict[str | None, str] = {}
        """Texts that may be such an output, by the ids of their messages."""
        self._call_ids: dict[str, deque[str]] = {}
        """What calls are named here whose ids say too little, by those ids, in order."""
        self._marked: list[AIMessage] = []
        """The messages of this run that were cut off, with a mark."""

    def take_up(self, messages: Sequence[BaseMessage]) -> None:
        """Take up a run again that asked something: its calls without a result are open."""
        self.seen.update(message.id for message in messages)
        begins = [place for place, one in enumerate(messages, 1) if isinstance(one, HumanMessage)]
        newest = messages[begins[-1] if begins else 0 :]
        ended = {one.tool_call_id for one in newest if isinstance(one, ToolMessage)}
        for message in newest:
            for call in message.tool_calls if isinstance(message, AIMessage) else ():
                if call["id"] not in ended:
                    self._start(call)

    def marked(self) -> Sequence[AIMessage]:
        """Return the messages that were cut off, with a mark for the model that reads them."""
        return self._marked

    def end(self) -> None:
        """Take that the graph has stopped: texts that were held and are no output are told."""
        for message_id in list(self._held):
            self._tell_held(message_id)

    def take(self, mode: str, data: Any) -> None:
        """Tell one item of the stream."""
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
        if is_whole and message.id in self._streamed:
            return
        self._streamed.add(message.id)
        if isinstance(message.content, str) and not message.additional_kwargs:
            if message.content:  # each token is one: be quick
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
        """Say a text, unless it may be the output that the graph shows at its end."""
        held = self._held.get(message.id, "")
        begins = self.holds_output and not self.spoken.is_open(message.id or "")
        if held or (begins and text.lstrip()[:1] in ("{", "[")):
            self._held[message.id] = held + text
        else:
            self._add(message, self.turn.say, text)

    def _tell_held(self, message_id: str | None) -> None:
        text = self._held.pop(message_id, "")
        if text:
            self.turn.say(text)

    def _show_output(self, output: Any) -> None:
        """Show what the graph was to answer with, as its schema says."""
        made = shown(output)
        if made is not None:
            self.turn.show(made)
        elif output not in (None, ""):
            self.turn.say(text_of(output))

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
                self._start(call)
            self._take_end(message)
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
        """Begin a call; ids that are empty or come twice are told apart by the order of calls."""
        given = call["id"] or ""
        names = self._call_ids.setdefault(given, deque())
        call_id = given if given and given not in self.turn.open_calls else ""
        names.append(call_id or f"{given or call['name']}.{self.turn.session.new_id('call')}")
        self.turn.start_call(names[-1], call["name"] or "tool", call["args"])

    def _take_end(self, message: AIMessage) -> None:
        """Tell that a message was cut off, if its model says so."""
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
        """Show a component, or how far the tool is that wrote it.

        What a tool writes does not say which call it is of, unless it names it. If several run,
        nobody can know.
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


def _cut_off(message: AIMessage) -> CutOff | None:
    """Return why a model's message is not complete; `None`: it is, or nothing says it."""
    if message.tool_calls or message.invalid_tool_calls:
        return None
    about = message.response_metadata
    incomplete = about.get("incomplete_details") or {}
    for name in ("finish_reason", "stop_reason", "done_reason"):
        if (found := cut_off_of(about.get(name))) is not None:
            return found
    if isinstance(incomplete, Mapping) and incomplete:
        return cut_off_of(incomplete.get("reason")) or CutOff.UNFINISHED
    if about and not str(message.text).strip() and not refusal_in(message):
        return CutOff.EMPTY
    is_ended = about.keys() & {"finish_reason", "status"}
    return CutOff.UNFINISHED if about.get("model_provider") == "openai" and not is_ended else None


def refusal_in(message: BaseMessage) -> str:
    """Return the words with which a model refuses, which are no text for LangChain."""
    if refusal := message.additional_kwargs.get("refusal"):
        return str(refusal)
    parts = message.content if isinstance(message.content, list) else ()
    refusals = (one.get("refusal") for one in parts if isinstance(one, dict))
    return "".join(str(one) for one in refusals if one)


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
