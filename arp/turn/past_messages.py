"""The conversation of a branch, and its formats for models and frameworks.

Theory of operation. `past_of` reads what screens show of earlier turns, in the order in which it
happened. A message of the user begins a turn, or answers a question during one. A message of the
agent holds its text and components, followed by its tool calls. Text after the results of these
calls begins the next message, as model providers require.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from msgspec import Struct, convert

from arp.protocol.components import AUTHOR, Component
from arp.protocol.connection.screen import Screen, ToolRun, TurnScreen
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import FileRef, InputEcho
from arp.session.input.receive import SESSION_START
from arp.surface.degrade import as_one_text

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from pydantic_ai.messages import ModelMessage

MAX_SHOWN_ROWS = 50
"""Most rows of a table that a model reads."""
BROKEN = "[An error ended this answer here.]"
STOPPED = "[This answer was stopped here.]"
"""Note at the end of an incomplete answer, for models; screens show the status of the turn.

Without it, a model takes the incomplete answer for a complete one."""
_MARKS = {"failed": BROKEN, "cancelled": STOPPED}


class CalledTool(Struct, frozen=True):
    """A tool call of the agent."""

    id: str
    name: str
    args: JsonObject
    result: str = ""
    """Result, or error; the beginning of a long result."""
    ok: bool = True


class PastMessage(Struct, frozen=True):
    """Message of the user or the agent in an earlier turn."""

    role: Literal["user", "assistant"]
    turn_id: str
    text: str = ""
    """Text of the message; components are included as text."""
    files: tuple[FileRef, ...] = ()
    """Files that the user sent."""
    calls: tuple[CalledTool, ...] = ()
    """Tool calls of the agent, after its text."""
    shown: tuple[Component, ...] = ()
    """Components of the agent; a question includes its answer."""
    answers: str | None = None
    """Id of the component that a user's message answers."""
    author: str = ""
    """Author that was passed to `turn.say`; empty for the agent itself and for the user."""


class PastMessages(Sequence[PastMessage]):
    """Messages, oldest first, and their formats for models and frameworks.

    Secrets are masked, as on screens.
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
        """Return the messages as `messages` of OpenAI's Chat Completions."""
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
        """Return the messages as `input` of OpenAI's Responses and the OpenAI Agents SDK."""
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
        """Return the messages as `messages` of Anthropic's Messages, with alternating roles."""
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
        """Return the messages as messages of LangChain and LangGraph."""
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
        """Return the messages as `message_history` of Pydantic AI."""
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
    """Return the text of a message for a model, with the names of its files."""
    files = [f"[file {file.name}, {file.mime}, {file.size} bytes]" for file in message.files]
    return "\n".join(part for part in (message.text, *files) if part)


def past_of(screen: Screen, turn: TurnScreen) -> Iterator[PastMessage]:
    """Return the messages of one turn, in order."""
    output = screen.output(turn.id)
    agent = _AgentMessage(turn.id)
    for piece in screen.story(turn.id):
        match piece.kind:
            case "input" if turn.inputs[piece.number].origin == SESSION_START:
                # The app greeted the user; the user sent nothing.
                pass
            case "input":
                yield from agent.ended()
                yield _user_message(turn.id, turn.inputs[piece.number])
            case "tool":
                agent.calls.append(_tool_call(turn.tools[piece.number]))
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
    """A message of the agent that is being collected."""

    def __init__(self, turn_id: str) -> None:
        self._turn_id = turn_id
        self.texts: list[str] = []
        self.shown: list[Component] = []
        self.calls: list[CalledTool] = []
        self.author = ""

    def ended_by_call(self) -> Iterator[PastMessage]:
        """Yield the message if it has calls, because later output follows their results."""
        return self.ended() if self.calls else iter(())

    def ended(self) -> Iterator[PastMessage]:
        """Yield the message if it is not empty, and begin another one."""
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
    return PastMessage(
        "user", turn_id, _input_text(echo), files=files, answers=echo.source_component
    )


def _input_text(echo: InputEcho) -> str:
    """Return a user's input as text."""
    for name in ("text", "transcript"):
        typed = echo.data.get(name)
        if isinstance(typed, str):
            return typed
    shown = {name: value for name, value in echo.data.items() if name != "files"}
    payload = shown.pop("payload", None)
    if isinstance(payload, dict):
        shown |= payload
    return json.dumps(shown, ensure_ascii=False) if shown else ""


def _tool_call(run: ToolRun) -> CalledTool:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", run.tool)[:64]
    call_id = re.sub(r"[^A-Za-z0-9_-]", "_", run.call_id)
    if run.ok is None:
        return CalledTool(call_id, name, _as_object(run.args), "it did not end", False)
    return CalledTool(call_id, name, _as_object(run.args), run.result or run.error or "", run.ok)


def _as_object(args: str) -> JsonObject:
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
    """Append blocks to the last message if it has the same role, otherwise as a new message."""
    if blocks and out and out[-1]["role"] == role:
        out[-1]["content"] += blocks
    elif blocks:
        out.append({"role": role, "content": blocks})
