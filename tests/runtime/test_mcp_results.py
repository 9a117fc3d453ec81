"""What MCP servers of all kinds list, return and ask reaches people and agents, or fails a call."""

from __future__ import annotations

import base64
import json
import logging
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from arp import App, Turn
from arp.live.settings import HubSettings
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.limits import Limits
from arp.testing import session
from arp.turn.tool import ToolFailed
from tests.runtime.mcp_rig import Listening, opened
from tests.runtime.mcp_shop import PIXEL
from tests.support.serving import serving

ODD = f"{sys.executable} {Path(__file__).with_name('mcp_odd.py')}"
PAGED = f"{sys.executable} {Path(__file__).with_name('mcp_paged.py')}"


def answer(*content: JsonObject, **more: Json) -> str:
    """Return the message with which the server answers a call."""
    result = json.dumps({"content": content, **more})
    return f'{{"jsonrpc": "2.0", "id": $ID, "result": {result}}}'


def data(content: bytes) -> str:
    return base64.b64encode(content).decode()


LINK: JsonObject = {
    "type": "resource_link",
    "uri": "https://files.example/report.pdf",
    "name": "report",
    "title": "The report",
    "description": "of May",
}
SOUND: JsonObject = {"type": "audio", "data": data(b"RIFF"), "mimeType": "audio/wav"}
TEXT: JsonObject = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}}
PAPER: JsonObject = {
    "type": "resource",
    "resource": {"uri": "file:///d/a.pdf", "mimeType": "application/pdf", "blob": data(b"%PDF")},
}
EMBEDDED_PICTURE: JsonObject = {
    "type": "resource",
    "resource": {"uri": "file:///dot.png", "mimeType": "image/png", "blob": PIXEL},
}
PICTURE: JsonObject = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
DRAWING: JsonObject = {"type": "image", "data": data(b"<svg/>"), "mimeType": "image/svg+xml"}


async def shown_for(text: str) -> tuple[Any, list[Any]]:
    """Let an agent use the tool; return the turn, and the components that it shows."""
    app = App(mcp=[ODD])

    @app.agent
    async def calls(turn: Turn) -> None:
        """Call the tool, and go on if it fails."""
        try:
            await turn.say(str(await turn.use("raw", {"text": text})))
        except ToolFailed as failed:
            await turn.say(f"failed: {failed.message}")

    async with session(app) as user:
        turn = await user.say("go")
        return turn, [one for one in turn.components() if one.type != "text"]


@pytest.mark.parametrize(
    ("content", "told", "kind", "props"),
    [
        (
            LINK,
            "The report: https://files.example/report.pdf (of May)",
            "product-cards",
            {"name": "The report", "url": "https://files.example/report.pdf"},
        ),
        (
            SOUND,
            "(audio.wav: audio/wav, 4 bytes; the user can load it)",
            "product-cards",
            {"name": "audio.wav", "badge": "audio/wav, 4 bytes"},
        ),
        (
            PAPER,
            "(a.pdf: application/pdf, 4 bytes; the user can load it)",
            "product-cards",
            {"name": "a.pdf", "badge": "application/pdf, 4 bytes"},
        ),
        (
            DRAWING,
            "(image.svg: image/svg+xml, 6 bytes; the user can load it)",
            "product-cards",
            {"name": "image.svg"},
        ),
        (EMBEDDED_PICTURE, "", "image", {"alt": "From raw"}),
        (PICTURE, "", "image", {"alt": "From raw"}),
        ({**PICTURE, "data": f"{PIXEL[:40]}\n{PIXEL[40:]}\n"}, "", "image", {}),
        (TEXT, "inside", "", {}),
        ({"type": "text", "text": "said"}, "said", "", {}),
    ],
)
async def test_content_of_every_type_reaches_the_agent_and_the_screen(
    content: JsonObject, told: str, kind: str, props: JsonObject
) -> None:
    turn, components = await shown_for(answer(content))
    assert (turn.status, turn.text) == ("completed", told)
    assert [one.type for one in components] == ([kind] if kind else [])
    for component in components:
        shown = component.props["cards"][0] if kind == "product-cards" else component.props
        assert props.items() <= shown.items()


async def test_link_that_no_browser_follows_is_a_text() -> None:
    turn, components = await shown_for(answer({**LINK, "uri": "file:///etc/passwd"}))
    texts = [one.props["content"] for one in turn.components() if one.type == "text"]
    assert components == []
    assert "The report: file:///etc/passwd" in texts


