"""What there is stands in the docs, and what stands in the docs there is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any, get_args

import httpx
import msgspec
import pytest

from arp import App, ArpClient, ErrorCode, Turn, ui
from arp.commands.ledger.reader_options import URL_VARIABLE
from arp.commands.serve.serve_settings import ENVIRONMENT
from arp.ledger.fact_types import REQUIRED_IDS
from arp.protocol.capabilities import AGENT_FEATURES
from arp.protocol.catalog import CATALOG
from arp.protocol.messages import AgentMessage, InputType, RendererMessage
from arp.protocol.patch import OP_NAMES
from arp.record.recorder import Recorder
from arp.runtime.named import OF_REMOTE
from arp.transport.websocket import SUBPROTOCOLS
from arp.unix.socket_path import SOCKET_VARIABLE
from arp_terminal.asking.commands import COMMANDS
from tests.docs import commands
from tests.docs.pages import PAGES, ROOT, section, text_of, without_code

COMMON = {"v", "session_id", "seq", "turn_id", "surface"}
"""Fields that the page explains once for all messages."""

RESERVED = {"state", "usage", "serial"}


def in_code(text: str) -> set[str]:
    """Gives every word that stands in a code span."""
    return set(re.findall(r"[\w.$/-]+", " ".join(re.findall(r"`([^`\n]+)`", text))))


def rows(text: str) -> list[list[str]]:
    """Return the cells of every line of a table, its head left out."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def first_cells(text: str) -> set[str]:
    """Return the words in code spans that stand in the first column of tables."""
    return in_code("\n".join(row[0] for row in rows(text)))


def headings(text: str, mark: str) -> list[str]:
    return re.findall(rf"^{mark} (.+)$", without_code(text), re.MULTILINE)


# -- the wire --------------------------------------------------------------------------------------


def test_every_error_code_has_one_line_and_no_line_lies() -> None:
    told = [row[:2] for row in rows(section("protocol.md", "5. Errors")) if len(row) == 5]
    assert told[2:] == [[str(int(code)), f"`{code.name}`"] for code in ErrorCode]


def test_every_close_code_that_the_server_sends_has_a_line() -> None:
    told = {row[0] for row in rows(section("protocol.md", "5. Errors")) if len(row[0]) == 4}
    assert told - {"code"} == {"1000", "1002", "1008", "1009", "1011", "1012", "1013"}


@pytest.mark.parametrize("message", get_args(AgentMessage), ids=lambda kind: kind.__name__)
def test_a_message_of_the_agent_side_is_told_with_its_fields(message: type[msgspec.Struct]) -> None:
    below = _told("2.1 From the agent side", str(message.__struct_config__.tag), "")
    missing = _fields(message) - in_code(below)
    if message.__name__ == "InputEcho":
        missing -= _fields(dict(_by_name(get_args(RendererMessage)))["Input"])
    assert not missing


@pytest.mark.parametrize("message", get_args(RendererMessage), ids=lambda kind: kind.__name__)
def test_a_message_of_a_renderer_is_told_with_its_fields(message: type[msgspec.Struct]) -> None:
    below = _told("2.2 From a renderer", str(message.__struct_config__.tag), " (renderer)")
    told = {part for word in in_code(below) for part in word.split(".")}
    assert not _fields(message) - told


def test_no_message_is_told_that_there_is_not() -> None:
    for page, union in (
        ("2.1 From the agent side", AgentMessage),
        ("2.2 From a renderer", RendererMessage),
    ):
        told = in_code(" ".join(headings(section("protocol.md", page), "####")))
        assert told == {str(kind.__struct_config__.tag) for kind in get_args(union)}


def _told(part: str, tag: str, suffix: str) -> str:
    text = section("protocol.md", part)
    (title,) = [line for line in headings(text, "####") if f"`{tag}`" in line]
    assert title.endswith(suffix)
    return section("protocol.md", title)


