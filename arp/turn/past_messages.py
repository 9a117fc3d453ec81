"""What an agent remembers: the conversation of a branch, and its forms for models and frameworks.

Theory of operation. `past_of` reads what the screens show of earlier turns, in the order in which
it happened. A message of the user begins a turn, or answers a question in the middle of one. A
message of the agent holds what it said and showed, and then the tools that it called: what it says
when their results are there is the next message, as model providers have it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from msgspec import Struct, convert

from arp.protocol.components import AUTHOR, Component
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import FileRef, InputEcho
from arp.protocol.screen import Screen, ToolRun, TurnScreen
from arp.session.inputs import SESSION_START
from arp.surface.degrade import as_one_text

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from pydantic_ai.messages import ModelMessage

MAX_SHOWN_ROWS = 50
"""Rows of a table that a model reads."""
BROKEN = "[An error ended this answer here.]"
STOPPED = "[This answer was stopped here.]"
"""What a model reads behind an answer that is not complete; screens show it by the turn's status.

Without it, the model takes half an answer for all that it wanted to say."""
_MARKS = {"failed": BROKEN, "cancelled": STOPPED}


class CalledTool(Struct, frozen=True):
    """A tool that the agent called."""

    id: str
    name: str
    args: JsonObject
    result: str = ""
    """What it returned, or why it failed; the beginning of a long result."""
    ok: bool = True


class PastMessage(Struct, frozen=True):
    """A message of the user or the agent, in the past."""

    role: Literal["user", "assistant"]
    turn_id: str
    text: str = ""
    """What was said, with what was shown as text."""
    files: tuple[FileRef, ...] = ()
    """Of a user."""
    calls: tuple[CalledTool, ...] = ()
    """Of the agent, after its text."""
    shown: tuple[Component, ...] = ()
    """Components of the agent; a question has its answer."""
    answers: str | None = None
    """Of a user: the id of the component that it answers."""
    author: str = ""
    """Who said it, where `turn.say` was given one; empty: the agent itself, or the user."""


class PastMessages(Sequence[PastMessage]):
    """Messages, oldest first, and their forms for models and frameworks.

    Screens show secrets as marks, and so do these messages.
    """

    def __init__(self, messages: Iterable[PastMessage]) -> None:
        self._messages = tuple(messages)

    @overload
    def __getitem__(self, index: int) -> PastMessage: ...
    @overload
    def __getitem__(self, index: slice) -> PastMessages: ...
    def __getitem__(self, index: int | slice) -> PastMessage | PastMessages:
        found = self._messages[index]
        return found if isinstance(found, PastMessage) else PastMessages(found)

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"PastMessages({list(self._messages)!r})"

    def as_openai(self) -> list[JsonObject]:
        """Return them as `messages` of OpenAI's Chat Completions."""
        out: list[JsonObject] = []
        for message in self._messages:
            text = model_text(message)
            if message.role == "user":
                out.append({"role": "user", "content": text})
                continue
            entry: JsonObject = {"role": "assistant", "content": text or None}
            if message.calls:
                entry["tool_calls"] = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": json.dumps(call.args)},
                    }
                    for call in message.calls
                ]
            out.append(entry)
            out += [
                {"role": "tool", "tool_call_id": call.id, "content": call.result}
                for call in message.calls
            ]
        return out

    def as_openai_responses(self) -> list[JsonObject]:
        """Return them as `input` of OpenAI's Responses, and of the OpenAI Agents SDK."""
        out: list[JsonObject] = []
        for message in self._messages:
            text = model_text(message)
            if text:
                out.append({"role": message.role, "content": text})
            for call in message.calls:
                named = {"call_id": call.id, "name": call.name, "arguments": json.dumps(call.args)}
                out.append({"type": "function_call", **named})
            out += [
                {"type": "function_call_output", "call_id": call.id, "output": call.result}
                for call in message.calls
            ]
        return out

    def as_anthropic(self) -> list[JsonObject]:
        """Return them as `messages` of Anthropic's Messages: roles take turns."""
        out: list[JsonObject] = []
        for message in self._messages:
            text = model_text(message)
            blocks: list[JsonObject] = [{"type": "text", "text": text}] if text else []
            blocks += [
                {"type": "tool_use", "id": call.id, "name": call.name, "input": call.args}
                for call in message.calls
            ]
            _append(out, message.role, blocks)
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": call.id,
                    "content": call.result,
                    "is_error": not call.ok,
                }
                for call in message.calls
            ]
            _append(out, "user", results)
        return out

    def as_langchain(self) -> list[BaseMessage]:
        """Return them as messages of LangChain and LangGraph."""
        from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

        out: list[BaseMessage] = []
        for message in self._messages:
            if message.role == "user":
                out.append(HumanMessage(model_text(message)))
                continue
            calls: list[Any] = [
                {"id": call.id, "name": call.name, "args": call.args} for call in message.calls
            ]
            out.append(AIMessage(model_text(message), tool_calls=calls))
            for call in message.calls:
                status: Literal["success", "error"] = "success" if call.ok else "error"
                out.append(
                    ToolMessage(call.result, tool_call_id=call.id, name=call.name, status=status)
                )
        return out

    def as_pydantic_ai(self) -> list[ModelMessage]:
        """Return them as `message_history` of Pydantic AI."""
        from pydantic_ai import messages as of

        out: list[ModelMessage] = []
        for message in self._messages:
            text = model_text(message)
            if message.role == "user":
                out.append(of.ModelRequest([of.UserPromptPart(text)]))
                continue
            parts: list[Any] = [of.TextPart(text)] if text else []
            parts += [of.ToolCallPart(call.name, call.args, call.id) for call in message.calls]
            out.append(of.ModelResponse(parts))
            if message.calls:
                results = [
                    of.ToolReturnPart(call.name, call.result, call.id) for call in message.calls
                ]
                out.append(of.ModelRequest(results))
        return out


