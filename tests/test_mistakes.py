"""What people write by mistake, and what they read: each says it where it was written."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from arp import Access, App, ArpClient, Command, Component, HubSettings, SyncTurn, Turn, serve, ui
from arp.runtime.plain.function import FunctionRuntime
from arp.testing import FakeRuntime
from arp.tools.app.agent import ToolAgent
from arp.turn.author_call import AuthorBlock
from arp.turn.sync_turn import in_thread
from tests.hub.rig import Renderer, played, running
from tests.turn.author_calls import Call, calls, holding

wrong: Any = App
"""An app to a type checker that knows nothing, as that of many authors."""
u: Any = ui
"""The builders, likewise."""


async def agent(turn: Turn) -> None:
    """One as it should be."""


async def forgot_the_turn() -> None: ...
async def takes_a_text(message: str) -> None: ...
async def takes_two(turn: Turn, model: str) -> None: ...
async def yields(turn: Turn) -> Any:
    yield "hi"


class Worker:
    async def __call__(self, turn: Turn) -> None: ...


class Thing:
    pass


@dataclass
class Fields:
    """What a form asks for."""

    size: str = "S"


async def login(connection: Any) -> str:
    return "ann"


async def login_of_two(request: Any, call_next: Any) -> str:
    return "ann"


async def opens(app: Any) -> Any:
    """A lifespan that lacks its decorator."""


@asynccontextmanager
async def opened(app: Any) -> Any:
    yield


@asynccontextmanager
async def opened_for_nobody() -> Any:
    yield


def registered() -> App:
    app = App()
    app.agent(agent)
    return app


def registered_twice() -> None:
    app = App()
    app.agent("cars")(agent)
    app.agent("cars")(agent)


def with_set(name: str, value: object) -> None:
    """Set an attribute of an app, as `app.titel = "x"` does."""
    setattr(App(), name, value)


class Mistake(NamedTuple):
    """Something wrong, and the message that is written there."""

    make: Callable[[Any], Any]
    """Gets a turn that runs; what it returns is awaited, if it can be."""
    says: str


APP = {
    "agent without the parameter turn": Mistake(
        lambda _: wrong().agent(forgot_the_turn),
        "agent 'forgot_the_turn' takes () -> 'None', but is given the turn alone; "
        "write: async def forgot_the_turn(turn)",
    ),
    "agent with two parameters": Mistake(
        lambda _: wrong().agent(takes_two),
        "agent 'takes_two' takes (turn: 'Turn', model: 'str') -> 'None', but is given the turn "
        "alone; write: async def takes_two(turn)",
    ),
    "agent with a wrong annotation": Mistake(
        lambda _: wrong().agent(takes_a_text),
        "agent 'takes_a_text' takes message: str, but is given a Turn; turn.text is what the user "
        "said; write: async def takes_a_text(turn)",
    ),
    "command with a wrong annotation": Mistake(
        lambda _: wrong().command("export")(takes_a_text),
        "command 'export' takes message: str, but is given a Turn; turn.text is what the user "
        "said; write: async def export(turn)",
    ),
    "handler of answers without the answer": Mistake(
        lambda _: wrong().on_answer("trip")(agent),
        "on_answer 'trip' takes (turn: 'Turn') -> 'None', but is given (turn, answer); "
        "write: async def trip(turn, answer)",
    ),
    "agent that yields": Mistake(
        lambda _: wrong().agent(yields),
        "agent 'yields' is an async generator; say what it yields: await turn.say(…)",
    ),
    "class instead of an object": Mistake(
        lambda _: wrong().agent(Worker),
        "agent 'Worker' is a class; give an object of it: app.agent(Worker())",
    ),
    "call instead of the function": Mistake(
        lambda turn: wrong().agent(agent(turn)),
        "agent 'agent' is a call of an agent; give the function: @app.agent above "
        "async def agent(turn)",
    ),
    "two agents of one name": Mistake(
        lambda _: registered_twice(),
        "there is an agent 'cars' already; give this one another name",
    ),
    "command without its name": Mistake(
        lambda _: wrong().command(agent), 'write the name too: @app.command("name")'
    ),
    "on_answer without its name": Mistake(
        lambda _: wrong().on_answer(agent), 'write the name too: @app.on_answer("name")'
    ),
    "command that nobody can type": Mistake(
        lambda _: wrong().command("Export CSV"),
        "command 'Export CSV': take lower-case letters, digits, - and _",
    ),
    "policy that there is not": Mistake(
        lambda _: HubSettings(policy="drop"),  # type: ignore[arg-type] # the mistake
        "HubSettings.policy: 'drop' is not one of queue, reject, interrupt",
    ),
    "limits as a dict": Mistake(
        lambda _: HubSettings(limits={"max_surfaces": 3}),  # type: ignore[arg-type] # the mistake
        "HubSettings.limits: expected Limits(…), got a dict",
    ),
    "ledger in a database of another kind": Mistake(
        lambda _: wrong(ledger="mysql://me@db/chats"),
        "no ledger of kind 'mysql:'; use sqlite:PATH, postgresql://… or memory:",
    ),
    "ledger with a typing error": Mistake(
        lambda _: wrong(ledger="sqlit:chats.db"),
        "no ledger of kind 'sqlit:'; use sqlite:PATH, postgresql://… or memory:",
    ),
    "access as a text": Mistake(
        lambda _: wrong(access="secret"), "access: expected Access(…), got str"
    ),
    "hook by its name": Mistake(
        lambda _: Access(authenticate="login"),  # type: ignore[arg-type] # the mistake
        "Access.authenticate: expected a function, got str; "
        "write async def authenticate(connection)",
    ),
    "call of the hook": Mistake(
        lambda _: Access(authenticate=login(None)),  # type: ignore[arg-type] # the mistake
        "Access.authenticate: expected a function, got a call of it; give the function itself: "
        "authenticate=login",
    ),
    "hook of another framework": Mistake(
        lambda _: Access(authenticate=login_of_two),  # type: ignore[arg-type] # the mistake
        "Access.authenticate: expected a function, got one that takes (request: 'Any', "
        "call_next: 'Any') -> 'str', but is given the connection; "
        "write async def authenticate(connection)",
    ),
    "class as the hook": Mistake(
        lambda _: Access(authenticate=Worker),  # type: ignore[arg-type] # the mistake
        "Access.authenticate: expected a function, got the class Worker; give an object of it, "
        "or write async def authenticate(connection)",
    ),
    "role of admins without a hook": Mistake(
        lambda _: Access(token="one-long-secret", admin_role="staff"),
        "Access.admin_role: it is the role of a hook's users; give authenticate=… too; "
        "of a login: Oidc(admin=…); of a token: arp token create --role admin",
    ),
    "bounds as a dict": Mistake(
        lambda _: Access(bounds={"max_uploads": 3}),  # type: ignore[arg-type] # the mistake
        "Access.bounds: expected Bounds(…), got dict",
    ),
    "hosts as None": Mistake(
        lambda _: Access(hosts=None),  # type: ignore[arg-type] # the mistake
        "Access.hosts: expected a tuple of texts, got None",
    ),
    "lifespan without its decorator": Mistake(
        lambda _: wrong(lifespan=opens),
        "lifespan: expected a context manager of an app; "
        "write @asynccontextmanager above async def lifespan(app)",
    ),
    "lifespan without the app": Mistake(
        lambda _: wrong(lifespan=opened_for_nobody),
        "lifespan: it takes () -> 'Any', but is given the app; "
        "write @asynccontextmanager above async def lifespan(app)",
    ),
    "call of the lifespan": Mistake(
        lambda _: wrong(lifespan=opened(None)),
        "lifespan: expected the function, got a call of it; leave its brackets out",
    ),
    "one MCP server as a text": Mistake(
        lambda _: wrong(mcp="npx some-server"),
        "mcp: expected a list of MCP servers, got 'npx some-server'",
    ),
    "MCP server as a dict": Mistake(
        lambda _: wrong(mcp=[{"command": "npx"}]),
        "mcp[0]: expected an address, a command or an McpServer, got dict",
    ),
    "settings of the user as a text": Mistake(
        lambda _: wrong(session_settings=str),
        "session_settings: expected a dataclass, Struct or pydantic model, got str",
    ),
    "suggestions of numbers": Mistake(
        lambda _: wrong(suggestions=["Compare", 3]), "suggestions[1]: expected str, got int"
    ),
    "ledger as a path": Mistake(
        lambda _: wrong(ledger=Path("app.db")), "ledger: expected str, got PosixPath"
    ),
    "agent with its title as the name": Mistake(
        lambda _: wrong().agent("Data explorer")(agent),
        "agent 'Data explorer': a name is a part of an address; take letters, digits, "
        "-, _ and . and write the rest as title=…",
    ),
    "serve of a file": Mistake(
        lambda _: serve("app.py"),  # type: ignore[arg-type] # the mistake
        "serve: expected an App, got str; for a file: arp serve app.py",
    ),
    "port as a text": Mistake(
        lambda _: serve(registered(), port="8080"),  # type: ignore[arg-type] # the mistake
        "port: expected a number, got '8080'",
    ),
    "host with http": Mistake(
        lambda _: serve(registered(), host="http://127.0.0.1"),
        "host: expected an address such as 127.0.0.1, got 'http://127.0.0.1'",
    ),
    "client of an app": Mistake(
        lambda _: ArpClient(App()),  # type: ignore[arg-type] # the mistake
        "App: not an address of a server; write http://HOST:PORT (or https, ws, wss, http+sse, "
        "https+sse), grpc:HOST:PORT (or grpcs), unix:PATH, stdio:COMMAND, or stdio: with "
        "command=[…]",
    ),
    "origins as a text": Mistake(
        lambda _: Access(origins="https://x.org"),  # type: ignore[arg-type] # the mistake
        "Access.origins: expected a tuple of texts, got 'https://x.org'",
    ),
    "settings as a dict": Mistake(
        lambda _: wrong(settings={"policy": "queue"}),
        "settings: expected HubSettings(…), got dict",
    ),
    "suggestions as a text": Mistake(
        lambda _: wrong(suggestions="Compare"),
        "suggestions: expected a list of str, got 'Compare'",
    ),
    "tools as a list": Mistake(
        lambda _: wrong(tools=[agent]), "tools: expected a ToolProvider, got list"
    ),
    "attribute of an app with a typing error": Mistake(
        lambda _: with_set("titel", "x"), "App has no attribute 'titel'; did you mean 'title'?"
    ),
    "attribute of an app that is the author's own": Mistake(
        lambda _: with_set("db", object()),
        "App has no attribute 'db'; keep what is yours in a variable, or yield it from "
        "App(lifespan=…)",
    ),
    "lifespan that is set too late": Mistake(
        lambda _: with_set("lifespan", opened),
        "App.lifespan is given when the app is made: App(lifespan=…)",
    ),
    "title that is set to a number": Mistake(
        lambda _: with_set("title", 3), "title: expected str, got int"
    ),
    "settings that are set to a dict": Mistake(
        lambda _: with_set("settings", {"policy": "queue"}),
        "settings: expected HubSettings(…), got dict",
    ),
    "description of a command that is no text": Mistake(
        lambda _: wrong().command("x", description=3), "description: expected str, got int"
    ),
    "class of a runtime": Mistake(
        lambda _: wrong().runtime(FakeRuntime),
        "FakeRuntime is a class; give an object of it: app.runtime(FakeRuntime(…))",
    ),
    "limits of a runtime as a dict": Mistake(
        lambda _: wrong().runtime(FakeRuntime({}), limits={"idle_s": 3}),
        "limits: expected RuntimeLimits(…), got dict",
    ),
    "runtime with its title as the name": Mistake(
        lambda _: wrong().runtime(FakeRuntime({}), name="My agent"),
        "agent 'My agent': a name is a part of an address; take letters, digits, -, _ and . and "
        "write the rest as title=…",
    ),
    "one function as the tools of a model": Mistake(
        lambda _: wrong().model_agent("ollama:x", tools=takes_a_text),
        "tools: expected a list of functions, got takes_a_text; write tools=[…]",
    ),
    "tool of a model that is no function": Mistake(
        lambda _: wrong().model_agent("ollama:x", tools=["weather"]),
        "tools[0]: expected a function, got str",
    ),
    "one MCP server of a model as a text": Mistake(
        lambda _: wrong().model_agent("ollama:x", mcp="npx some-server"),
        "mcp: expected a list of MCP servers, got 'npx some-server'",
    ),
    "instructions as a number": Mistake(
        lambda _: wrong().model_agent("ollama:x", instructions=3),
        "instructions: expected a text or a function, got int",
    ),
    "MCP server without a word": Mistake(
        lambda _: wrong(mcp=[" "]),
        "mcp[0]: expected an address, a command or an McpServer, got an empty text",
    ),
    "class of the tools": Mistake(
        lambda _: wrong(tools=ToolAgent),
        "tools: ToolAgent is a class; give an object of it: tools=ToolAgent(…)",
    ),
    "coder that is none": Mistake(
        lambda _: ToolAgent(3),  # type: ignore[arg-type] # the mistake
        "coder: expected a runtime, its name or a Coder, got 3",
    ),
    "runtime of no function": Mistake(
        lambda _: FunctionRuntime("x"),  # type: ignore[arg-type] # the mistake
        "FunctionRuntime: expected a function of a turn, got str",
    ),
    "runtime by its name": Mistake(
        lambda _: wrong().runtime("claude-code"),
        "'claude-code' is a text; give a runtime, such as ClaudeCodeRuntime(); names are for the "
        "command line: arp serve --runtime NAME",
    ),
    "host as a number": Mistake(
        lambda _: serve(registered(), host=127),  # type: ignore[arg-type] # the mistake
        "host: expected an address such as 127.0.0.1, got 127",
    ),
    "agent as the title": Mistake(lambda _: wrong(agent), "title: expected str, got function"),
    "app without an agent": Mistake(
        lambda _: serve(App(), port=0),
        "the app has no agent; write @app.agent above an async function",
    ),
    "server that everybody reaches": Mistake(
        lambda _: serve(registered(), host="0.0.0.0"),
        "0.0.0.0 can be reached by others: give App an Access with a token",
    ),
    "object that is no runtime": Mistake(
        lambda _: wrong().runtime(object()),
        "object is no runtime, and no agent of a framework (langgraph, openai-agents, "
        "pydantic-ai, ag-ui)",
    ),
}

COMPONENTS = {
    "chart with two labels and one value": Mistake(
        lambda _: ui.chart("bar", labels=["a", "b"], datasets=[ui.dataset("Sales", [1])]),
        "ui.chart: datasets[0]: labels: 2, values: 1; give one value for each label, None where "
        "there is none",
    ),
    "chart of an unknown type": Mistake(
        lambda _: u.chart("donut", [1]),
        "ui.chart: type: 'donut' is not one of line, bar, pie, scatter, area",
    ),
    "chart without data": Mistake(
        lambda _: ui.chart("bar"),
        "ui.chart: give data, or labels=… and datasets=[ui.dataset(…)]",
    ),
    "column that is not there": Mistake(
        lambda _: ui.chart("bar", pd.DataFrame({"sales": [1]}), y="slaes"),
        "ui.chart: y: no column 'slaes'; did you mean 'sales'?",
    ),
    "column of texts as values": Mistake(
        lambda _: ui.chart("bar", pd.DataFrame({"name": ["a"], "n": [1]}), y="name"),
        "ui.chart: y: column 'name' is not of numbers; numbers are in: n",
    ),
    "texts as values of a dataset": Mistake(
        lambda _: u.dataset("Sales", ["x"]),
        "ui.dataset: data[0]: expected number or null, got string",
    ),
    "header that no row has": Mistake(
        lambda _: ui.table(["nmae"], [{"name": 1}]),
        "ui.table: headers: no column 'nmae'; did you mean 'name'?",
    ),
    "table of a number": Mistake(
        lambda _: u.table(5), "ui.table: headers: expected array, got number"
    ),
    "row with a cell too few": Mistake(
        lambda _: ui.table(["city", "sales"], [["Bonn", 1], ["Kiel"]]),
        "ui.table: rows[1]: headers: 2, cells: 1; give one cell for each header, None where there "
        "is none",
    ),
    "highlight of a row that is not there": Mistake(
        lambda _: ui.table(["a"], [[1]], highlight=[5]),
        "ui.table: highlight: row 5, but there are 1, from 0",
    ),
    "selectable as a bool": Mistake(
        lambda _: u.table(["a"], [[1]], selectable=True),
        "ui.table: selectable: expected string, got boolean",
    ),
    "fields as texts": Mistake(
        lambda _: u.form(["name"]),
        "ui.form: fields[0]: expected object, got string; ui.field(…) makes one",
    ),
    "form without fields": Mistake(
        lambda _: ui.form([]), "ui.form: fields: none; ui.field(…) makes one"
    ),
    "two fields of one name": Mistake(
        lambda _: ui.form([ui.field("a"), ui.field("a")]), 'ui.form: two fields are named "a"'
    ),
    "kind of field that there is not": Mistake(
        lambda _: u.field("a", field_type="dropdown"),
        "ui.field: field_type: 'dropdown' is not one of text, textarea, select, checkbox, number, "
        "date, email, password, file",
    ),
    "value that is none of the options": Mistake(
        lambda _: ui.field("size", options=["S", "M"], value="L"),
        "ui.field: value: 'L' is none of the options",
    ),
    "value that is no number": Mistake(
        lambda _: ui.field("count", field_type="number", value="five"),
        "ui.field: value: of a number field, expected a number, got 'five'",
    ),
    "value that is no date": Mistake(
        lambda _: ui.field("day", field_type="date", value="tomorrow"),
        "ui.field: value: of a date field, expected a date such as 2026-05-31, got 'tomorrow'",
    ),
    "field with an empty label": Mistake(
        lambda _: ui.field("size", label=" "), "ui.field: label: empty; write what the user reads"
    ),
    "field with one option twice": Mistake(
        lambda _: ui.field("size", options=["S", "S"]),
        "ui.field: options: two have the value 'S'",
    ),
    "rules that exclude each other": Mistake(
        lambda _: ui.field("n", field_type="number", validation={"min": 5, "max": 1}),
        "ui.field: validation: min 5 is above max 1, so nobody could answer",
    ),
    "value that breaks a rule": Mistake(
        lambda _: ui.field("n", field_type="number", value=9, validation={"max": 5}),
        "ui.field: value: 9 breaks the rule max 5",
    ),
    "text that is too short for its rule": Mistake(
        lambda _: ui.field("pin", value="12", validation={"min_length": 4}),
        "ui.field: value: '12' breaks the rule min_length 4",
    ),
    "rule with a day that there is not": Mistake(
        lambda _: ui.field("day", field_type="date", validation={"min": "2026-02-30"}),
        "ui.field: validation.min: of a date field, expected a date such as 2026-05-31, got "
        "'2026-02-30'",
    ),
    "form whose button says nothing": Mistake(
        lambda _: ui.form([ui.field("a")], submit_label=""),
        "ui.form: submit_label: empty; write what the user reads",
    ),
    "confirm without its question": Mistake(
        lambda _: ui.confirm(""), "ui.confirm: title: empty; write what the user reads"
    ),
    "confirm whose button says nothing": Mistake(
        lambda _: ui.confirm("Sure?", deny_label=""),
        "ui.confirm: deny_label: empty; write what the user reads",
    ),
    "choices with an empty option": Mistake(
        lambda _: ui.choices(["a", ""]),
        "ui.choices: options: label: empty; write what the user reads",
    ),
    "option without words": Mistake(
        lambda _: ui.option(" ", value="a"), "ui.option: label: empty; write what the user reads"
    ),
    "choices of which none can be taken": Mistake(
        lambda _: ui.choices([ui.option("a", disabled=True), ui.option("b", disabled=True)]),
        "ui.choices: options: all are disabled, so nobody could answer; leave the question out",
    ),
    "text input with an empty label": Mistake(
        lambda _: ui.text_input(""), "ui.text_input: label: empty; write what the user reads"
    ),
    "text input that takes no text": Mistake(
        lambda _: ui.text_input("Name", max_length=0),
        "ui.text_input: max_length: 0, so nobody could answer",
    ),
    "tab without its name": Mistake(
        lambda _: ui.tab("", ui.text("a")), "ui.tab: label: empty; write what the user reads"
    ),
    "key-value of a number": Mistake(
        lambda _: u.key_value(3), "ui.key_value: items: expected a mapping or pairs, got number"
    ),
    "choices as one text": Mistake(
        lambda _: u.choices("abc"), "ui.choices: options: expected array, got string"
    ),
    "choices without options": Mistake(
        lambda _: ui.choices([]), "ui.choices: options: none; give strings, or ui.option(…)"
    ),
    "two options of one value": Mistake(
        lambda _: ui.choices(["a", "a"]), "ui.choices: options: two have the value 'a'"
    ),
    "steps as pairs": Mistake(
        lambda _: u.progress([("Read", "done")]),
        "ui.progress: steps[0]: expected object, got array; ui.step(…) makes one",
    ),
    "status that there is not": Mistake(
        lambda _: u.status_card("ok", "Done"),
        "ui.status_card: status: 'ok' is not one of success, error, warning, info",
    ),
    "children as texts": Mistake(
        lambda _: u.group(["a"]),
        "ui.group: children[0]: expected object, got string; ui.text(…) makes one",
    ),
    "components as tabs": Mistake(
        lambda _: u.tabs([ui.text("a")]),
        "ui.tabs: tabs[0].id: unknown; known are label, component, icon; ui.tab(…) makes one",
    ),
    "tab that is not there": Mistake(
        lambda _: ui.tabs([ui.tab("a", ui.text("a"))], active_tab=3),
        "ui.tabs: active_tab: 3, but there are 1, from 0",
    ),
    "items as a list of numbers": Mistake(
        lambda _: u.key_value([1, 2]),
        "ui.key_value: items[0]: expected (key, value) or ui.item(…)",
    ),
    "text of a number": Mistake(
        lambda _: u.text(3), "ui.text: content: expected string, got number"
    ),
    "image without words": Mistake(
        lambda _: ui.image("https://example.org/x.png"),
        "ui.image: alt: say in words what the image shows",
    ),
    "image by the name of a file": Mistake(
        lambda _: ui.image("chart.png", "Sales"),
        "ui.image: src: expected an http or https address, data:image/(png|jpeg|gif|webp);"
        "base64,…, or a path below /_api/blobs/",
    ),
    "colour that is a style": Mistake(
        lambda _: ui.dataset("a", [1], color="url(x)"),
        'ui.dataset: color: expected a colour such as "#36a2eb", "teal" or "rgb(54, 162, 235)"',
    ),
    "fallback as a text": Mistake(
        lambda _: u.text("x", fallback="y"),
        "ui.text: fallback is a component, such as ui.text(…)",
    ),
}

TURN = {
    "ask of a table without selection": Mistake(
        lambda turn: turn.ask(ui.table(["a"], [[1]])),
        "turn.ask: a table asks nothing; ask a form, confirm, choices or text-input, a table with "
        'selectable="one" or "many", or a type',
    ),
    "ask of a text": Mistake(
        lambda turn: turn.ask("Sure?"),
        "turn.ask: expected a question, got a text; write: turn.ask(ui.text_input('Sure?'))",
    ),
    "ask of a type without fields": Mistake(
        lambda turn: turn.ask(Thing),
        "Thing: no form can ask for it; ask for a dataclass, Struct, TypedDict or pydantic model, "
        "whose fields are texts, numbers, bools, dates or choices",
    ),
    "ask with options of something else": Mistake(
        lambda turn: turn.ask(ui.confirm("x"), title="x"),
        "turn.ask: title: not for what is asked here",
    ),
    "ask with a text as time": Mistake(
        lambda turn: turn.ask(ui.confirm("x"), timeout_s="5"),
        "timeout_s: expected seconds, got str",
    ),
    "confirm of a number": Mistake(
        lambda turn: turn.confirm(3), "turn.ask: title: expected string, got number"
    ),
    "text as whether a question can be declined": Mistake(
        lambda turn: turn.ask(ui.confirm("x"), can_decline="no"),
        "can_decline: expected bool, got str",
    ),
    "values of a form that are a number": Mistake(
        lambda turn: turn.ask(Fields, values=3), "values: expected a dict, got int"
    ),
    "permission without its question": Mistake(
        lambda turn: turn.start_tool("x").approve("", rule="r"),
        "title: empty; write what a person allows",
    ),
    "name instead of a function that listens": Mistake(
        lambda turn: turn.surface("x").on_close("closed"),
        "surface.on_close: expected an async function, got str; write async def close(reason)",
    ),
    "function that listens to something else": Mistake(
        lambda turn: turn.surface("x").on_configure(login),
        "surface.on_configure: expected an async function, got one that takes (connection: 'Any') "
        "-> 'str'; write async def configure(size, states)",
    ),
    "confirm of nothing": Mistake(
        lambda turn: turn.confirm(""), "turn.confirm: title: empty; write the question"
    ),
    "name of a question that is no text": Mistake(
        lambda turn: turn.confirm("x", name=3), "name: expected str, got int"
    ),
    "if turn.confirm without await": Mistake(
        lambda turn: bool(turn.confirm("Delete?")),
        "turn.confirm(…) was not awaited, so there is no answer yet; write: await turn.confirm(…)",
    ),
    "with turn.tool": Mistake(
        lambda turn: turn.tool("x").__enter__(), "write: async with turn.tool(…)"
    ),
    "await turn.frame": Mistake(lambda turn: turn.frame(), "write: async with turn.frame(…)"),
    "two components of one id in one show": Mistake(
        lambda turn: turn.show(ui.text("a", id="x"), ui.text("b", id="x")),
        "turn.show: two components have the id 'x', so the second would take the place of the "
        "first; give each its own, or none",
    ),
    "two of one id, one of them in a group": Mistake(
        lambda turn: turn.show(ui.text("a", id="x"), ui.group([ui.text("b", id="x")])),
        "turn.show: two components have the id 'x', so the second would take the place of the "
        "first; give each its own, or none",
    ),
    "show of nothing": Mistake(
        lambda turn: turn.show(None),
        "turn.show: expected a component, got NoneType; ui.text(…) is one",
    ),
    "show without anything": Mistake(
        lambda turn: turn.show(),
        "turn.show: nothing to show; give a component, a text or data, or a list, which may be "
        "empty",
    ),
    "popup without anything": Mistake(
        lambda turn: turn.popup(),
        "turn.popup: nothing to show; give a component, a text or data, or a list, which may be "
        "empty",
    ),
    "surface that is no text": Mistake(
        lambda turn: turn.show(ui.text("x"), surface=3), "surface: expected str, got int"
    ),
    "show of a component that there is not": Mistake(
        lambda turn: turn.show(Component("", "speedometer", {})),
        'components[0].type: no component "speedometer"; known are text, markdown, status-card, '
        "table, code-block, diff, key-value, progress, chart, image, product-cards, form, confirm, "
        "choices, text-input, group, tabs, split",
    ),
    "props of a wrong type": Mistake(
        lambda turn: turn.show(Component("", "text", {"content": 3})),
        "components[0].props.content: expected string, got number",
    ),
    "patch of a component that is not there": Mistake(
        lambda turn: turn.patch("nope", "props.title", "x"),
        "ops[0] update: no component 'nope' on this surface",
    ),
    "patch by the component": Mistake(
        lambda turn: turn.patch(ui.text("x"), "props.content", "x"),
        "target: expected the id of a component, got Component",
    ),
    "patch without props": Mistake(
        lambda turn: (turn.show(ui.text("x", id="a")), turn.patch("a", "content", "x"))[1],
        "ops[0] update: path 'content': begins with \"props\", then a dot",
    ),
    "say of a component": Mistake(
        lambda turn: turn.say(ui.text("x")),
        "turn.say: expected str, got Component; turn.show(…) shows everything else",
    ),
    "tool that the app does not have": Mistake(
        lambda turn: turn.use("search"), "no tool 'search'. Available: none."
    ),
    "file of a text": Mistake(
        lambda turn: turn.save_file("a.txt", "text"),
        "expected bytes or a pathlib.Path, got str",
    ),
    "file by its name": Mistake(
        lambda turn: turn.read_file("a.txt"), "ref: expected FileRef, got str"
    ),
    "commands as texts": Mistake(
        lambda turn: turn.set_commands(["help"]), "commands: expected Command, got str"
    ),
    "command with its slash": Mistake(
        lambda turn: turn.set_commands([Command("/help")]),
        "command '/help': take 1 to 64 printable characters without spaces, and no slash in front",
    ),
    "usage that is no JSON": Mistake(
        lambda turn: turn.usage(by=Thing()), "Thing is not a JSON value"
    ),
    "usage below nothing": Mistake(
        lambda turn: turn.usage(input_tokens=-5),
        "usage: input_tokens: expected what was used, a number from 0, got -5",
    ),
    "history of fewer than none": Mistake(
        lambda turn: turn.history(-1), "limit: expected a number from 0, got -1"
    ),
    "messages of fewer than none": Mistake(
        lambda turn: turn.messages(-1), "limit: expected a number from 0, got -1"
    ),
    "state that is a number": Mistake(
        lambda turn: setattr(turn, "state", 3), "turn.state: expected a dict, got int"
    ),
    "shared state that is a number": Mistake(
        lambda turn: setattr(turn, "shared_state", 3),
        "turn.shared_state: expected a dict, got int",
    ),
    "one command without a list": Mistake(
        lambda turn: turn.set_commands(Command("help")),
        "commands: expected a list of Command, got Command",
    ),
    "fact of an unknown type": Mistake(
        lambda turn: turn.record("tool.startd", {}),
        "profile validation failed: no type 'tool.startd'; the nearest is tool.started",
    ),
    "method that there is not": Mistake(
        lambda turn: turn.reply("x"), "'Turn' object has no attribute 'reply'"
    ),
    "attribute that there is not": Mistake(
        lambda turn: setattr(turn, "txt", "x"), "'Turn' object has no attribute 'txt'"
    ),
}

MISTAKES = APP | COMPONENTS | TURN


@pytest.mark.parametrize("name", MISTAKES)
async def test_mistake_is_told_where_it_is_written(name: str) -> None:
    """By the call itself, or of a change by the next await of the turn."""
    told: list[str] = []

    async def makes_it(turn: Turn) -> None:
        try:
            made = MISTAKES[name].make(turn)
            if inspect.isawaitable(made) or isinstance(made, AuthorBlock):
                await made
            await turn.say("")
        except Exception as error:  # noqa: BLE001 - which one is asked below
            told.append(str(error))

    await played(makes_it)
    assert told == [MISTAKES[name].says]


def test_there_are_at_least_forty() -> None:
    assert len(MISTAKES) >= 40


# -- what is told at the end of the turn -----------------------------------------------------------


def behind(call: Call) -> Any:
    """Return what a call runs."""
    return inspect.unwrap(getattr(call.of, call.name))


AWAITED = [call for call in calls() if inspect.iscoroutinefunction(behind(call))]
"""Every call of an author that has to be awaited."""


@pytest.mark.filterwarnings("default::RuntimeWarning")
@pytest.mark.parametrize("call", AWAITED, ids=[call.told for call in AWAITED])
async def test_forgotten_await_is_in_the_log_with_the_agent_and_the_line(
    call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    async def forgets(turn: Turn) -> None:
        async with holding(turn, call.of) as held:
            args, named = call.arguments({})
            getattr(held, call.name)(*args, **named)

    await played(forgets)
    (told,) = [one for one in caplog.messages if "awaited" in one]
    name = behind(call).__qualname__
    assert told.startswith(f"agent 'agent' called {name} and never awaited it: {__file__}:")
    assert told.endswith(" (turn t1 of session 's')")


@pytest.mark.parametrize("name", ["tool", "frame"])
async def test_block_that_is_never_entered_is_in_the_log(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def forgets(turn: Turn) -> None:
        if name == "tool":
            turn.tool("query")
        else:
            turn.frame()

    await played(forgets)
    (told,) = caplog.messages
    assert told.startswith(f"agent 'agent' called turn.{name} and never entered it: {__file__}:")


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (3, "agent 'agent' returned int; return nothing, a text, or what turn.show takes"),
        (Thing(), "agent 'agent' returned Thing; return nothing"),
    ],
)
async def test_what_an_agent_returns_that_cannot_be_shown_fails_its_turn(
    returned: Any, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def returns(turn: Turn) -> Any:
        return returned

    renderer = await played(returns)
    assert renderer.screen.turns["t1"].status == "failed"
    assert says in caplog.text


async def test_state_that_is_no_json_fails_the_turn_and_says_where_it_belongs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def keeps(turn: Turn) -> None:
        turn.state["client"] = Thing()

    renderer = await played(keeps)
    assert renderer.screen.turns["t1"].status == "failed"
    told = "turn.state: Thing is not a JSON value; keep live objects in turn.cache"
    assert told in caplog.text


async def test_turn_that_is_over_says_so() -> None:
    """Of a task that outlives it."""
    kept: list[Turn] = []

    async def keeps(turn: Turn) -> None:
        kept.append(turn)

    async with running(keeps) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        with pytest.raises(Exception, match="turn t1 is over; it can show nothing more"):
            await kept[0].say("late")


# -- what is no mistake any more -------------------------------------------------------------------


async def test_text_that_an_agent_returns_is_said_and_a_component_is_shown() -> None:
    async def says(turn: Turn) -> str:
        return "text"

    async def shows(turn: Turn) -> Component:
        return ui.status_card("info", "T")

    def plain(turn: SyncTurn) -> pd.DataFrame:
        return pd.DataFrame({"a": [1]})

    assert (await played(says)).screen.text("t1") == "text"
    assert [one.type for one in (await played(shows)).screen.output("t1")] == ["status-card"]
    plainly: Any = in_thread(plain)
    assert [one.type for one in (await played(plainly)).screen.output("t1")] == ["table"]


async def test_text_list_and_data_frame_are_shown() -> None:
    frame = pd.DataFrame({"sales": [1, 2]}, index=pd.Index(["N", "S"], name="region"))

    async def shows(turn: Turn) -> None:
        turn.show("text")
        turn.show(["a", ui.text("b")], frame)

    output = (await played(shows)).screen.output("t1")
    assert [one.type for one in output] == ["text", "text", "text", "table"]
    assert output[3].props == {"headers": ["region", "sales"], "rows": [["N", 1], ["S", 2]]}


async def test_state_may_be_set_whole() -> None:
    async def keeps(turn: Turn) -> None:
        turn.state = {"count": 1}

    async def reads(turn: Turn) -> None:
        if turn.text == "go":
            await keeps(turn)
        else:
            await turn.say(str(turn.state))

    async with running(reads) as hub:
        renderer = await Renderer(hub).join()
        for number, text in enumerate(("go", "read"), 1):
            await renderer.say(text)
            await renderer.ended(f"t{number}")
        assert renderer.screen.text("t2") == "{'count': 1}"


def test_decorator_with_empty_brackets() -> None:
    app = App()
    app.agent()(agent)
    assert list(app.handlers) == ["agent"]
