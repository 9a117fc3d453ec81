"""Bad input of every kind gets a coded error; the connection and all else live on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import cbor2
import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from arp import App, ArpError, Limits, Turn, ui
from arp.live.settings import HubSettings
from tests.server.sockets import Raw, raw
from tests.support.serving import Serving, serving

LIMIT = 64 << 10

app = App(title="Bad input", settings=HubSettings(limits=Limits(max_message_bytes=LIMIT)))


@app.agent
async def agent(turn: Turn) -> None:
    """Asks what the tests answer wrongly; or does itself what is not allowed."""
    match turn.text:
        case "ask":
            fields = [
                ui.field("name", required=True),
                ui.field("age", field_type="number"),
                ui.field("size", field_type="select", options=["S", "M"]),
            ]
            turn.show(ui.table(["n"], [[1]], id="rows"))
            answer = await turn.ask(ui.form(fields, id="form"))
            await turn.say(f"thanks {answer['name']}")
        case "path":
            turn.show(ui.text("x", id="x"))
            await turn.say("before ")
            await tried(turn, "x", "props.__class__")
            await tried(turn, "x", "props.constructor.prototype")
            await tried(turn, "x", "type")
        case "unknown":
            turn.show(ui.text("kept", id="kept"))
            await turn.say("before ")
            await shown(turn)
        case _:
            await turn.say("fine")


async def tried(turn: Turn, target: str, path: str) -> None:
    """Patches, and says what came of it."""
    turn.patch(target, path, "evil")
    try:
        await turn.say("")
    except ArpError as error:
        await turn.say(f"[{type(error).__name__}: {error}]")


async def shown(turn: Turn) -> None:
    """Shows a component that nobody knows together with a good one: both or neither."""
    turn.show(ui.text("never", id="never"))
    turn.show(msgspec.structs.replace(ui.text("?"), type="hologram"))
    try:
        await turn.say("")
    except ArpError as error:
        await turn.say(f"[{type(error).__name__}: {error}]")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


async def refused(client: Raw, message: Any) -> Any:
    """Sends what is wrong, gives the error, and sees that the connection still serves."""
    await client.send(message)
    error = await client.until("error")
    await client.say("alive", "still there?")
    await client.until("commit", final=True)
    return error["payload"]


def message(**fields: Any) -> dict[str, Any]:
    return {"v": 1, "type": "input", "session_id": "s", "input_type": "text", **fields}


UNREADABLE = [
    ("not JSON", "{nope", "not json"),
    ("nothing in it", "", "not json"),
    ("a number", "3", "expected object or array"),
    ("unknown type", {"v": 1, "type": "explode"}, "explode"),
    ("handler's name as type", {"v": 1, "type": "__class__"}, "__class__"),
    ("no type", {"v": 1}, "type"),
    ("wrong type of a field", message(data=[]), "data: expected object"),
    ("unknown input type", message(input_type="telepathy", data={}), "telepathy"),
    ("text is no string", message(data={"text": 1}), "text"),
    ("no text", message(data={}), "text"),
    ("no action", message(input_type="action", data={}), "action"),
    ("reserved action", message(input_type="action", data={"action": "arp.root"}), "reserved"),
    ("selection is no array", message(input_type="selection", data={"selected": 1}), "selected"),
    ("files by socket", message(input_type="file", data={}), "POST"),
    ("files beside a text", message(data={"text": "x", "files": 5}), "data.files: expected array"),
    ("no files beside a text", message(data={"text": "x", "files": None}), "data.files"),
    ("hash is no text", message(data={"text": "x", "files": [{"sha256": []}]}), "data.files[0]"),
    ("version", message(v=2, data={"text": "x"}), "version 2"),
    ("deep", "[" * 100_000, "message"),
    ("deep data", '{"v":1,"type":"input","input_type":"text","data":' + '{"a":' * 5000, "message"),
    ("too big", message(data={"text": "x" * LIMIT}), str(LIMIT)),
    ("NaN", '{"v":1,"type":"input","input_type":"text","data":{"text":NaN}}', "json"),
    ("infinity", '{"v":1,"type":"input","input_type":"text","data":{"n":1e999}}', "range"),
    ("lone surrogate", '{"v":1,"type":"input","input_type":"text","data":{"text":"\\ud800"}}', ""),
    ("huge integer", message(data={"text": "x", "n": 10**30}), "64 bits"),
    ("id with a line break", message(id="a\nb", data={"text": "x"}), "id"),
    ("session id too long", message(session_id="s" * 129, data={"text": "x"}), "session_id"),
    ("batch with one bad message", "[" + json.dumps(message(data={})) + ",7]", "data.text"),
]


@pytest.mark.parametrize(
    ("bad", "says"), [case[1:] for case in UNREADABLE], ids=[c[0] for c in UNREADABLE]
)
async def test_bad_message_gets_a_coded_error_and_the_connection_lives(
    server: Serving, bad: Any, says: str
) -> None:
    """protocol.md 5: 11 INVALID_MESSAGE, 4 RESOURCE_LIMIT, 7 VERSION_MISMATCH."""
    async with raw(server) as client:
        payload = await refused(client, bad)
    assert payload["code"] in (4, 7, 11)
    assert says in payload["error"]


@pytest.mark.parametrize("encoding", ["msgpack", "cbor"])
@pytest.mark.parametrize("depth", [100, 1_000, 100_000])
async def test_deep_binary_message_is_refused(server: Serving, encoding: str, depth: int) -> None:
    """T21: a typed error, no recursion error, the worker alive."""
    head = b"\x91" if encoding == "msgpack" else b"\x81"
    await refused_binary(server, encoding, head * min(depth, LIMIT - 1))


@pytest.mark.parametrize(
    "bad",
    [
        b"\xd8\x23\x63(a)",
        b"\xd8\x1c\x81\x01",
        b"\x9b" + b"\xff" * 8,
        b"\x5f\xff",
        cbor2.dumps({"type": "input", "input_type": "text", "data": {"n": float("nan")}}),
        cbor2.dumps({"type": "input", "input_type": "text", "data": {1: 2}}),
    ],
    ids=[
        "regular expression",
        "shared value",
        "endless array",
        "endless bytes",
        "NaN",
        "number as key",
    ],
)
async def test_strange_cbor_is_refused(server: Serving, bad: bytes) -> None:
    """T22, T23: tags, lengths and numbers that JSON has not."""
    await refused_binary(server, "cbor", bad)


async def refused_binary(server: Serving, encoding: str, bad: bytes) -> None:
    decode = msgspec.msgpack.decode if encoding == "msgpack" else cbor2.loads
    encode = msgspec.msgpack.encode if encoding == "msgpack" else cbor2.dumps
    name: Any = f"arp.session.v1.{encoding}"
    async with connect(server.ws, subprotocols=[name]) as socket:
        decode(await socket.recv(decode=False))
        await socket.send(bad)
        error = decode(await socket.recv(decode=False))
        await socket.send(encode(message(session_id="alive", data={"text": "still there?"})))
        while decode(await socket.recv(decode=False))["type"] != "commit":
            pass
    assert error["type"] == "error"
    assert error["payload"]["code"] in (4, 11)


ANSWERS = [
    ("missing field", {"fields": {"age": 3}}, "name"),
    ("not a number", {"fields": {"name": "a", "age": "old"}}, "age"),
    ("not an option", {"fields": {"name": "a", "size": "XXL"}}, "size"),
    ("unknown field", {"fields": {"name": "a", "admin": True}}, "admin"),
    ("fields is no object", {"fields": [1]}, "fields"),
]


@pytest.mark.parametrize(
    ("data", "says"), [case[1:] for case in ANSWERS], ids=[c[0] for c in ANSWERS]
)
async def test_form_answer_that_does_not_fit_leaves_the_question_open(
    server: Serving, data: Any, says: str
) -> None:
    """protocol.md 2.2: a form answer must fit the form; the error names the input."""
    session = f"form-{says}"
    async with raw(server) as client:
        await client.hello(session, ["text", "table", "form"], "input")
        await client.say(session, "ask")
        await client.until("turn", status="waiting")
        bad = {"session_id": session, "input_type": "form_submit", "source_component": "form"}
        await client.send(message(**bad, data=data, id="wrong"))
        error = await client.until("error")
        await client.send(message(**bad, data={"fields": {"name": "Ada"}}, id="right"))
        await client.until("commit", final=True)
        said = "".join(delta["payload"]["delta"] for delta in client.of("delta"))
        await client.send(message(**bad, data={"fields": {"name": "Eve"}}, id="late"))
        late = await client.until("error")
    assert error["payload"]["code"] == 11
    assert error["payload"]["id"] == "wrong"
    assert says in error["payload"]["error"]
    assert said == "thanks Ada"
    assert late["payload"]["id"] == "late"
    assert "answered" in late["payload"]["error"]


@pytest.mark.parametrize(
    ("source", "input_type", "data", "code"),
    [
        ("nothing", "action", {"action": "confirm"}, 1),
        ("rows", "action", {"action": "confirm"}, 11),
        ("form", "action", {"action": "delete"}, 11),
        ("form", "selection", {"selected": ["S"]}, 11),
    ],
)
async def test_input_that_its_component_does_not_offer_is_refused(
    server: Serving, source: str, input_type: str, data: Any, code: int
) -> None:
    """An action must be one that the component offers."""
    session = f"offer-{source}-{input_type}"
    async with raw(server) as client:
        await client.hello(session, ["text", "table", "form"], "input")
        await client.say(session, "ask")
        await client.until("turn", status="waiting")
        bad = {"session_id": session, "input_type": input_type, "source_component": source}
        await client.send(message(**bad, data=data))
        error = await client.until("error")
    assert error["payload"]["code"] == code


async def test_patch_reaches_into_props_only(server: Serving) -> None:
    """T40: paths such as `props.__class__` are refused, and the component is as it was."""
    async with raw(server) as client:
        await client.say("paths", "path")
        await client.until("commit", final=True)
        said = "".join(delta["payload"]["delta"] for delta in client.of("delta"))
    assert len(re.findall(r"\[InvalidPatch: ", said)) == 3
    assert client.of("patch") == []


async def test_refused_commit_shows_nothing_of_itself(server: Serving) -> None:
    """protocol.md 4: one invalid component and the committed state stays as it was."""
    async with raw(server) as client:
        await client.say("unknown", "unknown")
        await client.until("commit", final=True)
        said = "".join(delta["payload"]["delta"] for delta in client.of("delta"))
        ids = [c["id"] for render in client.of("render") for c in render["components"]]
    assert "ComponentUnsupported" in said
    assert "hologram" in said
    assert ids == ["kept"]


async def test_peer_that_sends_nothing_but_rubbish_is_closed(server: Serving) -> None:
    """T26: the errors have an end; the server goes on."""
    async with raw(server) as client:
        for _ in range(1001):
            await client.send("{")
        with pytest.raises(ConnectionClosed, match="1008"):
            await client.until("never")
    async with raw(server) as other:
        await other.say("after", "x")
        await other.until("commit", final=True)
