from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from arp.client.callbacks import CallbackRunner, Callbacks
from arp.client.events import Connected, Disconnected, Event
from arp.protocol.codec import agent_decoder
from arp.protocol.errors import ErrorPayload
from arp.protocol.messages import AgentCapabilities, ToolProgressPayload
from tests.client import agent_messages as say
from tests.client.agent_messages import Message, encoded


def recorded() -> tuple[CallbackRunner, list[tuple[Any, ...]]]:
    """A caller of which each callback notes its name and arguments."""
    calls: list[tuple[Any, ...]] = []

    def note(name: str) -> Any:
        return lambda *arguments: calls.append((name, *arguments))

    names = Callbacks.__struct_fields__
    return CallbackRunner(Callbacks(**{name: note(name) for name in names})), calls


def event(plain: Message) -> Event:
    (made,) = agent_decoder("json").decode(encoded(plain))
    return made


def test_each_message_calls_what_it_is_for() -> None:
    caller, calls = recorded()
    caller.handle(event(say.HELLO))
    caller.handle(Connected("s1", "new"))
    for plain in say.STORY:
        caller.handle(event(plain))
    caller.handle(Disconnected("gone", 1.0))
    capabilities = AgentCapabilities(["text", "table"], features=["frame-ack"])
    assert calls == [
        ("on_connect", capabilities),
        ("on_delta", "Let me "),
        ("on_delta", "look."),
        ("on_tool_start", "query", '{"sql":"…"}'),
        ("on_tool_end", "query", True),
        ("on_render", "query", "text", {"content": "one"}),
        ("on_delta", "After."),
        ("on_render", None, "text", {"content": "three"}),
        ("on_error", ErrorPayload("slow", 16)),
        ("on_done",),
        ("on_disconnect",),
    ]


def test_progress_of_a_tool_is_handed_on() -> None:
    caller, calls = recorded()
    progress = ToolProgressPayload("c1", "reading", 1, 3)
    caller.handle(event(say.message("tool_progress", 1, payload=msgspec.to_builtins(progress))))
    assert calls == [("on_tool_progress", progress)]


def test_thinking_and_text_of_components_are_not_the_answer() -> None:
    caller, calls = recorded()
    caller.handle(event(say.delta("hm", 1, kind="thinking")))
    caller.handle(event(say.delta("code", 2, target="block")))
    caller.handle(event(say.delta("part", 3, target="t1/2")))
    assert calls == [("on_delta", "part")]


def test_snapshot_is_not_told_again_and_what_follows_it_is() -> None:
    caller, calls = recorded()
    caller.handle(Connected("s1", "snapshot"))
    for plain in (
        say.render(say.text("a", "old"), None),
        say.commit(None, final=True),
        say.render(say.text("b", "old"), None),
        say.commit(9),
        say.delta("new", 10),
    ):
        caller.handle(event(plain))
    assert calls == [("on_connect", AgentCapabilities([])), ("on_delta", "new")]


def test_snapshot_that_breaks_off_does_not_silence_what_comes_later() -> None:
    caller, calls = recorded()
    caller.handle(Connected("s1", "snapshot"))
    caller.handle(Disconnected("cut", 1.0))
    caller.handle(Connected("s1", "replay"))
    caller.handle(event(say.delta("new", 10)))
    assert [call[0] for call in calls] == ["on_connect", "on_disconnect", "on_connect", "on_delta"]


def test_attempts_that_fail_are_no_disconnects() -> None:
    caller, calls = recorded()
    caller.handle(Disconnected("refused", 1.0))
    assert calls == []


def test_failure_is_told_as_an_error() -> None:
    caller, calls = recorded()
    caller.fail(ErrorPayload("no", 14))
    assert calls == [("on_error", ErrorPayload("no", 14))]


def test_callback_that_raises_is_logged_and_the_next_is_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    texts: list[str] = []

    def fail(text: str) -> None:
        texts.append(text)
        raise RuntimeError("mine")

    caller = CallbackRunner(Callbacks(on_delta=fail))
    with caplog.at_level(logging.ERROR, "arp.client"):
        caller.handle(event(say.delta("a", 1)))
        caller.handle(event(say.delta("b", 2)))
    assert texts == ["a", "b"]
    assert caplog.text.count("RuntimeError: mine") == 2


def test_no_callback_is_needed() -> None:
    caller = CallbackRunner(Callbacks())
    for plain in say.STORY:
        caller.handle(event(plain))
