"""Each of the streams in `odd_streams` is shown right, or refused with a sentence.

Frameworks and SDKs are imported where they are used: together they take seconds, which each process
of pytest would spend when it collects this file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from arp import App
from arp.testbed.rendered_turn import RenderedTurn
from arp.testing import session
from tests.runtime.odd_streams import AG_UI, ANTHROPIC, BREAK, CHAT, Odd, Seen, said
from tests.support.asgi_serving import serving_asgi


class Broken(Exception):
    """Ends a connection in the middle."""


def answer_of(odd: Odd) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in odd.pieces:
            if piece == BREAK:
                raise Broken
            yield piece.encode()

    return StreamingResponse(pieces(), media_type=odd.kind)


def words_in(message: Any) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return " ".join(one.get("text", "") for one in content)


def model_server(streams: Sequence[Odd]) -> Starlette:
    """Return a server of models: the user's last text names the stream."""
    by_name = {one.name: one for one in streams}

    async def run(request: Request) -> Response:
        messages = (await request.json())["messages"]
        places = [n for n, one in enumerate(messages) if one["role"] == "user" and words_in(one)]
        results = [words_in(one) for one in messages[places[-1] :] if one["role"] == "tool"]
        if results:
            return answer_of(Odd("", said("after: " + "|".join(results)), Seen()))
        return answer_of(by_name[words_in(messages[places[-1]]).strip()])

    paths = ("/v1/chat/completions", "/v1/messages", "/")
    return Starlette(routes=[Route(path, run, methods=["POST"]) for path in paths])


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def now() -> str:
    """Return the time."""
    return "noon"


def pydantic_model(url: str) -> tuple[App, Any]:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from arp.runtime.frameworks.model_agent import model_runtime

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    app = App()
    model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
    app.runtime(model_runtime(model, tools=[add, now]))
    return app, client


def anthropic_model(url: str) -> tuple[App, Any]:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    from arp.runtime.frameworks.model_agent import model_runtime

    client = AsyncAnthropic(base_url=url, api_key="none", max_retries=0)
    app = App()
    model = AnthropicModel("m", provider=AnthropicProvider(anthropic_client=client))
    app.runtime(model_runtime(model))
    return app, client


def openai_agents(url: str) -> tuple[App, Any]:
    from agents import Agent, OpenAIChatCompletionsModel, RunConfig, function_tool
    from openai import AsyncOpenAI

    from arp.runtime.frameworks.openai_agents import OpenAIAgentsRuntime

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    model = OpenAIChatCompletionsModel("m", client)
    agent: Agent[None] = Agent("A", model=model, tools=[function_tool(add), function_tool(now)])
    app = App()
    app.runtime(OpenAIAgentsRuntime(agent, run_config=RunConfig(tracing_disabled=True)))
    return app, client


def langgraph(url: str) -> tuple[App, Any]:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    from arp.runtime.frameworks.langgraph import LangGraphRuntime

    key: Any = "none"
    model = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key=key, max_retries=0)
    app = App()
    app.runtime(LangGraphRuntime(create_agent(model, [add, now])))
    return app, model.root_async_client


def ag_ui(url: str) -> tuple[App, Any]:
    app = App()
    app.runtime(f"ag-ui:{url}/")
    return app, None


TABLES: dict[str, tuple[Sequence[Odd], Callable[[str], tuple[App, Any]]]] = {
    "model": (CHAT, pydantic_model),
    "openai-agents": (CHAT, openai_agents),
    "langgraph": (CHAT, langgraph),
    "anthropic": (ANTHROPIC, anthropic_model),
    "ag-ui": (AG_UI, ag_ui),
}


def outcomes(turn: RenderedTurn) -> Iterator[str]:
    for run in turn.tools:
        yield f"{run.tool} {run.result if run.ok else 'failed'}"


def difference(turn: RenderedTurn, seen: Seen) -> str:
    """Return what a turn shows, if that is not what is to be seen."""
    ends, wanted = list(outcomes(turn)), list(seen.calls)
    if seen.any_order:
        ends, wanted = sorted(ends), sorted(wanted)
    card = " ".join(str(one.props["message"]) for one in turn.components("status-card"))
    fits = (
        turn.status == ("failed" if seen.error else "completed")
        and (turn.text.startswith(seen.text) if seen.calls else turn.text == seen.text)
        and bool(card) == bool(seen.card)
        and seen.card in card
        and bool(turn.error) == bool(seen.error)
        and seen.error in turn.error
        and ends == wanted
        # A name of a class of Python says nothing to people; a traceback is the author's.
        and ("Error" not in turn.error.partition("Traceback")[0] or seen.error == "Error")
    )
    shown = f"{turn.status} {turn.text!r} {card!r} {turn.error!r} {list(outcomes(turn))}"
    return "" if fits else shown


@pytest.mark.timeout(240)
@pytest.mark.filterwarnings("ignore:Failed to extract usage")  # of Pydantic AI, for nulls
@pytest.mark.parametrize("name", TABLES)
async def test_each_odd_stream_is_shown_right_or_refused_with_a_sentence(name: str) -> None:
    """They come one after the other in one session: none of them spoils the next turn."""
    streams, app_of = TABLES[name]
    wrong = {}
    with serving_asgi(model_server(streams)) as url:
        app, client = app_of(url)
        async with session(app) as user:
            for odd in streams:
                turn = await user.say(odd.name)
                if seen := difference(turn, odd.but.get(name, odd.seen)):
                    wrong[odd.name] = seen
        if client is not None:  # of the framework, or of this test
            await client.close()
    assert wrong == {}


def test_there_are_sixty() -> None:
    assert len(CHAT) + len(ANTHROPIC) + len(AG_UI) >= 60
    for table in (CHAT, ANTHROPIC, AG_UI):
        assert len({one.name for one in table}) == len(table)
