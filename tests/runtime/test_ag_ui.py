"""Agents of AG-UI whose events come in any order that the protocol allows, and in some others."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriCode
from arp.runtime.frameworks.ag_ui import AgUiRuntime
from arp.runtime.frameworks.ag_ui_stream import LEFT, NO_RESULT
from tests.runtime.caller import Caller
from tests.support.asgi_serving import serving_asgi
from tests.support.examples import examples

Events = Sequence[dict[str, Any]]
VALID: TypeAdapter[Any] = TypeAdapter(Event)
STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
ONE = {"type": "object", "properties": {"approved": {"type": "boolean"}}}


def text(message_id: str, *deltas: str, kind: str = "TEXT_MESSAGE") -> list[dict[str, Any]]:
    about = {"messageId": message_id}
    role = {"role": "reasoning"} if kind != "TEXT_MESSAGE" else {}
    return [
        {"type": f"{kind}_START", **about, **role},
        *({"type": f"{kind}_CONTENT", **about, "delta": delta} for delta in deltas),
        {"type": f"{kind}_END", **about},
    ]


def called(call_id: str, name: str, *fragments: str, **more: Any) -> list[dict[str, Any]]:
    about = {"toolCallId": call_id}
    return [
        {"type": "TOOL_CALL_START", **about, "toolCallName": name, **more},
        *({"type": "TOOL_CALL_ARGS", **about, "delta": one} for one in fragments),
        {"type": "TOOL_CALL_END", **about},
    ]


def resulted(call_id: str, content: str) -> dict[str, Any]:
    about = {"messageId": f"of-{call_id}", "toolCallId": call_id}
    return {"type": "TOOL_CALL_RESULT", **about, "content": content}


class Scripted:
    """An agent whose runs are lists of events; it keeps what each run got."""

    def __init__(self, *runs: Events) -> None:
        self.runs = list(runs)
        self.got: list[dict[str, Any]] = []

    async def __call__(self, given: RunAgentInput) -> AsyncIterator[dict[str, Any]]:
        self.got.append(given.model_dump(mode="json", by_alias=True, exclude_none=True))
        for event in self.runs[len(self.got) - 1]:
            yield event


class Seen:
    """What a turn told."""

    def __init__(self, events: Sequence[ari.Event]) -> None:
        self.events = events
        self.text = "".join(one.content for one in self._of(ari.EventType.TEXT))
        self.thoughts = "".join(one.content for one in self._of(ari.EventType.THINKING))
        self.calls = {
            one.tool_call_id: (one.tool_name, one.tool_input_raw)
            for one in self._of(ari.EventType.TOOL_CALL)
        }
        self.results = {
            one.tool_call_id: (one.content, one.is_error)
            for one in self._of(ari.EventType.TOOL_RESULT)
        }
        self.warnings = [one.content for one in events if one.lifecycle is ari.Lifecycle.WARNING]
        assert len(self.calls) == len(self._of(ari.EventType.TOOL_CALL))
        assert len(self.results) == len(self._of(ari.EventType.TOOL_RESULT))

    @property
    def error(self) -> Any:
        """Why the turn failed; `None`: it did not."""
        return self.events[-1].error

    def _of(self, kind: ari.EventType) -> list[ari.Event]:
        return [one for one in self.events if one.type is kind]


async def told(*events: dict[str, Any], ends: bool = True) -> Seen:
    """Return what a turn tells whose run has these events."""
    agent = Scripted([STARTED, *events, *([FINISHED] if ends else [])])
    caller = await Caller.create(AgUiRuntime(agent))
    return Seen(await caller.turn("go"))


# -- interleaved ---------------------------------------------------------------------------------


async def test_calls_that_begin_together_have_their_own_arguments() -> None:
    first = called("a", "mail", '{"to":', '"ann"}')
    second = called("b", "pay", '{"sum":', "7}")
    mixed = [one for pair in zip(first, second, strict=True) for one in pair]
    seen = await told(*mixed, resulted("b", "paid"), resulted("a", "mailed"))
    assert seen.calls == {"a": ("mail", {"to": "ann"}), "b": ("pay", {"sum": 7})}
    assert seen.results == {"a": ("mailed", False), "b": ("paid", False)}
    assert seen.warnings == []


async def test_permissions_of_calls_that_begin_together_show_their_arguments() -> None:
    first = called("a", "mail", '{"to":', '"ann"}')
    second = called("b", "pay", '{"sum":', "7}")
    mixed = [one for pair in zip(first, second, strict=True) for one in pair]
    interrupts = [
        {"id": f"i-{one}", "reason": "approval", "toolCallId": one, "responseSchema": ONE}
        for one in "ab"
    ]
    outcome = {"type": "interrupt", "interrupts": interrupts}
    agent = Scripted(
        [STARTED, *mixed, {**FINISHED, "outcome": outcome}],
        [STARTED, resulted("b", "paid"), resulted("a", "not allowed"), FINISHED],
    )
    caller = await Caller.create(AgUiRuntime(agent))
    await caller.send("go")
    asked: dict[str, ari.PermissionRequest] = {}
    while len(asked) < 2:
        (*_, event) = await caller.until(lambda one: one.permission is not None)
        assert event.permission is not None
        asked[event.permission.tool_call_id] = event.permission
    assert {one: about.tool_input_raw for one, about in asked.items()} == {
        "a": {"to": "ann"},
        "b": {"sum": 7},
    }
    await caller.answer(await _event_of(asked["b"]), ari.PermissionResponse("allow"))
    await caller.answer(await _event_of(asked["a"]), ari.PermissionResponse("deny"))
    seen = Seen(await caller.until(lambda one: one.done))
    assert seen.results == {"a": ("not allowed", True), "b": ("paid", False)}
    answers = {one["interruptId"]: one["payload"]["approved"] for one in agent.got[1]["resume"]}
    assert answers == {"i-a": False, "i-b": True}


async def _event_of(about: ari.PermissionRequest) -> Any:
    return ari.Event(
        ari.EventType.PERMISSION_REQUEST,
        about.session_id,
        0,
        0,
        request_id=about.request_id,
        permission=about,
    )


WORDS = st.lists(st.text('abc {}"é\n', min_size=1, max_size=4), min_size=1, max_size=4)
VALUES = st.dictionaries(
    st.text("xyz", min_size=1, max_size=2), st.integers() | st.text('ab"', max_size=3), max_size=3
)


@st.composite
def streams(draw: st.DrawFn) -> list[Events]:
    """Several messages, thoughts and calls, each as the protocol has it."""
    found: list[Events] = []
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["text", "thought", "call", "bare call", "chunk"]))
        if kind in ("text", "thought"):
            name = "TEXT_MESSAGE" if kind == "text" else "REASONING_MESSAGE"
            found.append(text(f"m{number}", *draw(WORDS), kind=name))
            continue
        whole, call_id = json.dumps(draw(VALUES)), f"c{number}"
        if kind == "chunk":
            about = {"type": "TOOL_CALL_CHUNK", "toolCallId": call_id, "toolCallName": "tool"}
            found.append([{**about, "delta": whole}, resulted(call_id, f"r{number}")])
            continue
        cut = draw(st.integers(0, len(whole)))
        parent = {} if kind == "bare call" else {"parentMessageId": f"p{number % 2}"}
        events = called(call_id, f"tool{number}", whole[:cut], whole[cut:], **parent)
        found.append([*events, resulted(call_id, f"r{number}")])
    return found


def in_order(parts: Sequence[Events], order: Sequence[int]) -> Events:
    """Return the events of all parts, each time the next one of the part that is named."""
    iterators = [iter(part) for part in parts]
    return [next(iterators[number]) for number in order]


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_any_order_tells_the_same_as_one_after_the_other(data: st.DataObject) -> None:
    parts = data.draw(streams())
    sequence = [number for number, part in enumerate(parts) for _ in part]
    order = data.draw(st.permutations(sequence))
    began = list(dict.fromkeys(order))
    for event in (STARTED, *(one for part in parts for one in part), FINISHED):
        VALID.validate_python(event)

    async def both() -> tuple[Seen, Seen, Scripted, Scripted]:
        agents = [
            Scripted([STARTED, *in_order(parts, one), FINISHED], [STARTED, FINISHED])
            for one in (order, sequence)
        ]
        seen = []
        for agent in agents:
            caller = await Caller.create(AgUiRuntime(agent))
            seen.append(Seen(await caller.turn("go")))
            await caller.turn("again")
        return seen[0], seen[1], agents[0], agents[1]

    mixed, straight, of_mixed, of_straight = asyncio.run(both())
    assert mixed.calls == straight.calls
    assert mixed.results == straight.results
    for told_text, kind in ((mixed.text, "TEXT"), (mixed.thoughts, "REASONING")):
        whole = [_words(parts[number], kind) for number in began]
        assert told_text.replace("\n", "") == "".join(whole).replace("\n", "")
    assert mixed.warnings == straight.warnings == []
    assert _kept(of_mixed) == _kept(of_straight)


def _words(part: Events, kind: str) -> str:
    return "".join(one["delta"] for one in part if one["type"].startswith(f"{kind}_MESSAGE_C"))


def _kept(agent: Scripted) -> tuple[Any, Any, Any]:
    """Return the texts, calls and results that the next run got."""
    messages = agent.got[1]["messages"]
    texts = {
        (one["id"], one["content"])
        for one in messages
        if one["role"] in ("assistant", "reasoning") and one.get("content")
    }
    calls = Counter(
        (call["id"], call["function"]["arguments"])
        for one in messages
        for call in one.get("toolCalls") or ()
    )
    results = Counter(
        (one["toolCallId"], one["content"]) for one in messages if one["role"] == "tool"
    )
    return texts, calls, results


async def test_messages_that_come_together_are_told_one_after_the_other() -> None:
    first, second = text("m1", "One ", "two."), text("m2", "Eins ", "zwei.")
    mixed = [one for pair in zip(first, second, strict=True) for one in pair]
    assert (await told(*mixed)).text == "One two.\n\nEins zwei."


async def test_chunks_of_subagents_without_ids_go_on_with_their_own() -> None:
    def chunk(kind: str, run: str, **more: Any) -> dict[str, Any]:
        return {"type": f"{kind}_CHUNK", "subagentRunId": run, **more}

    seen = await told(
        chunk("TOOL_CALL", "s1", toolCallId="a", toolCallName="mail", delta='{"to"'),
        chunk("TOOL_CALL", "s2", toolCallId="b", toolCallName="pay", delta='{"sum"'),
        chunk("TOOL_CALL", "s1", delta=':"ann"}'),
        chunk("TOOL_CALL", "s2", delta=":7}"),
        chunk("TEXT_MESSAGE", "s1", messageId="m", delta="Hel"),
        chunk("TEXT_MESSAGE", "s1", delta="lo"),
    )
    assert seen.calls == {"a": ("mail", {"to": "ann"}), "b": ("pay", {"sum": 7})}
    assert seen.text == "Hello"


async def test_arguments_before_their_call_and_a_call_before_its_message() -> None:
    start, one, two, end = called("a", "mail", '{"to":', '"ann"}', parentMessageId="m")
    agent = Scripted(
        [STARTED, one, start, two, end, resulted("a", "mailed"), *text("m", "Done."), FINISHED],
        [STARTED, FINISHED],
    )
    caller = await Caller.create(AgUiRuntime(agent))
    seen = Seen(await caller.turn("go"))
    assert seen.calls == {"a": ("mail", {"to": "ann"})}
    await caller.turn("again")
    (holder,) = [one for one in agent.got[1]["messages"] if one["id"] == "m"]
    assert (holder["content"], holder["toolCalls"][0]["id"]) == ("Done.", "a")


# -- results -------------------------------------------------------------------------------------


def snapshot(*messages: dict[str, Any]) -> dict[str, Any]:
    user = {"id": "u", "role": "user", "content": "go"}
    return {"type": "MESSAGES_SNAPSHOT", "messages": [user, *messages]}


def held(message_id: str, call_id: str, arguments: str, content: str = "") -> dict[str, Any]:
    function = {"name": "mail", "arguments": arguments}
    calls = [{"id": call_id, "type": "function", "function": function}]
    return {"id": message_id, "role": "assistant", "content": content, "toolCalls": calls}


async def test_a_result_in_a_snapshot_ends_its_call() -> None:
    """As LlamaIndex sends them: the call in one chunk, its result in all messages."""
    chunk = {"type": "TOOL_CALL_CHUNK", "toolCallId": "a", "toolCallName": "mail"}
    result = {"id": "x", "role": "tool", "toolCallId": "a", "content": "mailed"}
    failed = {
        "id": "y",
        "role": "tool",
        "toolCallId": "b",
        "content": "",
        "error": "no such person",
    }
    seen = await told(
        {**chunk, "delta": '{"to": "ann"}'},
        {**chunk, "toolCallId": "b", "delta": '{"to": "nobody"}'},
        snapshot(held("m", "a", '{"to": "ann"}'), result),
        snapshot(held("m", "a", '{"to": "ann"}'), result, held("n", "b", "{}"), failed),
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "o", "delta": "Done."},
        snapshot(
            held("m", "a", '{"to": "ann"}'),
            result,
            {"id": "p", "role": "assistant", "content": "Done."},
        ),
    )
    assert seen.calls == {"a": ("mail", {"to": "ann"}), "b": ("mail", {"to": "nobody"})}
    assert seen.results == {"a": ("mailed", False), "b": ("no such person", True)}
    assert seen.text == "Done."


async def test_what_came_in_a_snapshot_alone_is_told_once() -> None:
    result = {"id": "x", "role": "tool", "toolCallId": "a", "content": "mailed"}
    answer = {"id": "n", "role": "assistant", "content": "Done."}
    whole = snapshot(held("m", "a", '{"to": "ann"}', "I mail."), result, answer)
    seen = await told(whole, resulted("a", "mailed"), whole)
    assert seen.calls == {"a": ("mail", {"to": "ann"})}
    assert seen.results == {"a": ("mailed", False)}
    assert seen.text == "I mail.\n\nDone."


async def test_a_snapshot_in_the_middle_lets_a_message_and_a_call_go_on() -> None:
    begin, one, two, end = text("m", "Hel", "lo")
    start, first, second, over = called("a", "mail", '{"to":', '"ann"}', parentMessageId="m")
    partly = {"id": "m", "role": "assistant", "content": "Hel"}
    for middle in (snapshot(), snapshot(partly), snapshot(held("m", "a", '{"to":', "Hel"))):
        agent = Scripted(
            [STARTED, begin, one, start, first, middle, two, end, second, over, FINISHED],
            [STARTED, FINISHED],
        )
        caller = await Caller.create(AgUiRuntime(agent))
        seen = Seen(await caller.turn("go"))
        assert (seen.text, seen.calls) == ("Hello", {"a": ("mail", {"to": "ann"})})
        await caller.turn("again")
        assert ("m", "Hello") in _kept(agent)[0]


@pytest.mark.parametrize(
    ("started", "outcome", "content"),
    [
        ({}, None, NO_RESULT),
        ({}, {"type": "success", "pendingToolCallIds": ["a"]}, LEFT),
        ({"protocolVersion": "1.0"}, None, LEFT),
    ],
)
async def test_a_call_without_a_result_has_not_failed(
    started: dict[str, Any], outcome: Any, content: str
) -> None:
    finished = {**FINISHED, **({"outcome": outcome} if outcome else {})}
    agent = Scripted(
        [{**STARTED, **started}, *called("a", "mail", "{}"), *text("m", "Over."), finished],
        [STARTED, FINISHED],
    )
    caller = await Caller.create(AgUiRuntime(agent))
    seen = Seen(await caller.turn("go"))
    assert seen.results == {"a": (content, False)}
    assert seen.error is None
    await caller.turn("again")
    answered = [one["content"] for one in agent.got[1]["messages"] if one["role"] == "tool"]
    assert answered == ([LEFT] if content == LEFT else [])


# -- state, ends and what cannot be read ---------------------------------------------------------


async def test_a_change_that_cannot_be_applied_leaves_the_state_and_the_turn() -> None:
    def delta(*operations: dict[str, Any]) -> dict[str, Any]:
        return {"type": "STATE_DELTA", "delta": list(operations)}

    agent = Scripted(
        [
            STARTED,
            {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}},
            delta({"op": "replace", "path": "/n", "value": 2}),
            delta({"op": "add", "path": "/m", "value": 1}, {"op": "remove", "path": "/nowhere"}),
            delta({"op": "replace", "path": "/n", "value": 3}),
            *text("m", "Going on."),
            FINISHED,
        ],
        [
            STARTED,
            delta({"op": "bogus"}),
            {"type": "STATE_SNAPSHOT", "snapshot": {"n": 7}},
            delta({"op": "replace", "path": "/n", "value": 8}),
            FINISHED,
        ],
        [STARTED, FINISHED],
    )
    caller = await Caller.create(AgUiRuntime(agent))
    seen = Seen(await caller.turn("go"))
    assert (seen.text, seen.error) == ("Going on.", None)
    (warning,) = seen.warnings
    assert "a change of the agent's state cannot be applied" in warning
    await caller.turn("again")
    await caller.turn("and again")
    assert [one["state"] for one in agent.got] == [{}, {"n": 2}, {"n": 8}]


async def test_a_stream_that_ends_before_its_run_was_cut_off() -> None:
    seen = await told(*text("m", "I beg"), *called("a", "mail", "{}"), ends=False)
    assert seen.error.code is AriCode.UNAVAILABLE
    assert "cut off: its events ended before its run did" in seen.error.message
    assert seen.text == "I beg"
    assert seen.results["a"][1] is True


async def test_a_run_that_fails_or_is_cancelled_tells_what_came_before() -> None:
    begin, one, *_ = text("m", "Half")
    later = text("n", "Other")
    failed = await told(
        begin,
        *later,
        one,
        {"type": "RUN_ERROR", "message": "status_code: 429, slow down"},
        ends=False,
    )
    assert failed.error.code is AriCode.UNAVAILABLE
    assert failed.text == "Half\n\nOther"
    cancelled = {**FINISHED, "outcome": {"type": "cancelled"}}
    assert (await told(begin, one, cancelled, ends=False)).error.code is AriCode.CANCELED


async def test_unknown_events_and_those_that_cannot_be_read_end_nothing() -> None:
    seen = await told(
        {"type": "FROM_THE_FUTURE", "x": 1},
        {"type": "STEP_STARTED", "stepName": "s"},
        {"type": "RAW", "event": None},
        {"type": "TOOL_CALL_START", "toolCallName": "no id"},
        {"type": "TOOL_CALL_CHUNK", "delta": "{}"},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "of nothing"},
        {"type": "MESSAGES_SNAPSHOT", "messages": ["text"]},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "z", "activityType": "PLAN", "content": [1]},
        {"no": "type"},
        *text("m", "Fine."),
    )
    assert (seen.text, seen.error) == ("Fine.", None)
    assert len(seen.warnings) == 6
    assert any("a TOOL_CALL_START that cannot be read" in one for one in seen.warnings)


async def test_reasoning_and_activities_come_back_with_the_next_run() -> None:
    patch = [{"op": "replace", "path": "/done", "value": 1}]
    activity = {"messageId": "z", "activityType": "PLAN"}
    encrypted = {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r"}
    agent = Scripted(
        [
            STARTED,
            {"type": "REASONING_START", "messageId": "r"},
            *text("r", "Hm, ", "well.", kind="REASONING_MESSAGE"),
            {**encrypted, "encryptedValue": "opaque"},
            {"type": "REASONING_END", "messageId": "r"},
            {"type": "ACTIVITY_SNAPSHOT", **activity, "content": {"done": 0}},
            {"type": "ACTIVITY_DELTA", **activity, "patch": patch},
            FINISHED,
        ],
        [STARTED, FINISHED],
    )
    caller = await Caller.create(AgUiRuntime(agent))
    assert Seen(await caller.turn("go")).thoughts == "Hm, well."
    await caller.turn("again")
    reasoning, plan = agent.got[1]["messages"][1:3]
    assert reasoning == {
        "id": "r", "role": "reasoning", "content": "Hm, well.", "encryptedValue": "opaque"
    }  # fmt: skip
    assert (plan["role"], plan["content"]) == ("activity", {"done": 1})


# -- at an address -------------------------------------------------------------------------------


def answering(body: Callable[[], AsyncIterator[bytes]]) -> Starlette:
    """Return an agent at an address that answers with these bytes."""

    async def run(request: Request) -> Response:
        await request.json()
        return StreamingResponse(body(), media_type="text/event-stream")

    return Starlette(routes=[Route("/", run, methods=["POST"])])


async def asked_at(body: bytes) -> Seen:
    async def pieces() -> AsyncIterator[bytes]:
        yield body

    with serving_asgi(answering(pieces)) as url:
        caller = await Caller.create(AgUiRuntime(f"{url}/"))
        return Seen(await caller.turn("go"))


async def test_events_over_http_in_every_form_of_an_event_stream() -> None:
    lines = [json.dumps(one) for one in (STARTED, *text("m", "Hel", "lo"))]
    spread = json.dumps(FINISHED, indent=1).replace("\n", "\ndata: ")
    body = "".join(f": ping\r\n\r\ndata: {one}\r\n\r\n" for one in lines)
    seen = await asked_at(f"{body}data:{spread}\n\n".encode())
    assert (seen.text, seen.error) == ("Hello", None)


async def test_a_redirect_on_the_same_server_is_followed_and_another_is_named() -> None:
    """FastAPI redirects from `/agent` to `/agent/`; a proxy may redirect to its login."""

    async def run(request: Request) -> Response:
        assert (await request.json())["messages"]
        events = (STARTED, *text("m", "Hello"), FINISHED)
        body = "".join(f"data: {json.dumps(one)}\n\n" for one in events)
        return Response(body, media_type="text/event-stream")

    async def turn(request: Request) -> Response:
        to = request.path_params["to"]
        places = {"agent": "/agent/", "login": "/login", "far": "http://agent.invalid/agent/"}
        return Response(status_code=302 if to == "login" else 307, headers={"location": places[to]})

    routes = [Route("/agent/", run, methods=["POST"]), Route("/{to}", turn, methods=["POST"])]
    with serving_asgi(Starlette(routes=routes)) as url:
        seen = {}
        for name in ("agent", "login", "far"):
            caller = await Caller.create(AgUiRuntime(f"{url}/{name}"))
            seen[name] = Seen(await caller.turn("go"))
    assert (seen["agent"].text, seen["agent"].error) == ("Hello", None)
    named = f"{url}/login: it redirects (302) to {url}/login; use that address"
    assert seen["login"].error.message == named
    assert "redirects (307) to http://agent.invalid/agent/" in seen["far"].error.message


async def test_a_page_in_the_place_of_a_stream_is_an_error() -> None:
    """A login page comes with status 200."""

    async def page(request: Request) -> Response:
        return Response("<title>Portal</title><h1>Sign in</h1>", media_type="text/html")

    with serving_asgi(Starlette(routes=[Route("/", page, methods=["POST"])])) as url:
        caller = await Caller.create(AgUiRuntime(f"{url}/"))
        error = Seen(await caller.turn("go")).error
    assert "expected a stream of events (text/event-stream), got text/html" in error.message
    assert "Portal: Sign in; check the address" in error.message


async def test_done_ends_no_stream_with_an_error() -> None:
    events = (STARTED, *text("m", "Hello"), FINISHED)
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in events)
    seen = await asked_at(f"{body}data: [DONE]\n\n".encode())
    assert (seen.text, seen.error) == ("Hello", None)


async def test_a_stream_over_http_that_is_cut_off_says_so() -> None:
    events = (STARTED, *text("m", "Half"))
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in events).encode()
    assert "cut off" in (await asked_at(body)).error.message
    torn = b'data: {"type": "TOOL'
    assert "cut off" in (await asked_at(body + torn)).error.message
    assert "no JSON" in (await asked_at(body + torn + b"\n\n")).error.message
