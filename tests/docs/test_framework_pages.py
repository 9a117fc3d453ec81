"""The pages of frameworks begin with their example, and say what the contract suite has seen."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from click.testing import CliRunner

from arp import App
from arp.cli import main
from arp.runtime.frameworks.ag_ui import AgUiRuntime
from tests.docs.answering import play
from tests.docs.pages import ROOT, Block, blocks, section, text_of
from tests.support.serving import serving

EXAMPLES = {
    "langgraph.md": "langgraph_approval",
    "openai-agents.md": "openai_agents",
    "pydantic-ai.md": "pydantic_ai",
    "ag-ui.md": "ag_ui",
    "models.md": "model_agent",
    "mcp.md": "mcp_tools",
}
SEARCHED = {
    "langgraph.md": ("human-in-the-loop", "`interrupt()`", "checkpointer", "approvals"),
    "openai-agents.md": ("hand-offs", "approvals", "structured output"),
    "pydantic-ai.md": ("human-in-the-loop", "structured output", "deferred tools", "approvals"),
    "ag-ui.md": ("human-in-the-loop", "interrupts", "state"),
    "models.md": ("human-in-the-loop", "approval", "reasoning", "tools"),
    "mcp.md": ("elicitation", "progress", "form"),
}
"""What people look for, in the paragraph with which a page begins."""


def source(example: str) -> str:
    return (ROOT / "examples" / example / "app.py").read_text(encoding="utf-8")


WHOLE = {source(example) for example in EXAMPLES.values()}
OTHERS = [
    block
    for page in ("frameworks.md", *EXAMPLES)
    for block in blocks("python", page=page)
    if block.code not in WHOLE
]
"""Blocks of code besides the examples, which have tests of their own."""


@pytest.mark.parametrize(("page", "example"), EXAMPLES.items())
def test_a_page_begins_with_its_example_and_how_to_run_it_without_a_key(
    page: str, example: str
) -> None:
    first = blocks("python", page=page)[0]
    beginning = text_of(page).partition("\n## ")[0]
    assert first.code == source(example)
    assert f"<!-- generated: include:examples/{example}/app.py -->" in beginning
    assert f"arp serve examples/{example}/app.py" in beginning.partition("<!--")[0]
    assert " key" in beginning.partition("<!--")[0]


@pytest.mark.parametrize(("page", "words"), SEARCHED.items())
def test_the_first_paragraph_has_the_words_that_people_search_for(
    page: str, words: tuple[str, ...]
) -> None:
    paragraph = " ".join(text_of(page).split("\n\n")[1].split())
    assert [word for word in words if word.lower() not in paragraph.lower()] == []


@pytest.mark.parametrize("block", OTHERS, ids=str)
def test_a_block_is_an_app_that_answers(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it asks is answered."""
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(block.code, str(block), "exec", dont_inherit=True), names)
    with serving(names["app"], ledger="memory:") as server:
        turn, text, shown = asyncio.run(play(server.http, "hello"))
    assert (turn.status, turn.errors) == ("completed", [])
    assert text or shown


def test_a_model_with_the_tag_nostream_is_hidden_if_its_message_is_not_kept() -> None:
    (block,) = [one for one in OTHERS if "nostream" in one.code]
    names: dict[str, Any] = {"__name__": "docs"}
    shown = block.code.replace('{"plan": (await planner.ainvoke(state["messages"])).text}', KEPT)
    for code, said in ((block.code, ""), (shown, "First I look, then I leap.")):
        exec(compile(code, str(block), "exec", dont_inherit=True), names)
        with serving(names["app"], ledger="memory:") as server:
            _, text, _ = asyncio.run(play(server.http, "hello"))
        assert text == f"{said}Here is the answer."


KEPT = '{"messages": [await planner.ainvoke(state["messages"])]}'


def test_a_model_without_a_key_names_the_variable_as_the_page_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (told,) = blocks("text", page="models.md")
    result = CliRunner().invoke(main, ["serve", "--model", "openai:gpt-5", "--port", "0"])
    assert result.exit_code != 0
    assert result.output == told.code


def test_every_framework_is_in_the_overview_with_its_example() -> None:
    overview = text_of("frameworks.md")
    for page, example in EXAMPLES.items():
        assert f"]({page})" in overview
        assert example == "mcp_tools" or f"(../examples/{example}/)" in overview


CASES = {
    "the arguments of a call can be changed": "allow_with_changed_input",
    "a call can be allowed for the session": "rule_for_the_session",
    "the model reads why a call was denied": "deny_with_message",
    "a failed tool is shown as failed": "failed_tool",
}
RUNTIMES = ("langgraph", "openai-agents", "pydantic-ai", "ag-ui")


