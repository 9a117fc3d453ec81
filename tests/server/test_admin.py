"""An admin reads the sessions of all users, each look is a fact, and writes nothing anywhere."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from arp import Access, App, IncomingConnection, Turn, User
from arp.access.tokens import IssuedToken, TokenFile, new_token_id
from arp.control.connection import OWN_METHODS
from arp.control.control import METHODS
from arp.live.settings import HubSettings
from arp.protocol.errors import ErrorCode
from tests.server.rpc import Rpc, RpcFailed, rpc
from tests.support.serving import Serving, serving

SECRET = "what ann said to her agent"

USERS = {
    "ann": User("ann"),
    "bob": User("bob", roles=["admin"]),
    "ops": User("ops", roles=["operator"]),
}


def authenticate(connection: IncomingConnection) -> User | None:
    return USERS.get(connection.token)


app = App(
    "Admin",
    access=Access(authenticate=authenticate, admin_role="operator"),
    settings=HubSettings(stop_grace_s=0.1),
)


@app.agent
async def agent(turn: Turn) -> None:
    """Asks, so that there is a question too."""
    ref = await turn.save_file("notes.txt", SECRET.encode())
    await turn.say(f"{turn.text} {turn.file_url(ref)}")
    await turn.confirm("Sure?")


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    ledger = tmp_path_factory.mktemp("admin") / "app.db"
    with serving(app, ledger=f"sqlite:{ledger}") as running:
        yield running


@pytest.fixture
async def ann(server: Serving) -> AsyncIterator[httpx.AsyncClient]:
    """Ann's own client, with a session `hers` that waits for an answer."""
    async with httpx.AsyncClient(base_url=server.http, headers=bearer("ann")) as client:
        if not (await client.get("/_api/chats")).json():
            asked = {"message": SECRET, "session_id": "hers"}
            (await client.post("/agent", json=asked)).raise_for_status()
        yield client


async def facts(ann: httpx.AsyncClient) -> list[dict[str, Any]]:
    """All facts of the session, as its owner reads them."""
    found: list[dict[str, Any]] = (await ann.get("/_api/sessions/hers/events?limit=1000")).json()[
        "events"
    ]
    return found


async def looks(ann: httpx.AsyncClient) -> list[str]:
    """Who has looked at the session, in order."""
    return [one["payload"]["viewer"] for one in await facts(ann) if "viewer" in one["payload"]]


def as_user(server: Serving, name: str) -> Any:
    return rpc(server.port, additional_headers=bearer(name))


# -- what an admin may ----------------------------------------------------------------------------


async def test_admin_lists_all_sessions_without_what_was_said(
    server: Serving, ann: httpx.AsyncClient
) -> None:
    before = await facts(ann)
    async with as_user(server, "ops") as ops:
        listed = await ops.call("agentSession/list", allUsers=True)
        own = await ops.call("agentSession/list")
    (row,) = [row for row in listed["sessions"] if row["sessionId"] == "hers"]
    assert (row["owner"], row["title"], row["turns"]) == ("ann", "", 1)
    assert own["sessions"] == []
    assert SECRET not in json.dumps(listed)
    assert await facts(ann) == before


READS: dict[str, dict[str, Any]] = {
    "agentSession/read": {"sessionId": "hers"},
    "agentSession/events": {"sessionId": "hers"},
    "agentSession/debug": {"sessionId": "hers"},
    "agentSession/subscribe": {"sessionId": "hers", "after": 0},
}


@pytest.mark.parametrize("method", READS)
async def test_each_look_of_an_admin_is_a_fact_before_anything_shows(
    server: Serving, ann: httpx.AsyncClient, method: str
) -> None:
    before = await looks(ann)
    async with as_user(server, "ops") as ops:
        await ops.call(method, **READS[method])
        assert await looks(ann) == [*before, "ops"]
        await ops.call(method, **READS[method])  # still the same look
        await ops.call("agentSession/read", sessionId="hers")
    assert await looks(ann) == [*before, "ops"]
    async with as_user(server, "ops") as ops:
        answer = await ops.call(method, **READS[method])
    assert await looks(ann) == [*before, "ops", "ops"]
    if method == "agentSession/events":
        assert SECRET in json.dumps(answer)


@pytest.mark.parametrize("path", ["snapshot", "thread", "verification", "events"])
async def test_each_request_over_http_is_a_look(
    server: Serving, ann: httpx.AsyncClient, path: str
) -> None:
    before = await looks(ann)
    async with httpx.AsyncClient(base_url=server.http, headers=bearer("ops")) as ops:
        for _ in range(2):
            assert (await ops.get(f"/_api/sessions/hers/{path}")).status_code == 200
    assert await looks(ann) == [*before, "ops", "ops"]


