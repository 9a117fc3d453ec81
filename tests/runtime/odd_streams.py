"""Streams of models with planted oddities, and what people see of each.

    name        what is odd, and what the user types to get the stream
    pieces      what the server sends, piece by piece; `BREAK` ends the connection there
    seen        what is on the screen then: shown right, or refused with a sentence
    but         where an adapter's framework sees it differently

The oddities are those of providers and proxies: chunks without an index, a stream without its end,
a page in the place of a stream. `{…}` in a call is its arguments; `after: …` is what the model says
when it has the result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

BREAK: Final = "BREAK"
DONE: Final = "data: [DONE]\n\n"
LENGTH: Final = "limit of output tokens"
FILTER: Final = "content filter"
UNFINISHED: Final = "without saying that it is complete"
EMPTY: Final = "empty answer"


@dataclass(frozen=True)
class Seen:
    """What is on the screen: the text, or words in the card, the error and the calls."""

    text: str = ""
    card: str = ""
    """In the card that says that the answer is not complete."""
    error: str = ""
    """In the error of the turn, which failed then."""
    calls: Sequence[str] = ()
    """Name and arguments of each call, and what came of it."""
    any_order: bool = False
    """Whether the calls may be in any order: LangGraph runs them side by side, and the results of
    two calls with one id can only be told apart by the order in which they come."""


@dataclass(frozen=True)
class Odd:
    """A stream with something odd in it."""

    name: str
    pieces: Sequence[str]
    seen: Seen
    but: Mapping[str, Seen] = field(default_factory=dict)
    kind: str = "text/event-stream"


def chunk(delta: Any = None, reason: str | None = None, **more: Any) -> str:
    """Return a chunk of Chat Completions as an event."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    made = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps({**made, 'choices': choices, **more})}\n\n"


def in_lines(event: str) -> str:
    """Return an event with its data in several lines."""
    spread = json.dumps(json.loads(event.removeprefix("data: ")), indent=1)
    return "".join(f"data: {line}\n" for line in spread.split("\n")) + "\n"


def said(*texts: str, reason: str | None = "stop") -> list[str]:
    """Return a stream that says texts, and ends with a reason."""
    begun = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": t}) for t in texts)]
    return [*begun, *([chunk({}, reason)] if reason else []), DONE]


def call(place: int | None, call_id: str | None, name: str | None, args: Any) -> str:
    """Return a chunk with a part of a call."""
    part: dict[str, Any] = {"function": {"arguments": args}}
    if name is not None:
        part["function"]["name"] = name
    if place is not None:
        part["index"] = place
    if call_id is not None:
        part |= {"id": call_id, "type": "function"}
    return chunk({"tool_calls": [part]})


def called(*parts: str, reason: str = "tool_calls") -> list[str]:
    """Return a stream of calls."""
    return [chunk({"role": "assistant", "content": None}), *parts, chunk({}, reason), DONE]


ONE_TWO, THREE_FOUR = '{"a": 1, "b": 2}', '{"a": 3, "b": 4}'
THREE = Seen("after: 3", calls=["add 3"])
THREE_SEVEN = Seen("after: 3|7", calls=["add 3", "add 7"])
BAD_CALL = "add failed"
AGENTS, LANGGRAPH, PYDANTIC = "openai-agents", "langgraph", "model"

