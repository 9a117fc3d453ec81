"""What an agent's author has in hand: saying, asking, and what the user said."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import dropwhile
from typing import Any

import pytest

from arp import Component, ToolFailed, Turn, ui
from arp.live.settings import HubSettings
from arp.protocol.errors import (
    InvalidComponent,
    SurfaceDestroyed,
)
from arp.protocol.messages import FileRef
from arp.redact.settings import Pattern, Redaction
from arp.store.errors import BlobNotFound
from tests.hub.rig import FEATURES, HeldStore, Renderer, played, running


async def test_text_and_components_keep_their_order() -> None:
    """protocol.md 2.1: a delta after a component opens a new text part behind it."""

    async def agent(turn: Turn) -> None:
        await turn.say("a")
        await turn.say("b")
        turn.show(ui.text("x", id="x"))
        await turn.say("c")
        turn.show(ui.text("y", id="y"))
        turn.show(ui.text("z", id="z"))
        await turn.say("d")

    renderer = await played(agent)
    assert [part.id for part in renderer.screen.output("t1")] == [
        "t1/1",
        "x",
        "t1/2",
        "y",
        "z",
        "t1/3",
    ]
    assert renderer.screen.text("t1") == "abcd"


async def test_neighbouring_text_of_one_kind_is_one_fact() -> None:
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        for words in ("a", "b"):
            await turn.say(words)
        for words in ("h", "m"):
            turn.think(words)
        await turn.say("c")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub, features=[*FEATURES, "thinking"]).join()
        await renderer.say("go")
        await renderer.ended("t1")
        facts = [
            (one.type, one.payload["text"]) for one in await store.facts() if "text" in one.payload
        ]
    assert facts == [("model.delta", "ab"), ("reasoning.delta", "hm"), ("model.delta", "c")]
    assert renderer.screen.text("t1") == "abc"
    assert renderer.screen.turns["t1"].thinking == "hm"


async def test_text_and_other_facts_of_a_turn_keep_their_order() -> None:
    """Also where nothing is awaited between them, and where a tool fails."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        await turn.say("a")
        async with turn.tool("count") as tool:
            await turn.say("b")
            tool.progress("half")
            await turn.say("c")
        await turn.say("d")
        turn.record("runtime.warning", {"message": "n"})
        await turn.say("e")
        await turn.save_file("f.txt", b"f")
        async with turn.frame():
            turn.show(ui.text("x"))
            turn.think("h")
        with suppress(ToolFailed):
            async with turn.tool("break") as tool:
                await turn.say("i")
                tool.fail("it broke")
        await turn.say("j")
        raise ToolFailed("so it ends")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        after = dropwhile(lambda one: one.type != "model.delta", await store.facts())
    order = [one.payload.get("text", one.type) for one in after]
    assert order == [
        *("a", "tool.started", "tool.args", "b", "half", "c", "tool.result"),
        *("d", "runtime.warning", "e", "output.spilled", "h", "artifact.changed"),
        *("tool.started", "tool.args", "i", "tool.failed", "j"),
        *("runtime.error", "turn.failed"),
    ]


@pytest.mark.parametrize("text", ["\ud83d", "a\ud800b", "\ud83d\ude00"])
async def test_half_characters_of_a_model_are_shown_as_such(text: str) -> None:
    """Models stream surrogates one by one; what cannot be encoded must not stop the ledger."""

    async def agent(turn: Turn) -> None:
        await turn.say(text)
        turn.think(text)
        await turn.say(".")

    renderer = await played(agent, features=[*FEATURES, "thinking"])
    expected = {"\ud83d": "�.", "a\ud800b": "a�b.", "\ud83d\ude00": "😀."}[text]
    assert renderer.screen.text("t1") == expected
    assert renderer.screen.turns["t1"].thinking == expected[:-1]