async def test_file_of_a_tool_can_be_loaded() -> None:
    app = App(mcp=[ODD])

    @app.agent
    async def calls(turn: Turn) -> None:
        await turn.use("raw", {"text": answer(PAPER)})

    with serving(app, ledger="memory:") as server:
        from arp.client.client import connect

        async with connect(server.http) as client, httpx.AsyncClient() as browser:
            turn = await client.ask("go")
            (card,) = client.screen.output(turn.id)[0].props["cards"]
            loaded = await browser.get(f"{server.http}{card['url']}")
    assert (loaded.status_code, loaded.content) == (200, b"%PDF")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({**PICTURE, "data": "***"}, "image: it is no base64"),
        ({**PICTURE, "data": data(b"no picture")}, "image: these bytes are no PNG"),
        ({**PICTURE, "data": ""}, "image: these bytes are no PNG"),
        ({**SOUND, "data": "é"}, "audio: it is no base64"),
        ({"type": "of_the_future"}, "cannot be read"),
    ],
)
async def test_content_that_cannot_be_read_fails_the_tool_and_the_agent_goes_on(
    content: JsonObject, why: str
) -> None:
    turn, components = await shown_for(answer({"type": "text", "text": "x"}, content))
    assert (turn.status, components) == ("completed", [])
    assert turn.text.startswith("failed: raw: ")
    assert why in turn.text
    assert [one.ok for one in turn.tools] == [False]


async def test_image_larger_than_an_upload_fails_the_tool() -> None:
    app = App(mcp=[ODD], settings=HubSettings(limits=Limits(max_upload_bytes=10)))

    @app.agent
    async def calls(turn: Turn) -> None:
        with pytest.raises(ToolFailed, match=r"raw: .*10"):
            await turn.use("raw", {"text": answer(PICTURE)})

    async with session(app) as user:
        assert (await user.say("go")).status == "completed"


async def test_table_that_is_too_large_shows_its_first_rows() -> None:
    rows = [{"a": "w" * 900, "b": "w" * 900} for _ in range(900)]
    turn, (table,) = await shown_for(answer(structuredContent={"result": rows}))
    assert turn.status == "completed"
    assert 200 < len(table.props["rows"]) < 400
    assert table.props["title"] == f"the first {len(table.props['rows'])} of 900 rows"
    (note,) = [one for one in turn.components() if "Not all is shown" in str(one.props)]
    assert "a table of" in note.props["content"]


# -- the list of tools -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["", "twice", "for_ever"])
async def test_tools_of_every_page_can_be_called(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the list does not end, or has a tool twice."""
    with caplog.at_level(logging.WARNING, "arp.runtime"):
        async with opened(f"{PAGED} {how}") as tools:
            listed = [one.name for one in tools.tools()]
            called = [(await tools.run(name, {}, Listening())).text for name in listed[2:]]
    assert listed == ["first", "asks", "my.dotted/tool name", "my.dotted/tool-name"]
    assert called == listed[2:]
    assert ("the list of tools does not end: 4 tools are used" in caplog.text) == bool(
        how == "for_ever"
    )


# -- questions -------------------------------------------------------------------------------------

OFFICE: JsonObject = {"type": "string", "enum": ["zrh1", "zrh2"], "enumNames": ["Zurich"] * 2}
WISHES: JsonObject = {
    "type": "object",
    "properties": {
        "office": OFFICE,
        "tags": {"type": "array", "items": {"type": "string"}, "default": ["new"]},
        "count": {"type": "integer", "default": 2.0},
    },
    "required": ["office"],
}


async def asked(params: JsonObject, *answers: Any) -> tuple[list[Any], Any]:
    """Let the server ask; return the questions that showed, and what the server was answered."""
    app = App(mcp=[PAGED])

    @app.agent
    async def calls(turn: Turn) -> None:
        await turn.say(str(await turn.use("asks", {"params": params})))

    questions = []
    async with session(app) as user:
        turn = await user.say("go")
        for one in answers:
            assert turn.status == "waiting"
            (question,) = turn.questions
            questions.append(question)
            turn = await turn.answer(one)
        assert turn.status == "completed"
        return questions, json.loads(turn.text)


async def test_question_of_a_server_is_asked_once() -> None:
    params = {"message": "Where?", "mode": "form", "requestedSchema": WISHES}
    given = {"office": "zrh2", "tags": "a\nb", "count": 3}
    (question,), told = await asked(params, given)
    assert question.props["title"] == "Where?"
    office, tags, count = question.props["fields"]
    assert [one["label"] for one in office["options"]] == ["Zurich (zrh1)", "Zurich (zrh2)"]
    assert (tags["value"], count["value"]) == ("new", 2)
    wanted = {"office": "zrh2", "tags": ["a", "b"], "count": 3}
    assert told == {"action": "accept", "content": wanted}


@pytest.mark.parametrize(("agrees", "action"), [(True, "accept"), (False, "decline")])
async def test_question_without_fields_is_yes_or_no(agrees: bool, action: str) -> None:
    schema: JsonObject = {"type": "object", "properties": {}}
    params: JsonObject = {"message": "Sure?", "mode": "form", "requestedSchema": schema}
    (question,), told = await asked(params, agrees)
    assert (question.type, question.props["title"]) == ("confirm", "Sure?")
    assert told["action"] == action


async def test_address_to_open_is_shown_whole() -> None:
    url = "https://pay.example/checkout?order=7"
    params = {"message": "Pay first", "mode": "url", "url": url, "elicitationId": "1"}
    (question,), told = await asked(params, True)
    assert url in question.props["title"]
    assert told == {"action": "accept"}