@pytest.mark.parametrize(("line", "case"), CASES.items())
def test_the_overview_says_what_the_contract_suite_has_seen(line: str, case: str) -> None:
    seen = json.loads((ROOT / "tests/runtime/matrix.json").read_text(encoding="utf-8"))
    below = section("frameworks.md", "What differs")
    (row,) = re.findall(rf"^\| {line} \| (.+) \|$", below, re.MULTILINE)
    told = [cell.partition(",")[0] for cell in row.split(" | ")]
    assert told == ["yes" if seen[name][case] == "native" else "no" for name in RUNTIMES]


def test_the_overview_says_what_none_of_them_can_do() -> None:
    seen = json.loads((ROOT / "tests/runtime/matrix.json").read_text(encoding="utf-8"))
    for name in RUNTIMES:
        for case in ("model_switch", "mode_switch", "commands", "retry_is_visible"):
            assert seen[name][case].startswith("Unimplemented"), (name, case)


TRIP = {"properties": {"city": {"type": "string"}, "days": {"type": "number"}}}
INTERRUPTS: list[tuple[Any, str, Any]] = [
    ("Where?", "text-input", "hot-days"),
    ({"question": "Where?"}, "text-input", "hot-days"),
    ({"question": "Send?", "options": ["send", "leave it"]}, "choices", "send"),
    ({"question": "Which?", "schema": TRIP}, "form", {"city": "Ada", "days": 2}),
    ({"question": "Sure?", "schema": {"type": "boolean"}}, "confirm", True),
    ({"component": {"type": "confirm", "props": {"title": "Go?"}}}, "", True),
    ({"task": "Review this", "draft": "Dear Ann"}, "text-input", "hot-days"),
]
"""What `interrupt` gets, what is asked (empty: what the value says), and what it returns of the
answers of `play`."""


def test_an_interrupt_is_asked_and_returns_what_the_page_says() -> None:
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.types import interrupt

    def ask(state: MessagesState) -> dict[str, Any]:
        value, _, _ = INTERRUPTS[int(state["messages"][-1].text)]
        return {"messages": [AIMessage(json.dumps(interrupt(value)))]}

    graph = StateGraph(MessagesState)
    graph.add_node(ask)
    graph.add_edge(START, "ask")
    app = App()
    app.runtime(graph.compile())
    with serving(app, ledger="memory:") as server:
        for number, (_, asked, answer) in enumerate(INTERRUPTS):
            turn, text, shown = asyncio.run(play(server.http, str(number)))
            assert turn.status == "completed"
            assert shown[-1].type == (asked or "confirm")
            assert json.loads(text) == answer
    rows = section("langgraph.md", "Questions: `interrupt`")
    told = re.findall(r"^\| [`a].*? \| (?:`([\w-]+)`|\[that component\]\S+) \|", rows, re.MULTILINE)
    assert told == [asked for _, asked, _ in INTERRUPTS]


APPROVED = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
AG_UI: list[tuple[dict[str, Any], str, Any]] = [
    ({"toolCallId": "call-1", "responseSchema": APPROVED}, "confirm", {"approved": True}),
    ({"reason": "Which?", "responseSchema": TRIP}, "form", {"city": "Ada", "days": 2}),
    ({"message": "Where?"}, "text-input", "hot-days"),
    ({"message": "Send?", "metadata": {"options": ["send", "leave it"]}}, "choices", "send"),
]
"""An interrupt, what is asked, and the payload that comes back for the answers of `play`."""


async def interrupted(run: RunAgentInput) -> AsyncIterator[dict[str, Any]]:
    """An agent that asks as the message says, and repeats what it is told."""
    resume = run.model_dump(mode="json", by_alias=True).get("resume")
    if resume:
        said = json.dumps(resume[0]["payload"])
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": said}
        yield {"type": "RUN_FINISHED"}
        return
    interrupt, _, _ = AG_UI[int(str(run.messages[-1].content))]
    if "toolCallId" in interrupt:
        yield {"type": "TOOL_CALL_START", "toolCallId": "call-1", "toolCallName": "refund"}
        yield {"type": "TOOL_CALL_END", "toolCallId": "call-1"}
    outcome = {"type": "interrupt", "interrupts": [{"id": "i", **interrupt}]}
    yield {"type": "RUN_FINISHED", "outcome": outcome}


def test_an_interrupt_of_ag_ui_is_asked_and_resumed_as_the_page_says() -> None:
    app = App()
    app.runtime(AgUiRuntime(interrupted))
    with serving(app, ledger="memory:") as server:
        for number, (_, asked, payload) in enumerate(AG_UI):
            turn, text, shown = asyncio.run(play(server.http, str(number)))
            assert turn.status == "completed"
            assert [one.type for one in shown] == [asked]
            assert json.loads(text) == payload
