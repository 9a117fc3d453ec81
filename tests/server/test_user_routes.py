"""A greeting, settings of a session, and feedback on answers."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest
from click.testing import CliRunner

from arp import App, SyncTurn, Turn
from arp.cli import main
from arp.testing import serve, session
from arp.turn.feedback import Feedback
from tests.support.waiting import becomes


@dataclasses.dataclass
class Settings:
    model: Literal["small", "large"] = "small"
    warmth: int = 1


class Model(pydantic.BaseModel):
    model: Literal["small", "large"] = "small"
    warmth: int = pydantic.Field(1, ge=0, le=10)


def app_with(kind: Any = Settings, **more: Any) -> App:
    app = App("Rated", session_settings=kind, **more)

    @app.agent
    async def agent(turn: Turn) -> str:
        if turn.text == "warmer":
            turn.update_settings(warmth=5)
        return f"{turn.settings.model} {turn.settings.warmth}"

    return app


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Settings, Model])
async def test_settings_have_defaults_are_changed_by_a_form_and_reach_the_agent(kind: Any) -> None:
    async with serve(app_with(kind)) as served, served.session() as user:
        assert (await user.say("go")).text == "small 1"
        path = f"/_api/settings/{user.session_id}"
        async with served.http() as http:
            form = (await http.get(path)).json()
            assert [one["name"] for one in form["props"]["fields"]] == ["model", "warmth"]
            done = await http.put(path, json={"fields": {"model": "large", "warmth": 2}})
            assert done.json() == {"model": "large", "warmth": 2}
            form = (await http.get(path)).json()
            assert [one.get("value") for one in form["props"]["fields"]] == ["large", 2]
            wrong = await http.put(path, json={"fields": {"model": "huge", "warmth": 2}})
            assert wrong.status_code == 400
            assert "fields.model" in wrong.text
        assert (await user.say("go")).text == "large 2"
        assert (await user.say("warmer")).text == "large 5"


@dataclasses.dataclass
class Choices:
    model: Literal["small", "large"] = "small"
    tone: Literal["kind", "short"] | None = "kind"
    limit: int | None = 5


async def test_choice_with_a_default_has_no_empty_one_and_none_stays_none() -> None:
    async with serve(app_with_choices()) as served, served.session() as user:
        path = f"/_api/settings/{user.session_id}"
        async with served.http() as http:
            shown = (await http.get(path)).json()["props"]["fields"]
            assert [one.get("required", False) for one in shown] == [True, False, False]
            emptied = {"model": "large", "tone": None, "limit": ""}
            done = await http.put(path, json={"fields": emptied})
            assert done.json() == {"model": "large", "tone": None, "limit": None}
            shown = (await http.get(path)).json()["props"]["fields"]
            assert [one.get("value") for one in shown] == ["large", None, None]
            wrong = await http.put(path, json={"fields": {"model": ""}})
            assert (wrong.status_code, "fields.model: missing" in wrong.text) == (400, True)
        assert (await user.say("go")).text == "large None None"


async def test_fields_that_a_change_leaves_out_stay() -> None:
    async with serve(app_with_choices()) as served, served.session() as user:
        path = f"/_api/settings/{user.session_id}"
        async with served.http() as http:
            await http.put(path, json={"fields": {"model": "large", "limit": 7}})
            done = await http.put(path, json={"fields": {"tone": "short"}})
            assert done.json() == {"model": "large", "tone": "short", "limit": 7}


def app_with_choices() -> App:
    app = App(session_settings=Choices)

    @app.agent
    async def agent(turn: Turn) -> str:
        chosen: Choices = turn.settings
        return f"{chosen.model} {chosen.tone} {chosen.limit}"

    return app


async def test_command_changes_them_on_any_renderer() -> None:
    async with session(app_with()) as user:
        turn = await user.say("/settings")
        assert turn.question is not None
        turn = await turn.answer({"model": "large", "warmth": 3})
        assert turn.component("status-card").props["title"] == "Settings saved"
        assert (await user.say("go")).text == "large 3"


async def test_they_are_durable_and_belong_to_one_session(tmp_path: Path) -> None:
    ledger = f"sqlite:{tmp_path}/x.db"
    async with serve(app_with(), ledger=ledger) as served:
        async with served.session(session_id="one") as user:
            await user.say("warmer")
        async with served.session(session_id="two") as other:
            assert (await other.say("go")).text == "small 1"
    async with session(app_with(), ledger=ledger, session_id="one") as user:
        assert (await user.say("go")).text == "small 5"


async def test_settings_that_do_not_fit_the_type_any_more_are_logged_and_the_defaults_apply(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @dataclasses.dataclass
    class Newer:
        model: Literal["tiny"] = "tiny"
        warmth: int = 0

    ledger = f"sqlite:{tmp_path}/x.db"
    async with session(app_with(), ledger=ledger, session_id="one") as user:
        await user.say("warmer")
    async with session(app_with(Newer), ledger=ledger, session_id="one") as user:
        assert (await user.say("go")).text == "tiny 0"
    assert "do not fit any more" in caplog.text


async def test_app_without_settings_says_so() -> None:
    app = App()

    @app.agent
    async def agent(turn: Turn) -> str:
        with pytest.raises(RuntimeError, match=r"write App\(session_settings=…\)"):
            _ = turn.settings
        return "fine"

    async with serve(app) as served, served.session() as user:
        assert (await user.say("go")).text == "fine"
        async with served.http() as http:
            assert (await http.get(f"/_api/settings/{user.session_id}")).status_code == 404


@dataclasses.dataclass
class Unset:
    key: str


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Unset, r"session_settings: Unset\(\) fails .*; give each field a default"),
        (Settings(), "session_settings: expected a type, got Settings"),
    ],
)
def test_type_that_cannot_be_set_is_refused_where_it_is_written(kind: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        App(session_settings=kind)


async def test_wrong_change_is_refused_at_the_line_of_the_author() -> None:
    app = App(session_settings=Settings)
    told: list[str] = []

    @app.agent
    async def agent(turn: Turn) -> None:
        for change in ({"modle": "large"}, {"warmth": "hot"}):
            try:
                turn.update_settings(**change)
            except (TypeError, ValueError, Exception) as error:  # noqa: BLE001 - asked below
                told.append(str(error))

    async with session(app) as user:
        await user.say("go")
    assert told[0] == "settings: no field modle; there are: model, warmth"
    assert told[1].startswith("settings: ")


# -- the start of a session ------------------------------------------------------------------------


async def test_greeting_is_the_first_turn_and_nobody_has_said_anything() -> None:
    app = App()

    @app.on_session_start
    async def greet(turn: Turn) -> str:
        return f"Hello {turn.user.name}!"

    @app.agent
    async def agent(turn: Turn) -> str:
        return str([(one.role, one.text) for one in turn.messages()])

    async with session(app, user="ann") as user:
        turn = await user.say("go")
        assert turn.text == "[('assistant', 'Hello ann!')]"
        assert turn.id == "t2"


async def test_greeting_may_be_a_plain_function_and_comes_once(tmp_path: Path) -> None:
    app, ledger = App(), f"sqlite:{tmp_path}/x.db"

    @app.on_session_start
    def greet(turn: SyncTurn) -> None:
        turn.say("Hello!")

    @app.agent
    async def agent(turn: Turn) -> str:
        return turn.id

    for expected in ("t2", "t3"):
        async with session(app, ledger=ledger, session_id="one") as user:
            assert (await user.say("go")).text == expected


def test_two_greetings_are_refused() -> None:
    app = App()

    async def greet(turn: Turn) -> None: ...

    app.on_session_start(greet)
    with pytest.raises(ValueError, match="on_session_start: there is a function already"):
        app.on_session_start(greet)


# -- authors ---------------------------------------------------------------------------------------


async def test_agent_that_speaks_again_after_others_is_called_by_its_title() -> None:
    app = App("Front Desk")
    seen: list[str] = []

    @app.agent
    async def agent(turn: Turn) -> None:
        seen.extend(one.author for one in turn.messages() if one.role == "assistant")
        await turn.say("42.", author="Research")
        await turn.say("So it is 42.", author="")

    async with session(app) as user:
        await user.say("go")
        await user.say("again")
    assert seen == ["Research", "Front Desk"]


# -- feedback --------------------------------------------------------------------------------------


async def exported(*arguments: str) -> Any:
    """Run `arp feedback`, which has a loop of its own."""
    return await asyncio.to_thread(CliRunner().invoke, main, ["feedback", *arguments])


async def test_feedback_is_durable_reaches_the_app_and_is_exported(tmp_path: Path) -> None:
    ledger = f"sqlite:{tmp_path}/x.db"
    app = app_with()
    heard: list[Any] = []

    @app.on_feedback
    async def rated(feedback: Feedback) -> None:
        heard.append(feedback)

    @app.on_feedback
    def plainly(feedback: Feedback) -> None:
        heard.append(feedback.rating)

    async with serve(app, ledger=ledger) as served, served.session(session_id="one") as user:
        await user.say("go")
        await user.say("go")
        async with served.http() as http:
            path = "/_api/feedback/one"
            given = {"turn_id": "t1", "rating": "down", "comment": " Too short, really "}
            done = await http.post(path, json=given)
            assert done.json() == {"rating": "down", "comment": "Too short, really"}
            await becomes(lambda: len(heard) == 2)
            for rating in ("up", "none"):
                await http.post(path, json={"turn_id": "t2", "rating": rating})
            kept = {"t1": {"rating": "down", "comment": "Too short, really"}}
            assert (await http.get(path)).json() == kept
            await becomes(lambda: len(heard) == 6)
    (told,) = [one for one in heard[:2] if isinstance(one, Feedback)]
    assert (told.turn_id, told.comment) == ("t1", "Too short, really")
    assert (told.question, told.answer) == ("go", "small 1")
    run = await exported("--ledger", ledger, "--csv")
    header, line, *rest = run.output.splitlines()
    assert (header, rest) == ("at,session,turn,rating,comment", [])
    assert line.endswith(',one,t1,down,"Too short, really"')
    run = await exported("one", "--ledger", ledger)
    assert run.output.endswith(" one t1 down Too short, really\n")
    async with serve(app_with(), ledger=ledger) as served, served.http() as http:
        assert (await http.get("/_api/feedback/one")).json() == kept


async def test_rating_replaces_the_one_before_together_with_its_comment() -> None:
    async with serve(app_with()) as served, served.session(session_id="one") as user:
        await user.say("go")
        async with served.http() as http:
            for given, kept in (
                ({"rating": "down", "comment": "short"}, {"rating": "down", "comment": "short"}),
                ({"rating": "down", "comment": "late"}, {"rating": "down", "comment": "late"}),
                ({"rating": "up", "comment": "late"}, {"rating": "up", "comment": "late"}),
                ({"rating": "up", "comment": " "}, {"rating": "up"}),
            ):
                await http.post("/_api/feedback/one", json={"turn_id": "t1", **given})
                assert (await http.get("/_api/feedback/one")).json() == {"t1": kept}


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"turn_id": "t9", "rating": "up"}, 404),
        ({"turn_id": "t1", "rating": "great"}, 400),
        ({"turn_id": "t1", "rating": "up", "comment": "x" * 2_001}, 400),
        ({"rating": "up"}, 400),
        ([], 400),
    ],
)
async def test_wrong_feedback_is_refused(given: Any, status: int) -> None:
    async with serve(app_with()) as served, served.session(session_id="one") as user:
        await user.say("go")
        async with served.http() as http:
            assert (await http.post("/_api/feedback/one", json=given)).status_code == status
            assert (await http.post("/_api/feedback/two", json=given)).status_code in (400, 404)


async def test_hook_that_fails_is_in_the_log_and_the_rating_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = app_with()

    @app.on_feedback
    async def rated(feedback: Feedback) -> None:
        raise ConnectionError("no desk")

    async with serve(app) as served, served.session(session_id="one") as user:
        await user.say("go")
        async with served.http() as http:
            await http.post("/_api/feedback/one", json={"turn_id": "t1", "rating": "up"})
            await becomes(lambda: "on_feedback failed for turn t1" in caplog.text)
            assert (await http.get("/_api/feedback/one")).json() == {"t1": {"rating": "up"}}


def test_what_takes_no_feedback_is_refused_where_it_is_written() -> None:
    async def forgot() -> None: ...

    wrong: Any = forgot
    with pytest.raises(TypeError, match="write: async def rated"):
        App().on_feedback(wrong)