async def test_look_changes_no_list_and_no_screen_of_the_owner(
    server: Serving, ann: httpx.AsyncClient
) -> None:
    before = (await ann.get("/_api/chats")).json(), (await ann.get("/_api/chats/hers")).json()
    async with httpx.AsyncClient(base_url=server.http, headers=bearer("ops")) as ops:
        assert (await ops.get("/_api/sessions/hers/snapshot")).status_code == 200
    after = (await ann.get("/_api/chats")).json(), (await ann.get("/_api/chats/hers")).json()
    assert after == before


async def test_own_session_of_an_admin_is_read_as_that_of_anybody(server: Serving) -> None:
    async with httpx.AsyncClient(base_url=server.http, headers=bearer("ops")) as ops:
        asked = {"message": "mine", "session_id": "of-ops"}
        (await ops.post("/agent", json=asked)).raise_for_status()
        found = (await ops.get("/_api/sessions/of-ops/events")).json()["events"]
        listed = (await ops.get("/_api/sessions?allUsers=true")).json()["sessions"]
    assert not [one for one in found if "viewer" in one["payload"]]
    (row,) = [row for row in listed if row["sessionId"] == "of-ops"]
    assert (row["owner"], row["title"]) == ("ops", "mine")


async def test_session_that_there_is_not_is_none_for_an_admin_too(server: Serving) -> None:
    async with as_user(server, "ops") as ops:
        with pytest.raises(RpcFailed) as refused:
            await ops.call("agentSession/read", sessionId="none")
    assert refused.value.code == ErrorCode.SESSION_NOT_FOUND


async def test_agent_cannot_say_that_somebody_has_looked() -> None:
    """What an agent records is no look."""
    forging = App()

    @forging.agent
    async def forge(turn: Turn) -> None:
        try:
            turn.record("session.updated", {"viewer": "ops"})
        except Exception as error:  # noqa: BLE001
            await turn.say(str(error))

    with serving(forging) as server:
        async with httpx.AsyncClient(base_url=server.http) as client:
            answered = await client.post("/forge", json={"message": "x"})
    assert "session.updated is recorded by the session itself" in answered.json()["text"]


# -- what an admin may not ------------------------------------------------------------------------

TARGET: dict[str, dict[str, Any]] = {
    "agentSession/thread/start": {},
    "agentSession/thread/resume": {},
    "agentSession/turn/start": {"input": {"text": "x"}},
    "agentSession/turn/cancel": {},
    "agentSession/queue/remove": {"turnId": "t"},
    "agentSession/queue/promote": {"turnId": "t"},
    "agentSession/surface/update": {
        "ops": [{"op": "update", "target": "c", "path": "/label", "value": "x"}]
    },
    "agentSession/action/respond": {"actionId": "a", "response": {"decision": "accept"}},
    "task/create": {"objective": "x"},
    "task/update": {"taskId": "t"},
    "task/retry": {"taskId": "t"},
    "task/complete": {"taskId": "t"},
    "task/cancel": {"taskId": "t"},
    "task/get": {"taskId": "t"},
    "task/list": {},
    "task/link": {"taskId": "t"},
    "evidence/export": {},
    "replay/export": {},
    "review/export": {},
    "benchmark/trial/start": {
        "trialId": "x",
        "benchmark": {"datasetId": "d", "datasetVersion": "1", "configurationId": "c"},
        "refs": {"harborJobRef": "j", "harborTrialRef": "r", "taskTomlRef": "t", "rewardRef": "w"},
        "taskId": "t",
        "input": {"text": "x"},
    },
    "benchmark/reward/record": {"trialId": "x", "reward": 1},
    "benchmark/trial/export": {"trialId": "x"},
    "benchmark/compare": {
        "baseline": [{"sessionId": "hers", "trialId": "x"}],
        "candidate": [{"sessionId": "hers", "trialId": "y"}],
    },
}
"""Every method that is no look, with what it needs besides the session."""


def test_every_method_is_either_a_look_or_tried_here() -> None:
    of_connection = {"initialize", "agentSession/unsubscribe"}
    known = {*TARGET, *READS, "agentSession/list"}
    assert known == {*METHODS, *OWN_METHODS} - of_connection


async def refusals(program: Rpc, methods: dict[str, dict[str, Any]]) -> dict[str, int]:
    """The code with which each method is refused for Ann's session."""
    found = {}
    for method, params in methods.items():
        with pytest.raises(RpcFailed) as refused:
            await program.call(method, **{"sessionId": "hers", **params})
        found[method] = refused.value.code
    return found