CHAT: Final = (
    # -- answers that are cut off
    Odd("length", said("Half", reason="length"), Seen("Half", LENGTH)),
    Odd("max tokens", said("Half", reason="max_tokens"), Seen("Half", LENGTH),
        {PYDANTIC: Seen("Half")}),  # Pydantic AI drops a reason that OpenAI does not have
    Odd("filter", said("I begin", reason="content_filter"), Seen("I begin", FILTER)),
    Odd("filter at once", said(reason="content_filter"), Seen(error="ask in other words"),
        {LANGGRAPH: Seen(card=FILTER), AGENTS: Seen(error="withheld by the provider's content")}),
    Odd("length of thoughts", [chunk({"reasoning_content": "hm"}), *said(reason="length")],
        Seen(error="raise the limit"), {LANGGRAPH: Seen(card=LENGTH)}),
    Odd("refusal", [chunk({"refusal": "I can't help with that."}), *said()],
        Seen(error="the model refused: I can't help with that."),
        {LANGGRAPH: Seen(card=EMPTY)}),  # langchain-openai drops the words
    Odd("no reason", said("All of it?", reason=None)[:-1], Seen("All of it?", UNFINISHED)),
    Odd("no done", said("All of it.")[:-1], Seen("All of it.")),
    Odd("break", [*said("Half an ans")[:2], BREAK], Seen("Half an ans", error="broke")),
    Odd("break in an event", [*said("Half")[:2], 'data: {"id": "c", "choices": [{"in', BREAK],
        Seen("Half", error="broke")),
    Odd("break at once", [BREAK], Seen(error="broke")),
    Odd("error inside", [*said("Half ")[:2],
                         'data: {"error": {"message": "Overloaded", "code": 529}}\n\n', DONE],
        Seen("Half ", error="Overloaded")),
    # -- nothing
    Odd("empty", said(), Seen(card=EMPTY), {PYDANTIC: Seen(error="Please return text")}),
    Odd("white", said("\n \n"), Seen("\n \n", EMPTY)),
    Odd("done alone", [DONE], Seen(error="check the model's name and address"),
        {AGENTS: Seen(card=EMPTY)}),
    Odd("page", ["<title>Portal</title><h1>Sign in</h1>"],
        Seen(error="check the model's name and address"),
        {AGENTS: Seen(error="expected a stream of events, got text/html")}, "text/html"),
    Odd("no stream", ['{"id": "c", "choices": []}'],
        Seen(error="check the model's name and address"),
        {AGENTS: Seen(error="expected a stream of events, got application/json")},
        "application/json"),
    # -- how events are written
    Odd("crlf", [one.replace("\n", "\r\n") for one in said("Hel", "lo")], Seen("Hello")),
    Odd("comments", [": PROCESSING\n\n", ": PROCESSING\n\n", *said("Hello")], Seen("Hello")),
    Odd("three bytes at a time", list("".join(said("Grüße 日本語"))), Seen("Grüße 日本語")),
    Odd("several lines", [said()[0], in_lines(chunk({"content": "Hello"})), *said()[1:]],
        Seen("Hello")),
    Odd("names of events", ["event: message\nid: 1\nretry: 5\n" + one for one in said("Hello")],
        Seen("Hello")),
    # -- what chunks have
    Odd("filter results first", [chunk(None, id="", model="", object=""), *said("Hello")],
        Seen("Hello")),
    Odd("null content", [chunk({"content": None}), chunk({"content": "x"}),
                         chunk({"content": None}), *said()[1:]], Seen("x")),
    Odd("null delta", [chunk({"role": "assistant"}), chunk({}).replace("{}", "null"),
                       *said("Hello")], Seen("Hello")),
    Odd("usage last", [*said("Hello")[:-1], chunk(None, usage={
        "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}), DONE], Seen("Hello")),
    Odd("usage of nulls", [*said("Hello")[:-1], chunk(None, usage={
        "prompt_tokens": None, "completion_tokens": None, "total_tokens": None}), DONE],
        Seen("Hello")),
    Odd("late thoughts", [chunk({"reasoning_content": "hm"}), chunk({"content": "yes"}),
                          chunk({"reasoning_content": "hm"}), *said()[1:]], Seen("yes")),
    # -- calls
    Odd("two calls in turn", called(call(0, "a", "add", '{"a": 1,'),
                                    call(1, "b", "add", '{"a": 3,'),
                                    call(0, None, None, '"b": 2}'), call(1, None, None, '"b": 4}')),
        THREE_SEVEN),
    Odd("calls without index", called(call(None, "a", "add", ONE_TWO),
                                      call(None, "b", "add", THREE_FOUR)), THREE_SEVEN,
        {AGENTS: Seen("after: An error", calls=[BAD_CALL])}),
    Odd("one index", called(call(0, "a", "add", ONE_TWO), call(0, "b", "add", THREE_FOUR)),
        THREE_SEVEN, {AGENTS: Seen("after: An error", calls=[BAD_CALL]),
                      PYDANTIC: Seen("after: ", calls=["addadd failed"])}),
    Odd("one id", called(call(0, "a", "add", ONE_TWO), call(1, "a", "add", THREE_FOUR)),
        Seen(error="unique"), {LANGGRAPH: replace(THREE_SEVEN, any_order=True)}),
    Odd("no id", called(call(0, "", "add", ONE_TWO)), THREE,
        {AGENTS: Seen(error="require a non-empty string call ID")}),
    Odd("a call that ends with stop", called(call(0, "a", "add", ONE_TWO), reason="stop"), THREE),
    Odd("no arguments", called(call(0, "a", "now", "")), Seen("after: noon", calls=["now noon"])),
    Odd("null arguments", called(call(0, "a", "now", None)),
        Seen("after: noon", calls=["now noon"])),
    Odd("an object of arguments", called(call(0, "a", "add", {"a": 1, "b": 2})),
        Seen(error="could not go on"), {PYDANTIC: THREE}),
    Odd("half of the arguments", called(call(0, "a", "add", '{"a": 1, "b":')),
        Seen("after: ", calls=[BAD_CALL])),
    Odd("half of the arguments, cut", called(call(0, "a", "add", '{"a": 1, "b":'), reason="length"),
        Seen("after: ", calls=[BAD_CALL])),
    Odd("an unknown tool", called(call(0, "a", "nope", "{}")),
        Seen("after: ", calls=["nope failed"]),
        {AGENTS: Seen(error="Tool nope not found")}),
    Odd("a wrong kind", called(call(0, "a", "add", '{"a": "1", "b": "x"}')),
        Seen("after: ", calls=[BAD_CALL])),
    Odd("text around a call", [chunk({"content": "I add. "}), call(0, "a", "add", ONE_TWO),
                               chunk({"content": "Wait. "}), chunk({}, "tool_calls"), DONE],
        Seen("I add. Wait. after: 3", calls=["add 3"])),
)  # fmt: skip


def event(kind: str, **fields: Any) -> str:
    """Return an event that names its kind twice, as Anthropic and OpenAI's Responses have it."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def message(*deltas: dict[str, Any], reason: str | None = "end_turn") -> list[str]:
    """Return a stream of Anthropic's Messages."""
    about = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    begun = {**about, "stop_reason": None, "stop_sequence": None, "usage": usage}
    block = {"type": "text", "text": ""}
    end = {"stop_reason": reason, "stop_sequence": None}
    return [
        event("message_start", message=begun),
        event("content_block_start", index=0, content_block=block),
        *(event("content_block_delta", index=0, delta=delta) for delta in deltas),
        event("content_block_stop", index=0),
        *([event("message_delta", delta=end, usage=usage)] if reason else ()),
        event("message_stop"),
    ]


def text(words: str) -> dict[str, Any]:
    """Return a delta of text."""
    return {"type": "text_delta", "text": words}


OVERLOADED = event("error", error={"type": "overloaded_error", "message": "Overloaded"})

ANTHROPIC: Final = (
    Odd("length", message(text("Half"), reason="max_tokens"), Seen("Half", LENGTH)),
    Odd("context", message(text("Half"), reason="model_context_window_exceeded"),
        Seen("Half", LENGTH)),
    Odd("refusal", message(text("I begin"), reason="refusal"), Seen("I begin", FILTER)),
    Odd("refusal at once", message(reason="refusal"), Seen(error="ask in other words")),
    Odd("pings", [event("ping"), *message(text("Hel"), text("lo")), event("ping")], Seen("Hello")),
    Odd("error inside", [*message(text("Half "))[:3], OVERLOADED],
        Seen("Half ", error="Overloaded")),
    Odd("break", [*message(text("Half"))[:3], BREAK], Seen("Half", error="broke")),
    Odd("a new kind of event", [*message(text("Hello"))[:3], event("brand_new", index=0),
                                *message(text("Hello"))[3:]], Seen("Hello")),
)  # fmt: skip


def agent_said(*deltas: str) -> list[str]:
    """Return the events of a run of AG-UI, without its end."""
    return [
        f"data: {json.dumps(one)}\n\n"
        for one in (
            {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
            *({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": d} for d in deltas),
        )
    ]


def agent_event(kind: str, **fields: Any) -> str:
    """Return an event of AG-UI."""
    return f"data: {json.dumps({'type': kind, **fields})}\n\n"


FINISHED = agent_event("RUN_FINISHED", threadId="t", runId="r")

AG_UI: Final = (
    Odd("no end", agent_said("Half"), Seen("Half", error="cut off")),
    Odd("break", [*agent_said("Half"), BREAK], Seen("Half", error="broke")),
    Odd("break in an event", [*agent_said("Half"), 'data: {"type": "TEXT_ME'],
        Seen("Half", error="cut off")),
    Odd("no json", [*agent_said("Half"), "data: {\n\n", FINISHED], Seen("Half", error="no JSON")),
    Odd("page", ["<title>Portal</title><h1>Sign in</h1>"],
        Seen(error="got text/html: Portal: Sign in; check the address"), kind="text/html"),
    Odd("several lines", [*map(in_lines, agent_said("Hello")), FINISHED], Seen("Hello")),
    Odd("done", [*agent_said("Hello"), FINISHED, DONE], Seen("Hello")),
    Odd("comments", [": hi\n\n", *agent_said("Hello"), ": hi\n\n", FINISHED], Seen("Hello")),
    Odd("no blank line", [*agent_said("Hello"), FINISHED.rstrip()], Seen("Hello")),
    Odd("a change that does not apply", [*agent_said(), agent_event("STATE_DELTA", delta=[
        {"op": "replace", "path": "/no/such", "value": 1}]), *agent_said("still here")[1:],
        FINISHED], Seen("still here")),
    Odd("a result without its message", [*agent_said(), agent_event(
        "TOOL_CALL_RESULT", toolCallId="c9", content="x"), *agent_said("still here")[1:],
        FINISHED], Seen("still here", calls=["tool x"])),
    Odd("an event without its fields", [*agent_said(), agent_event("TOOL_CALL_START"),
                                        *agent_said("still here")[1:], FINISHED],
        Seen("still here")),
    Odd("no event", [*agent_said(), "data: 7\n\n", *agent_said("still here")[1:], FINISHED],
        Seen("still here")),
    Odd("the run's error", [*agent_said("Half "), agent_event("RUN_ERROR", message="No credit")],
        Seen("Half ", error="No credit")),
)  # fmt: skip