def _fields(message: type[msgspec.Struct]) -> set[str]:
    """Return the fields of a message and of its payload, as they stand on the wire."""
    found: set[str] = set()
    for field in msgspec.structs.fields(message):
        inner = field.type
        if field.name in ("payload", "capabilities") and issubclass(inner, msgspec.Struct):
            found |= _fields(inner)
        found.add(field.encode_name)
    return found - COMMON - RESERVED if message.__name__ != "SessionReady" else found - {"v"}


def _by_name(kinds: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    return ((kind.__name__, kind) for kind in kinds)


def test_every_input_type_is_told_and_no_other() -> None:
    told = first_cells(section("protocol.md", "`input` (renderer)"))
    assert told == {*get_args(InputType), "input_type"}


def test_every_feature_is_told_and_no_other() -> None:
    told = first_cells(section("protocol.md", "`hello` (renderer)"))
    fields = {"session_id", "workflow", "resume", "token", "viewport"}
    fields |= {"locale", "time_zone", "theme"}
    inner = {f"capabilities.{name}" for name in ("components", "features", "limits")}
    assert told - inner - (fields - {"resume"}) == set(AGENT_FEATURES)


def test_every_patch_op_is_told_and_no_other() -> None:
    told = first_cells(section("protocol.md", "4. Patches, commits and limits"))
    limits = {name for name in told if name.startswith("max_")}
    assert told - limits == set(OP_NAMES.values())


def test_every_subprotocol_is_told_and_no_other() -> None:
    told = first_cells(section("protocol.md", "1. Roles and dialects"))
    assert told == set(SUBPROTOCOLS)


# -- what authors and programs have in hand --------------------------------------------------------


def test_every_component_has_a_section_and_no_other() -> None:
    assert headings(text_of("components.md"), "###") == list(CATALOG)


def test_every_builder_is_told() -> None:
    builders = {
        name
        for name, thing in vars(ui).items()
        if inspect.isfunction(thing)
        and not name.startswith("_")
        and thing.__module__ == ui.__name__
    }
    told = set(re.findall(r"\bui\.(\w+)", text_of("components.md")))
    assert told == builders


def test_everything_of_a_turn_is_told_and_nothing_else() -> None:
    hidden = {
        "flush",
        "finish",
        "resolve",
        "record_state",
        "is_waiting",
        "has_pending",
        "attach",
        "used",
    }
    own = {name for name in dir(Turn) if not name.startswith("_")} - hidden
    text = text_of("agents.md")
    told = set(re.findall(r"\bturn\.(\w+)", text)) | {
        word for word in in_code(text) if hasattr(Turn, word)
    }
    assert own | {"id"} <= told | {"input"}
    assert told <= own | {"id"}


def test_everything_of_a_recorder_is_told() -> None:
    own = {name for name in dir(Recorder) if not name.startswith("_")}
    text = section("agents.md", "Recording facts")
    rows_of = [row[0] for row in rows(text) if len(row) == 2]
    assert own <= set(re.findall(r"\w+", " ".join(rows_of)))


def test_every_type_of_fact_is_told_and_no_other() -> None:
    told = [row[0].strip("`") for row in rows(section("facts.md", "Types")) if row[0] != "type"]
    assert [name for name in told if "." in name] == list(REQUIRED_IDS)


def test_everything_of_a_client_is_told_and_nothing_else() -> None:
    text = text_of("client.md")
    told = set(re.findall(r"(?<!arp\.)\bclient\.(\w+)", text)) | first_cells(text)
    own = {name for name in dir(ArpClient) if not name.startswith("_")}
    assert own - {"aclose", "agent", "connected", "session_id"} <= told
    assert set(re.findall(r"(?<!arp\.)\bclient\.(\w+)", text)) <= own


# -- the server and the terminal -------------------------------------------------------------------


OF_OTHERS = {"--experimental-websocket", "--app-dir", "--uid", "--create-home"} | {
    "--version",
    "--no-cache-dir",
}
"""Flags of other programs."""


def test_no_flag_is_told_that_there_is_not() -> None:
    told = {flag for page in PAGES for flag in _flags(page.read_text(encoding="utf-8"))}
    own = {flag for flag in told if not flag.startswith("--arp-")}  # variables of style sheets
    assert own - OF_OTHERS <= commands.flags()


def _flags(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text.replace("-->", "")))