@pytest.mark.parametrize("text", [b"bytes", 3, ["list"]])
async def test_saying_what_is_no_text_is_the_authors_mistake(text: Any) -> None:
    """It raises at the author's line, and the ledger never sees it."""
    errors: list[str] = []

    async def agent(turn: Turn) -> None:
        for say in (turn.say, turn.think):
            try:
                done = say(text)
                if done is not None:
                    await done
            except TypeError as error:
                errors.append(str(error))
        await turn.say("fine")

    renderer = await played(agent)
    assert len(errors) == 2
    assert all("expected str" in error for error in errors)
    assert renderer.box.said() == "fine"


async def test_empty_text_is_nothing() -> None:
    """It makes no fact."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        await turn.say("")
        turn.think("")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        facts = await store.facts()
    assert {"model.delta", "reasoning.delta"}.isdisjoint(fact.type for fact in facts)


async def test_texts_and_lists_are_shown_as_components_are() -> None:
    """What an author writes in the first hour."""

    async def agent(turn: Turn) -> None:
        turn.show("a", [ui.text("b", id="b"), "c"], (one for one in ("d",)))
        turn.show([])
        async with turn.frame():
            await turn.say(Odd("e"))

    renderer = await played(agent)
    shown = [(part.id, part.props["content"]) for part in renderer.screen.output("t1")]
    assert shown == [("t1-1", "a"), ("b", "b"), ("t1-2", "c"), ("t1-3", "d"), ("t1-4", "e")]


class Odd(str):
    """As frameworks have it."""


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda turn: turn.show({"type": "text"}), "turn.show: expected a component, got dict"),
        (lambda turn: turn.show([["x"]]), "turn.show: expected a component, got list"),
        (lambda turn: turn.insert(3), "turn.insert: expected a component, got int"),
        (lambda turn: turn.replace("x", None), "turn.replace: expected a component, got NoneType"),
        (lambda turn: turn.show(Component("", "group", {"children": 3})), "children of 'group'"),
        (lambda turn: turn.show(ui.text("x"), surface=""), "surface: expected a name"),
        (lambda turn: turn.file_url("x"), "ref: expected FileRef, got str"),
    ],
)
async def test_mistake_is_told_at_the_line_of_the_author(
    call: Callable[[Turn], object], says: str
) -> None:
    errors: list[str] = []

    async def agent(turn: Turn) -> None:
        try:
            call(turn)
        except (TypeError, ValueError, InvalidComponent) as error:
            errors.append(str(error))
        await turn.say("fine")

    renderer = await played(agent)
    assert len(errors) == 1
    assert says in errors[0]
    assert renderer.screen.text("t1") == "fine"


async def test_question_that_is_no_component_and_tool_without_a_name_are_refused() -> None:
    async def agent(turn: Turn) -> None:
        asked: Any = "Sure?"
        with pytest.raises(InvalidComponent, match=r"turn\.ask: expected a question, got a text"):
            await turn.ask(asked)
        with pytest.raises(ValueError, match="name: expected a name"):
            async with turn.tool(""):
                pass
        await turn.say("fine")

    assert (await played(agent)).screen.text("t1") == "fine"


async def test_agent_that_says_much_waits_for_the_ledger() -> None:
    """architecture.md, invariant 5: memory is bounded by what one write takes."""
    store = HeldStore()
    said: list[int] = []

    async def agent(turn: Turn) -> None:
        store.hold()
        for number in range(100):
            await turn.say("x" * 1024)
            said.append(number)

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await store.waiting.wait()
        for _ in range(200):
            await asyncio.sleep(0)
        held = len(said)
        store.release()
        await renderer.ended("t1")
    assert 16 <= held <= 40
    assert len(said) == 100
    assert renderer.box.said() == "x" * 1024 * 100


async def test_history_gives_what_was_said_before_oldest_first() -> None:
    """Earlier turns only, the newest of them."""
    histories: list[list[tuple[str, str]]] = []

    async def agent(turn: Turn) -> None:
        histories.append(turn.history())
        if turn.text == "three":
            histories.append(turn.history(limit=3))
            histories.append(turn.history(limit=0))
        await turn.say(f"re {turn.text}")

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        for number, text in enumerate(["one", "two", "three"], 1):
            await renderer.say(text)
            await renderer.ended(f"t{number}")
    whole = [("user", "one"), ("assistant", "re one"), ("user", "two"), ("assistant", "re two")]
    assert histories == [[], whole[:2], whole, whole[1:], []]


async def test_display_as_tells_how_each_renderer_shows_a_component() -> None:
    """protocol.md 2.2: agents can ask how a component is shown on each renderer."""
    told: list[dict[str, str]] = []

    async def agent(turn: Turn) -> None:
        turn.show(ui.chart("bar", labels=["a"], datasets=[ui.dataset("S", [1])], id="chart"))
        told.append(turn.shown_as("chart"))
        told.append(turn.shown_as("nobody"))
        told.append(turn.shown_as("chart", surface="nowhere"))

    async with running(agent) as hub:
        whole = await Renderer(hub).join()
        tables = await Renderer(hub, components=["text", "table"]).join()
        texts = await Renderer(hub, components=["text"]).join()
        await whole.say("go")
        await whole.ended("t1")
    names = [renderer.viewer.id for renderer in (whole, tables, texts)]
    assert [told[0][name] for name in names] == ["native", "table", "text"]
    assert told[1:] == [{}, {}]


@pytest.mark.parametrize(
    ("input_type", "data", "text"),
    [
        ("text", {"text": "hello"}, "hello"),
        ("voice", {"transcript": "spoken", "confidence": 0.9, "language": "en"}, "spoken"),
        ("navigate", {"route": "/home"}, ""),
        ("action", {"action": "refresh"}, ""),
        ("gesture", {"gesture": "swipe", "meta": {}}, ""),
    ],
)
async def test_turn_tells_what_the_user_did(input_type: str, data: Any, text: str) -> None:
    """`turn.text` is what the user said, `turn.input` all of it."""
    seen: list[Any] = []

    async def agent(turn: Turn) -> None:
        seen.append((turn.text, turn.input.input_type, turn.input.data, turn.input.surface))
        seen.append((turn.id, turn.session_id, turn.files))

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.send(input_type, data)
        await renderer.ended("t1")
    assert seen == [(text, input_type, data, "main"), ("t1", "s", [])]


async def test_file_that_does_not_exist_cannot_be_read() -> None:
    """The reference is data from the wire; it opens nothing by itself."""
    errors: list[type[Exception]] = []

    async def agent(turn: Turn) -> None:
        for name in ("../../etc/passwd", "0" * 64, ""):
            try:
                await turn.read_file(FileRef(name, "x", 1, "text/plain", name))
            except BlobNotFound as error:
                errors.append(type(error))

    await played(agent)
    assert errors == [BlobNotFound] * 3


@pytest.mark.parametrize(
    ("component", "answer", "value"),
    [
        (ui.confirm("Sure?", id="q"), ("action", {"action": "confirm"}), True),
        (ui.confirm("Sure?", id="q"), ("action", {"action": "deny"}), False),
        (ui.choices(["a", "b"], id="q"), ("selection", {"selected": ["b"]}), "b"),
        (
            ui.choices(["a", "b"], multi_select=True, id="q"),
            ("selection", {"selected": ["a", "b"]}),
            ["a", "b"],
        ),
        (
            ui.form([ui.field("n", field_type="number")], id="q"),
            ("form_submit", {"fields": {"n": 3}}),
            {"n": 3},
        ),
        (ui.text_input(label="Name", id="q"), ("text", {"text": "Ada"}), "Ada"),
    ],
)
async def test_ask_gives_the_answer_in_the_form_of_its_component(
    component: Component, answer: tuple[str, Any], value: Any
) -> None:
    """Form → dict, confirm → bool, choices → value or list, text input → str."""
    answers: list[Any] = []

    async def agent(turn: Turn) -> None:
        answers.append(await turn.ask(component))

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("turn", status="waiting")
        await renderer.send(*answer, source_component="q")
        await renderer.ended("t1")
    assert answers == [value]
    shown = renderer.screen.output("t1")[0].props
    assert (shown["state"], shown["answer"]) == ("answered", value)


async def test_display_choices_start_a_turn_of_their_own_when_answered() -> None:
    """An input component that nobody awaits."""
    seen: list[Any] = []

    async def agent(turn: Turn) -> None:
        if turn.text == "go":
            turn.show(ui.choices(["a", "b"], id="pick"))
        else:
            seen.append((turn.input.input_type, turn.input.data, turn.input.source_component))

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        await renderer.send("selection", {"selected": ["a"]}, source_component="pick")
        await renderer.ended("t2")
    assert seen == [("selection", {"selected": ["a"]}, "pick")]


async def test_turn_that_is_over_can_show_nothing_more() -> None:
    """SURFACE_DESTROYED, wherever the author kept the turn."""
    kept: list[Turn] = []

    async def agent(turn: Turn) -> None:
        kept.append(turn)

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        turn = kept[0]
        with pytest.raises(SurfaceDestroyed):
            await turn.say("late")
        for late in (
            lambda: turn.show(ui.text("late")),
            lambda: turn.think("late"),
            lambda: turn.patch("x", "props.content", "late"),
        ):
            with pytest.raises(SurfaceDestroyed):
                late()
        with pytest.raises(SurfaceDestroyed):
            async with turn.tool("late"):
                pass
        with pytest.raises(SurfaceDestroyed):
            await turn.confirm("late?")
    assert renderer.box.said() == ""


async def test_long_text_goes_out_in_messages_that_everyone_takes() -> None:
    """protocol.md 4: `max_message_bytes` is enforced on both sides."""
    text = "".join(f"{number:07d} " for number in range(100_000))

    async def agent(turn: Turn) -> None:
        await turn.say(text)

    renderer = await played(agent)
    assert renderer.screen.text("t1") == text
    assert max(map(len, renderer.box.frames)) < 64 << 10


async def test_the_agent_gets_what_was_typed_also_where_the_ledger_has_less() -> None:
    """A secret in an input is in no fact, and for no other turn; the turn itself has it."""
    token, got = "ghp_abcdefghijklmnopqrstuvwxyz0123456789", list[Any]()

    async def agent(turn: Turn) -> None:
        got.append((turn.text, turn.history()))

    store = HeldStore()
    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say(f"use {token}")
        await renderer.ended("t1")
        await renderer.say("and now?")
        await renderer.ended("t2")
        facts = await store.facts()
    assert got == [(f"use {token}", []), ("and now?", [("user", "use ghp_[redacted]")])]
    assert token[4:] not in str(facts)
    assert token[4:] not in str(renderer.box.messages)


async def test_redaction_follows_the_settings() -> None:
    async def agent(turn: Turn) -> None:
        await turn.say("my iban is acme:12345678, ghp_abcdefghijklmnopqrstuvwxyz0123456789")

    pattern = Pattern("acme", "acme:", "0-9", 8)
    for redaction, said in (
        (Redaction(patterns=(pattern,)), "my iban is acme:[redacted], ghp_[redacted]"),
        (
            Redaction(enabled=False),
            "my iban is acme:12345678, ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        ),
    ):
        async with running(agent, settings=HubSettings(redaction=redaction)) as hub:
            renderer = await Renderer(hub).join()
            await renderer.say("go")
            await renderer.ended("t1")
            assert renderer.box.said() == said


def test_the_class_names_each_thing_that_an_author_may_use_by_subject() -> None:
    """Forty-nine at most: what the hub needs of a turn stands in `TurnHost`."""
    public = {name for name in dir(Turn) if not name.startswith("_")} | {"id"}
    assert set(re.findall(r"`(\w+)`", Turn.__doc__ or "")) == public
    assert len(public) <= 49