def model_text(message: PastMessage) -> str:
    """Return a message as a model reads it: its text, and the names of its files."""
    files = [f"[file {file.name}, {file.mime}, {file.size} bytes]" for file in message.files]
    return "\n".join(part for part in (message.text, *files) if part)


def past_of(screen: Screen, turn: TurnScreen) -> Iterator[PastMessage]:
    """Return the messages of one turn, in order."""
    output = screen.output(turn.id)
    agent = _AgentMessage(turn.id)
    for piece in screen.story(turn.id):
        match piece.kind:
            case "input" if turn.inputs[piece.number].origin == SESSION_START:
                pass  # nobody has said anything
            case "input":
                yield from agent.ended()
                yield _user_message(turn.id, turn.inputs[piece.number])
            case "tool":
                agent.calls.append(_called(turn.tools[piece.number]))
            case "text":
                yield from agent.ended_by_call()
                agent.texts.append(piece.text)
            case "component":
                yield from agent.ended_by_call()
                component = output[piece.number]
                if component.type == AUTHOR:
                    yield from agent.ended()
                    agent.author = str(component.props.get("name", ""))
                    continue
                agent.shown.append(component)
                agent.texts.append(f"\n{_text_of(component)}\n")
            case _:
                pass
    if turn.status in _MARKS and "".join(agent.texts).strip():
        agent.texts.append(f"\n\n{_MARKS[turn.status]}")
    yield from agent.ended()


class _AgentMessage:
    """A message of the agent, as it comes together."""

    def __init__(self, turn_id: str) -> None:
        self._turn_id = turn_id
        self.texts: list[str] = []
        self.shown: list[Component] = []
        self.calls: list[CalledTool] = []
        self.author = ""

    def ended_by_call(self) -> Iterator[PastMessage]:
        """Return the message if it has calls: what comes now was said after their results."""
        return self.ended() if self.calls else iter(())

    def ended(self) -> Iterator[PastMessage]:
        """Return the message, if there is anything in it, and begin another one."""
        text = "".join(self.texts).strip("\n")
        if text or self.calls:
            yield PastMessage(
                "assistant",
                self._turn_id,
                text,
                calls=tuple(self.calls),
                shown=tuple(self.shown),
                author=self.author,
            )
        self.texts, self.shown, self.calls = [], [], []


def _user_message(turn_id: str, echo: InputEcho) -> PastMessage:
    files = convert(echo.data.get("files", []), tuple[FileRef, ...])
    return PastMessage("user", turn_id, _typed(echo), files=files, answers=echo.source_component)


def _typed(echo: InputEcho) -> str:
    """Return what a user said or did, as text."""
    for name in ("text", "transcript"):
        typed = echo.data.get(name)
        if isinstance(typed, str):
            return typed
    shown = {name: value for name, value in echo.data.items() if name != "files"}
    payload = shown.pop("payload", None)
    if isinstance(payload, dict):
        shown |= payload
    return json.dumps(shown, ensure_ascii=False) if shown else ""


def _called(run: ToolRun) -> CalledTool:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", run.tool)[:64]
    call_id = re.sub(r"[^A-Za-z0-9_-]", "_", run.call_id)
    if run.ok is None:
        return CalledTool(call_id, name, _object(run.args), "it did not end", False)
    return CalledTool(call_id, name, _object(run.args), run.result or run.error or "", run.ok)


def _object(args: str) -> JsonObject:
    try:
        parsed: Json = json.loads(args)
    except ValueError:
        parsed = args
    if parsed is None:
        return {}
    return parsed if isinstance(parsed, dict) else {"input": parsed}


def _text_of(component: Component) -> str:
    content: str = as_one_text(component, MAX_SHOWN_ROWS).props["content"]
    return content


def _append(out: list[JsonObject], role: str, blocks: list[JsonObject]) -> None:
    """Append blocks; to the last message if that has the same role."""
    if blocks and out and out[-1]["role"] == role:
        out[-1]["content"] += blocks
    elif blocks:
        out.append({"role": role, "content": blocks})