def test_every_flag_is_told_beside_its_command() -> None:
    pages = (
        *("server.md", "terminal.md", "control-plane.md", "evidence.md", "ari.md", "tools.md"),
        *("login.md", "ledger.md"),
    )
    told = set[str]().union(*(_flags(text_of(page)) for page in pages))
    assert commands.flags() - {"-v", "-f", "-o", "--help"} <= told | {"--verbose"}


def test_every_route_is_told_and_no_other() -> None:
    app = App()

    @app.agent
    async def nobody(turn: Turn) -> None: ...

    paths = {
        re.sub(r"\{(\w+)(:\w+)?\}", "{}", route.path)
        for route in app.asgi._router.routes
        if hasattr(route, "path")
    }
    told = re.findall(r"(?:GET|POST|PUT|PATCH|DELETE) (/[^`\s?]*)", section("server.md", "HTTP"))
    named = {re.sub(r"\{\w+\}", "{}", path) for path in told}
    assert named == (paths | {"/_arp/v1"}) - {"/_static"}


def test_every_metric_is_told_and_no_other() -> None:
    app = App()

    @app.agent
    async def nobody(turn: Turn) -> None: ...

    told = {name for name in in_code(section("server.md", "HTTP")) if name.startswith("arp_")}
    assert told == set(_metrics(app))


def _metrics(app: App) -> list[str]:
    from tests.support.serving import serving

    with serving(app) as server:
        lines = httpx.get(f"{server.http}/metrics").text.splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def test_every_variable_of_the_environment_is_read_somewhere() -> None:
    words = {word.lstrip("$") for page in PAGES for word in in_code(page.read_text())}
    told = {word.partition("=")[0] for word in words if word.startswith("ARP_")}
    settings = {f"ARP_{name.upper()}" for name in ENVIRONMENT}
    assert told == settings | {SOCKET_VARIABLE, URL_VARIABLE} | set(OF_REMOTE)


def test_every_command_of_the_terminal_is_told_and_no_other() -> None:
    told = {word for word in first_cells(text_of("terminal.md")) if word.startswith("/")}
    assert told == set(COMMANDS)


# -- the ledger and the examples -------------------------------------------------------------------


def test_every_fact_of_the_docs_is_of_the_closed_list() -> None:
    told = in_code(section("ledger.md", "2. Events and their facts"))
    facts = {word for word in told if re.fullmatch(r"[a-z]+\.[a-z]+", word)} - {"protocol.md"}
    assert facts
    assert facts <= set(REQUIRED_IDS)


def test_every_example_is_told_and_no_other() -> None:
    folders = {path.parent.name for path in (ROOT / "examples").glob("*/README.md")}
    assert set(headings(text_of("examples.md"), "##")) == folders


def test_every_package_has_a_line_and_no_other() -> None:
    packages = {f"arp/{path.parent.name}" for path in (ROOT / "arp").glob("*/__init__.py")}
    listed = in_code(section("architecture.md", "Layers"))
    assert {word for word in listed if re.fullmatch(r"arp/\w+", word)} == packages


def test_every_folder_of_a_package_has_its_place_in_the_map_of_areas() -> None:
    folders = {path.parent.name for path in (ROOT / "arp").glob("*/*/__init__.py")}
    packages = {path.parent.name for path in (ROOT / "arp").glob("*/__init__.py")}
    named = {word.strip("/") for word in in_code(section("architecture.md", "Areas"))}
    assert folders | packages <= named