@pytest.mark.parametrize("name", ["ops", "bob"])
async def test_nobody_writes_into_the_session_of_another(
    server: Serving, ann: httpx.AsyncClient, name: str
) -> None:
    """Neither an admin, nor somebody whose role is only called so."""
    before = await facts(ann)
    async with as_user(server, name) as program:
        codes = await refusals(program, TARGET)
    assert codes == dict.fromkeys(TARGET, ErrorCode.SESSION_NOT_FOUND)
    assert await facts(ann) == before


INPUT = {
    **{"v": 1, "type": "input", "input_type": "text"},
    **{"data": {"text": "x"}, "session_id": "hers"},
}

ROUTES = [
    ("POST", "/agent", {"message": "x", "session_id": "hers"}),
    ("POST", "/_arp/v1/input", INPUT),
    ("GET", "/_arp/v1/events?session_id=hers", None),
    ("GET", "/_api/chats/hers", None),
    ("PATCH", "/_api/chats/hers", {"title": "x"}),
    ("DELETE", "/_api/chats/hers", None),
    ("GET", "/_api/runs?session_id=hers", None),
    ("GET", "/_api/runs/hers.TURN", None),
    ("GET", "/_api/runs/stream/hers.TURN", None),
    ("GET", "FILE", None),
]


@pytest.mark.parametrize("name", ["ops", "bob"])
async def test_no_other_route_knows_an_admin(
    server: Serving, ann: httpx.AsyncClient, name: str
) -> None:
    before = await facts(ann)
    turn = next(one["turnId"] for one in before if one["type"] == "turn.submitted")
    (said,) = (await ann.get("/_api/chats/hers")).json()["messages"][1:]
    path = said["content"].rpartition(" ")[2]
    assert (await ann.get(path)).text == SECRET
    async with httpx.AsyncClient(base_url=server.http, headers=bearer(name)) as other:
        for method, route, body in ROUTES:
            url = route.replace("TURN", turn).replace("FILE", path)
            answered = await other.request(method, url, json=body)
            assert answered.status_code == 404, (method, url)
            assert SECRET not in answered.text
        assert "hers" not in (await other.get("/_api/chats")).text
        assert SECRET not in (await other.get(f"/_api/chats?query={SECRET[:8]}")).text
        assert "hers" not in (await other.get("/_api/runs")).text
    assert await facts(ann) == before


async def test_admin_joins_no_session_as_a_renderer(
    server: Serving, ann: httpx.AsyncClient
) -> None:
    before = await facts(ann)
    async with connect(server.ws, additional_headers=bearer("ops")) as socket:
        hello = {"type": "hello", "v": 1, "session_id": "hers", "capabilities": {"components": []}}
        await socket.recv()
        await socket.send(json.dumps(hello))
        answer = json.loads(await socket.recv())
    assert answer["payload"]["code"] == ErrorCode.SESSION_NOT_FOUND
    assert await facts(ann) == before


# -- everybody else -------------------------------------------------------------------------------


async def test_who_is_no_admin_reads_nothing_of_others(
    server: Serving, ann: httpx.AsyncClient
) -> None:
    """Bob's role is called `admin`, but the app has named another one."""
    before = await facts(ann)
    async with as_user(server, "bob") as bob:
        assert await refusals(bob, READS) == dict.fromkeys(READS, ErrorCode.SESSION_NOT_FOUND)
        with pytest.raises(RpcFailed, match="only an admin may list the sessions of all users"):
            await bob.call("agentSession/list", allUsers=True)
        assert (await bob.call("agentSession/list"))["sessions"] == []
    async with httpx.AsyncClient(base_url=server.http, headers=bearer("bob")) as client:
        for path in ("snapshot", "thread", "verification", "events"):
            assert (await client.get(f"/_api/sessions/hers/{path}")).status_code == 404
        assert (await client.get("/_api/sessions?allUsers=true")).status_code == 403
        assert (await client.get("/_api/user")).json()["user"]["is_admin"] is False
    assert await facts(ann) == before


async def test_role_admin_of_an_issued_token_needs_no_setting(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "app.tokens")
    now = time.time()
    text, names = {}, {"ann": (), "root": ("admin",)}
    for name, roles in names.items():
        issued = IssuedToken(new_token_id(), name, now, now + 600, roles)
        text[name] = tokens.create(issued)
    plain = App()
    plain.agent(agent)
    with serving(plain, ledger=f"sqlite:{tmp_path / 'app.db'}") as server:
        async with httpx.AsyncClient(base_url=server.http) as client:
            asked = {"message": SECRET, "session_id": "hers"}
            await client.post("/agent", json=asked, headers=bearer(text["ann"]))
            path = "/_api/sessions/hers/events"
            read = await client.get(path, headers=bearer(text["root"]))
            assert SECRET in read.text
            last = (await client.get(path, headers=bearer(text["ann"]))).json()["events"][-1]
    assert (last["type"], last["payload"]) == ("session.updated", {"viewer": "root"})
