"""What an agent asks its user is a question on the screens, and its answer reaches the agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arp import App, connect
from arp.client.client import ArpClient
from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import RendererCapabilities
from arp.protocol.validate import check_component
from arp.runtime.contract import types as ari
from arp.runtime.contract.user_questions import (
    is_user_question,
    question_mark,
    questions_of,
    single_question,
)
from arp.runtime.programs.claude.claude_code import ClaudeCodeRuntime
from arp.runtime.programs.codex.codex import CodexRuntime
from arp.testing import Says, Step, Uses
from arp.turn.question_outcome import DECLINED
from tests.runtime.clis import Cli
from tests.runtime.model_server import ModelServer
from tests.runtime.test_agent import asked, shown, until
from tests.support.serving import serving

QUESTION = ari.PermissionKind.QUESTION
COLOR: JsonObject = {
    "question": "Which color?",
    "header": "Color",
    "options": [
        {"label": "Red", "description": "as a rose"},
        {"label": "Blue", "description": "as the sea"},
    ],
    "multiSelect": False,
}
SIZES: JsonObject = {
    "question": "Which sizes?",
    "header": "Size",
    "options": [{"label": "S", "description": ""}, {"label": "M", "description": ""}],
    "multiSelect": True,
}
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "maxLength": 20},
        "born": {"type": "string", "format": "date"},
        "count": {"type": "integer", "minimum": 1},
        "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]},
        "tags": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
        "a:b": {"type": "boolean", "default": True},
    },
    "required": ["name"],
}


def open_questions(client: ArpClient) -> list[Component]:
    """Return what is asked now and is no permission."""
    permissions = asked(client)
    return [
        one
        for turn in client.screen.turns
        for one in client.screen.output(turn)
        if one.props.get("state") == "open" and one.id not in permissions
    ]


async def question(client: ArpClient, component_type: str) -> Component:
    """Return the question that is asked, as soon as it is of a type."""
    found: list[Component] = await until(
        client, lambda: [one for one in open_questions(client) if one.type == component_type]
    )
    return found[0]


def words(client: ArpClient, turn_id: str) -> str:
    """Return all that a turn shows in a renderer of text."""
    return "\n".join(str(one.props.get("content")) for one in client.screen.output(turn_id))


def asking(tool_input: JsonObject) -> dict[str, list[Step]]:
    return {"go": [Uses("ask", tool_input, "heard", asks=True, kind=QUESTION), Says("Done.")]}


async def test_question_is_shown_with_its_options_and_answered(tmp_path: Path) -> None:
    given = {"questions": [COLOR, SIZES]}
    async with shown(asking(given), tmp_path) as (client, fake, _):
        await client.send_text("go")
        color = await question(client, "choices")
        assert (color.props["title"], color.props["multi_select"]) == ("Which color?", False)
        assert color.props["options"][0]["description"] == "as a rose"
        labels = [one if isinstance(one, str) else one["label"] for one in color.props["options"]]
        assert labels == ["Red", "Blue", "Something else…", "Do not answer"]
        await client.send_selection(["Blue"], source=color.id)
        sizes = await until(
            client, lambda: [one for one in open_questions(client) if one.id != color.id]
        )
        assert sizes[0].props["multi_select"] is True
        await client.send_selection(["S", "Something else…"], source=sizes[0].id)
        own = await question(client, "text-input")
        await client.send_text("XXL", source=own.id)
        turn = await client.turn_done()
        assert fake.ran == [
            ("ask", {**given, "answers": {"Which color?": "Blue", "Which sizes?": ["S", "XXL"]}})
        ]
        assert turn.permissions == {}
        assert client.screen.text(turn.id) == "Done."


async def test_question_is_answered_in_plain_text(tmp_path: Path) -> None:
    plain = RendererCapabilities(["text"])
    async with shown(asking({"questions": [COLOR]}), tmp_path) as (client, fake, server):
        async with connect(server.http, session_id="s", capabilities=plain) as reader:
            await client.send_text("go")
            await until(reader, lambda: [t for t in reader.screen.turns if words(reader, t)])
            (turn_id,) = reader.screen.turns
            asked_as = words(reader, turn_id)
            assert asked_as.startswith(
                "Which color?\n1. Red: as a rose\n2. Blue: as the sea\n3. Something else…\n"
                "4. Do not answer\n"
            )
            await reader.send_text("3")
            await until(reader, lambda: words(reader, turn_id).count("Which color?") == 2)
            await reader.send_text("a dark green")
            await client.turn_done()
        assert fake.ran[0][1]["answers"] == {"Which color?": "a dark green"}


async def test_question_that_is_declined_is_a_denial(tmp_path: Path) -> None:
    async with shown(asking({"questions": [COLOR]}), tmp_path) as (client, fake, _):
        await client.send_text("go")
        choices = await question(client, "choices")
        await client.send_selection(["Do not answer"], source=choices.id)
        turn = await client.turn_done()
        assert turn.tools[0].error == "denied: The user does not answer this question."
        assert fake.ran == []


async def test_question_closes_with_a_cancel(tmp_path: Path) -> None:
    async with shown(asking({"questions": [COLOR]}), tmp_path) as (client, fake, _):
        await client.send_text("go")
        await question(client, "choices")
        await client.cancel()
        assert (await client.turn_done()).status == "cancelled"
        assert open_questions(client) == []
        assert fake.ran == []


async def test_form_of_a_schema_is_filled_in(tmp_path: Path) -> None:
    given = {"message": "Who are you?", "schema": SCHEMA}
    async with shown(asking(given), tmp_path) as (client, fake, _):
        await client.send_text("go")
        form = await question(client, "form")
        assert (form.props["title"], form.props["can_decline"]) == ("Who are you?", True)
        assert [field["name"] for field in form.props["fields"]] == [
            "name", "born", "count", "size", "tags.1", "field 6",
        ]  # fmt: skip
        fields = {"name": "Ada", "count": 1.5, "size": "m", "tags.1": True, "field 6": False}
        await client.send_form(fields, source=form.id)  # refused: the form stays open
        await client.send_form({**fields, "count": 3.0}, source=form.id)
        await client.turn_done()
        filled = {"name": "Ada", "count": 3, "size": "m", "tags": ["a"], "a:b": False}
        assert fake.ran == [("ask", filled)]


async def test_form_that_is_declined_is_a_denial(tmp_path: Path) -> None:
    given = {"message": "Who are you?", "schema": SCHEMA}
    async with shown(asking(given), tmp_path) as (client, fake, _):
        await client.send_text("go")
        form = await question(client, "form")
        await client.send_action("decline", source=form.id)
        turn = await client.turn_done()
        assert turn.tools[0].error == "denied: The user does not answer this question."
        assert fake.ran == []


async def test_schema_without_properties_is_a_yes_or_no_question(tmp_path: Path) -> None:
    given = {"message": "Send it?", "schema": {"type": "object", "properties": {}}}
    async with shown(asking(given), tmp_path) as (client, fake, _):
        ends: list[tuple[str, list[Any]]] = [("deny", []), ("confirm", [("ask", {})])]
        for action, ran in ends:
            await client.send_text("go")
            confirm = await question(client, "confirm")
            await client.send_action(action, source=confirm.id)
            await client.turn_done()
            assert fake.ran == ran


async def test_question_without_options_is_asked_once(tmp_path: Path) -> None:
    """The words are asked for at once, and can be declined there; a secret is not shown."""
    plain, secret = {"question": "Why?"}, {"question": "Password?", "isSecret": True}
    given = {"questions": [plain, secret]}
    async with shown(asking(given), tmp_path) as (client, fake, _):
        await client.send_text("go")
        why = await question(client, "text-input")
        await client.send_text("Because.", source=why.id)
        form = await question(client, "form")
        await client.send_form({"answer": "hush"}, source=form.id)
        await client.turn_done()
        assert fake.ran[0][1]["answers"] == {"Why?": "Because.", "Password?": "hush"}
        await client.send_text("go")
        why = await question(client, "text-input")
        await client.send_action("decline", source=why.id)
        await client.turn_done()
        assert len(fake.ran) == 1


async def test_question_of_an_unknown_shape_is_a_permission(tmp_path: Path) -> None:
    async with shown(asking({"what": "to do"}), tmp_path) as (client, fake, _):
        await client.send_text("go")
        (component,) = await until(client, lambda: asked(client))
        await client.send_action("confirm", source=component)
        await client.turn_done()
        assert fake.ran == [("ask", {"what": "to do"})]


async def test_answer_after_a_restart_is_told_to_the_agent(tmp_path: Path) -> None:
    script = asking({"questions": [COLOR]})
    async with shown(script, tmp_path) as (client, fake, _):
        await client.ask("hello")
        await client.send_text("go")
        await question(client, "choices")
    async with shown(script, tmp_path) as (client, again, _):
        choices = await question(client, "choices")
        sent = await client.send_selection(["Blue"], source=choices.id)
        await client.turn_done(await client.turn_of(sent))
        message = [one for name, one in again.called if name == "send_message"][-1]
        assert isinstance(message, ari.SendMessageRequest)
        told = "Your work was interrupted. The user answers: Blue"
        assert message.message.content == told
        assert fake.ran == again.ran == []


async def test_claude_code_is_told_the_answers(
    claude_cli: Cli, model_server: ModelServer, tmp_path: Path
) -> None:
    app = App(ledger=f"sqlite:{tmp_path}/ledger.db")
    session = ari.CreateSessionRequest(model="fake-1")
    runtime = ClaudeCodeRuntime(cwd=claude_cli.cwd, environment=claude_cli.environment)
    app.runtime(runtime, session=session)
    with serving(app) as server:
        async with connect(server.http, session_id="s") as client:
            asks = f"tool: AskUserQuestion {json.dumps({'questions': [COLOR, SIZES]})}"
            await client.send_text(asks)
            color = await question(client, "choices")
            await client.send_selection(["Something else…"], source=color.id)
            own = await question(client, "text-input")
            await client.send_text("a dark green", source=own.id)
            sizes = await until(
                client, lambda: [one for one in open_questions(client) if one.type == "choices"]
            )
            await client.send_selection(["S", "M"], source=sizes[0].id)
            assert (await client.turn_done()).status == "completed"
            told = model_server.last_tool_result() or ""
            assert '"Which color?"="a dark green"' in told
            assert '"Which sizes?"="S, M"' in told

            await client.send_text(asks)
            again = await question(client, "choices")
            await client.send_selection(["Do not answer"], source=again.id)
            await client.turn_done()
            assert "does not answer this question" in (model_server.last_tool_result() or "")


async def test_codex_is_told_the_answers(
    codex_cli: Cli, model_server: ModelServer, tmp_path: Path
) -> None:
    config = codex_cli.home / ".codex" / "config.toml"
    features = "[features]\ndefault_mode_request_user_input = true\n"
    config.write_text(config.read_text().replace("[features]\n", features))
    app = App(ledger=f"sqlite:{tmp_path}/ledger.db")
    app.runtime(
        CodexRuntime(
            environment=codex_cli.environment, cwd=codex_cli.cwd, program=codex_cli.program
        )
    )
    with serving(app) as server:
        async with connect(server.http, session_id="s") as client:
            one = {"id": "c", **{name: COLOR[name] for name in ("question", "header", "options")}}
            await client.send_text(f"tool: request_user_input {json.dumps({'questions': [one]})}")
            color = await question(client, "choices")
            await client.send_selection(["Red"], source=color.id)
            assert (await client.turn_done()).status == "completed"
            assert model_server.last_tool_result() == '{"answers":{"c":{"answers":["Red"]}}}'


@pytest.mark.parametrize(
    "tool_input",
    [
        {},
        {"questions": []},
        {"questions": ["Which?"]},
        {"questions": [{"question": ""}]},
        {"questions": [{"question": "Same?"}, {"question": "Same?"}]},
        {"questions": [{"question": str(number)} for number in range(21)]},
        {"schema": {"properties": {"a": {"type": "object"}}}},
        {"schema": {"properties": {"a": 3}}},
        {"schema": {"type": "integer"}},
        {"schema": 3},
    ],
)
def test_what_no_question_can_show_is_none(tool_input: Any) -> None:
    assert not is_user_question(tool_input)


def test_options_that_would_be_mixed_up_are_left_out() -> None:
    options = ["A", {"label": "A"}, {"label": "Do not answer"}, 3, {"label": ""}, None]
    (one,) = questions_of({"questions": [{"question": "Which?", "id": "q", "options": options}]})
    assert (one.key, one.options) == ("q", (("A", ""), ("3", "")))


def test_options_that_share_a_label_are_told_apart_by_what_they_mean() -> None:
    options = [
        {"label": "Zurich", "description": "the main office"},
        {"label": "Zurich", "description": "the airport"},
        {"label": "Zurich"},
    ]
    (one,) = questions_of({"questions": [{"question": "Which?", "options": options}]})
    assert [label for label, _ in one.options] == [
        "Zurich (the main office)",
        "Zurich (the airport)",
        "Zurich",
    ]


def test_question_that_is_too_long_is_shortened() -> None:
    text = "Why? " * 1000
    (one,) = questions_of({"questions": [{"question": text}]})
    assert (one.key, len(one.text), one.text[-1]) == (text, 2000, "…")


# -- one thing at a time -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool_input", "type_name", "given", "answer"),
    [
        ({"question": "Name?"}, "text-input", "Ann", "Ann"),
        ({"question": "Which?", "options": ["a", "b"]}, "choices", "b", "b"),
        ({"question": "Sure?", "schema": {"type": "boolean"}}, "confirm", True, True),
        ({"question": "Name?", "schema": {"type": "string", "title": "N"}}, "text-input", "A", "A"),
        ({"question": "Which?", "options": [1, {"label": "b", "x": 1}]}, "choices", 1, 1),
        (
            {"question": "How many?", "schema": {"properties": {"n": {"type": "integer"}}}},
            "form",
            {"n": 3.0},
            {"n": 3},
        ),
        ({"question": "How many?", "schema": {"type": "integer"}}, "form", {"value": 3.0}, 3),
        ({"question": "What?", "schema": {"type": "object"}}, "text-input", "x", "x"),
        ({"question": "Go?", "schema": {"properties": {}}}, "confirm", True, {}),
        ({"question": "Go?", "schema": {"properties": {}}}, "confirm", False, DECLINED),
        (
            {"component": {"type": "text-input", "props": {"label": "Word?"}}},
            "text-input",
            "yes",
            "yes",
        ),
    ],
)
def test_one_question_is_one_component(
    tool_input: JsonObject, type_name: str, given: Json, answer: Json
) -> None:
    asked = single_question(tool_input, "call-1", "t1")
    assert asked is not None
    assert check_component(asked.component, "asked").type == type_name
    assert asked.answer(given) == answer


def test_the_id_of_a_question_is_known_again_in_another_turn() -> None:
    first, second = (
        single_question({"question": "Name?"}, "call-1", turn) for turn in ("t1", "t2")
    )
    other = single_question({"question": "Name?"}, "call-2", "t1")
    assert first is not None
    assert second is not None
    assert other is not None
    assert first.component.id != second.component.id
    assert {first.component.id[:25], second.component.id[:25]} == {question_mark("call-1")}
    assert not other.component.id.startswith(question_mark("call-1"))


def test_what_belongs_to_a_question_is_kept_and_another_shape_is_none() -> None:
    asked = single_question({"question": "Send?", "letter": "Dear"}, "c", "t")
    assert asked is not None
    assert asked.about == {"letter": "Dear"}
    assert single_question({"command": "ls"}, "c", "t") is None
