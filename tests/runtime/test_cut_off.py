"""What was cut off is shown as cut off: on the screen, and to the model that reads it again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from arp import App, Turn
from arp.runtime.contract import types as ari
from arp.runtime.contract.cut_off import CUT_OFF_WORDS, CutOffReason, cut_off_of, mark_of
from arp.runtime.frameworks.langgraph import LangGraphRuntime
from arp.runtime.plain.function import FunctionRuntime, FunctionTurn
from arp.runtime.remote.http_runtime import HttpRuntime
from arp.testing import session
from arp.turn.past_messages import BROKEN
from tests.runtime.frameworks_under_test import (
    FrameworkUnderTest,
    LangGraphUnderTest,
    OpenAIAgentsUnderTest,
    PydanticAIUnderTest,
)
from tests.runtime.model_script import Text
from tests.runtime.model_server import ModelServer, Request
from tests.runtime.test_http import served

LENGTH = CUT_OFF_WORDS[CutOffReason.LENGTH]
FRAMEWORKS = [PydanticAIUnderTest, OpenAIAgentsUnderTest, LangGraphUnderTest]


def texts_of(request: Request) -> list[str]:
    """Return what the model got, oldest first, without its instructions."""
    return [one.text for one in request.items if isinstance(one, Text) and one.role != "system"]


@pytest.mark.parametrize("kind", FRAMEWORKS)
async def test_an_answer_that_was_cut_off_says_so_to_people_and_to_the_model(
    kind: type[FrameworkUnderTest], tmp_path: Path, model_server: ModelServer
) -> None:
    app = App()
    app.runtime(kind(tmp_path, model_server).make())
    async with session(app) as user:
        turn = await user.say("cut: Half of it")
        assert (turn.status, turn.text) == ("completed", "Half of it")
        assert turn.component("status-card").props["message"] == LENGTH
        assert (await user.say("hello")).text == "Hello from the model."
    first, *answer, last = texts_of(model_server.requests[-1])
    assert (first, last) == ("cut: Half of it", "hello")
    assert "\n\n".join(answer) == f"Half of it\n\n{mark_of(LENGTH)}"


@pytest.mark.parametrize("kind", FRAMEWORKS)
async def test_plain_text_goes_to_the_model_as_a_string(
    kind: type[FrameworkUnderTest], tmp_path: Path, model_server: ModelServer
) -> None:
    """Not every server of models takes a list of parts."""
    app = App()
    app.runtime(kind(tmp_path, model_server).make())
    async with session(app) as user:
        await user.say("hello")
    (message,) = [one for one in model_server.requests[-1].body["input"] if one["role"] == "user"]
    assert message["content"] == "hello"


async def test_half_an_answer_of_a_failed_turn_is_marked_for_the_model() -> None:
    seen: list[Any] = []

    async def agent(turn: Turn) -> None:
        seen.append(turn.messages().as_openai())
        await turn.say("Half")
        if turn.text == "go":
            raise ValueError("no")

    app = App()
    app.agent(agent)
    async with session(app) as user:
        assert (await user.say("go")).status == "failed"
        await user.say("again")
    assert seen[-1][1] == {"role": "assistant", "content": f"Half\n\n{BROKEN}"}


async def test_a_remote_runtime_passes_on_that_an_answer_was_cut_off() -> None:
    async def reply(turn: FunctionTurn) -> None:
        turn.say("Half")
        turn.mark_cut_off(CutOffReason.LENGTH)

    runtime = FunctionRuntime(reply)
    async with served(runtime) as url:
        app = App()
        app.runtime(HttpRuntime(url))
        async with session(app) as user:
            turn = await user.say("go")
            assert (turn.status, turn.text) == ("completed", "Half")
            assert turn.component("status-card").props["message"] == LENGTH
        (stored,) = (await runtime.list_sessions(ari.ListSessionsRequest())).sessions
        request = ari.GetSessionHistoryRequest(stored.session_id)
        history = (await runtime.get_session_history(request)).messages
        assert history[-1].content == f"Half\n\n{mark_of(LENGTH)}"
        await runtime.close()


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("length", CutOffReason.LENGTH),
        ("MAX_TOKENS", CutOffReason.LENGTH),
        ("SAFETY", CutOffReason.FILTER),
        ("max_turn_requests", CutOffReason.REQUESTS),
        ("stop", None),
        (None, None),
    ],
)
def test_the_words_of_providers(reason: object, kind: CutOffReason | None) -> None:
    assert cut_off_of(reason) == kind


async def test_an_error_of_the_author_comes_with_its_traceback_in_tests() -> None:
    async def reply(turn: FunctionTurn) -> str:
        raise ValueError("no row 7")

    app = App()
    app.runtime(FunctionRuntime(reply))
    async with session(app) as user:
        turn = await user.say("go")
    assert "in reply" in turn.error
    assert turn.error.endswith("ValueError: no row 7")
    (shown,) = [one for one in turn.screen.errors if not one.debug] or turn.screen.errors
    assert "no row 7" not in shown.error


# -- LangGraph -----------------------------------------------------------------------------------


class Scripted(FakeMessagesListChatModel):
    """A model that gives these answers, whatever tools and formats it gets."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def bind(self, **_: Any) -> Any:
        return self


def mail(to: str) -> str:
    """Send a mail."""
    return f"mailed {to}"


async def test_an_approved_call_is_one_call_after_a_restart(tmp_path: Path) -> None:
    """Not one that failed because its turn ended first, and another one that is done."""
    call: Any = {"name": "mail", "args": {"to": "ann"}, "id": "call_1"}

    def app() -> App:
        answers: list[Any] = [AIMessage("", tool_calls=[call]), AIMessage("That is all.")]
        held = HumanInTheLoopMiddleware({"mail": True})
        model = Scripted(responses=answers)
        made = App()
        graph = create_agent(model, [mail], middleware=[held])
        made.runtime(LangGraphRuntime(graph, directory=tmp_path))
        return made

    async with session(app()) as user:
        turn = await user.say("go")
        assert turn.permission is not None
        await user.restart()
        turn = await turn.allow()
        assert turn.status == "completed"
        calls = [(run.tool, run.ok, run.result) for run in turn.tools if run.ok is not None]
        assert calls == [("mail", True, "mailed ann")]


class Forecast(BaseModel):
    """What the agent is to answer with."""

    city: str
    degrees: int


@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
async def test_the_response_format_of_an_agent_is_shown(
    strategy: Callable[[type[Forecast]], Any],
) -> None:
    """As names with values; the JSON that a model writes for it is no text for people."""
    made = '{"city": "Oslo", "degrees": 7}'
    call: Any = {"name": "Forecast", "args": {"city": "Oslo", "degrees": 7}, "id": "f1"}
    by_tool = strategy is ToolStrategy
    answer = AIMessage("", tool_calls=[call]) if by_tool else AIMessage(made)
    app = App()
    graph = create_agent(Scripted(responses=[answer]), [], response_format=strategy(Forecast))
    app.runtime(LangGraphRuntime(graph))
    async with session(app) as user:
        turn = await user.say("go")
        assert (turn.status, turn.text) == ("completed", "")
        items = turn.component("key-value").props["items"]
    assert [(one["key"], one["value"]) for one in items] == [("city", "Oslo"), ("degrees", 7)]
