"""One JSON-RPC client: requests, batches, who may ask, and how much may wait for it."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from typing import Any

import pytest

from arp.control import connection as connections
from arp.control.control import METHODS, Control
from arp.control.facts import HIGH_WATER_BYTES
from arp.turn.turn import Turn
from tests.control.control_rig import SECRET, Client, controlled, facts, said
from tests.hub.rig import WAIT_S
from tests.support.waiting import becomes


async def test_initialize_lists_every_method() -> None:
    async with controlled() as control:
        result = await Client(control).result("initialize")
        assert set(METHODS) < set(result["methods"])
        assert "agentSession/subscribe" in result["methods"]
        assert result["schemaVersion"] == "lime-profile-0.4.0"


@pytest.mark.parametrize(
    ("method", "params", "number", "words"),
    [
        ("nope", {}, -32601, "no method 'nope'"),
        ("task/get", {"sessionId": "s"}, -32602, "task/get: params.taskId: missing"),
        ("task/get", {"sessionId": 3, "taskId": "t"}, -32602, "params.sessionId: expected string"),
        ("agentSession/read", {"sessionId": "s", "vue": 1}, -32602, "params.vue: unknown"),
        (
            "agentSession/turn/start",
            {"input": {"data": [5]}},
            -32602,
            "params.input: data: expected an object",
        ),
        ("agentSession/read", {"sessionId": "none"}, -32008, "no session 'none'"),
    ],
)
async def test_wrong_request_is_answered_with_what_is_wrong(
    method: str, params: dict[str, Any], number: int, words: str
) -> None:
    async with controlled() as control:
        answer = await Client(control).answer(method, **params)
        assert answer["error"]["code"] == number
        assert words in answer["error"]["message"]
        assert "result" not in answer


async def test_frame_that_cannot_be_read_is_answered_and_the_connection_lives() -> None:
    async with controlled() as control:
        client = Client(control)
        await client.connection.receive(b"{")
        answer = await client.until(lambda message: "error" in message)
        assert (answer["id"], answer["error"]["code"]) == (None, -32700)
        await client.result("initialize")


async def test_frame_beyond_the_limit_is_not_read() -> None:
    async with controlled() as control:
        client = Client(control)
        most = control.context.hub.settings.limits.max_message_bytes
        await client.connection.receive(b" " * most + b"1")
        answer = await client.until(lambda message: "error" in message)
        assert answer["error"]["code"] == -32600
        assert f"at most {most} bytes" in answer["error"]["message"]


async def test_batch_is_answered_by_one_array_without_its_notifications() -> None:
    async with controlled() as control:
        client = Client(control)
        start = {"input": {"text": "x"}, "sessionId": "s"}
        batch = [
            {"jsonrpc": "2.0", "id": "a", "method": "initialize"},
            {"jsonrpc": "2.0", "method": "agentSession/turn/start", "params": start},
            {"jsonrpc": "2.0", "id": "b", "method": "nope"},
            7,
        ]
        await client.connection.receive(json.dumps(batch))
        await becomes(lambda: bool(client.box.frames))
        (frame,) = client.box.frames
        answers = json.loads(frame)
        assert [one["id"] for one in answers] == ["a", "b", None]
        assert "s" in control.context.hub.sessions


async def test_notifications_alone_are_not_answered() -> None:
    async with controlled() as control:
        client = Client(control)
        for body in ({"method": "nope"}, {"method": "initialize"}):
            await client.connection.receive(json.dumps([{"jsonrpc": "2.0", **body}]))
        await client.result("initialize")
        assert len(client.box.frames) == 1


async def test_fault_of_ours_is_an_internal_error_without_its_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with controlled() as control:

        async def broken(*_: object, **__: object) -> None:
            raise RuntimeError("a secret")

        monkeypatch.setattr(control.context.hub, "metas", broken)
        answer = await Client(control).answer("agentSession/list")
        assert answer["error"]["code"] == -32603
        assert "secret" not in json.dumps(answer)
        assert "a secret" in caplog.text


# -- who may ask -----------------------------------------------------------------------------------


async def test_without_a_token_nothing_but_initialize_is_heard() -> None:
    async with controlled() as control:
        client = Client(control, None)
        trusted: list[bool] = []
        client.connection.on_trusted = lambda: trusted.append(True)
        assert (await client.answer("agentSession/list"))["error"]["code"] == -32014
        for token in ("wrong", ""):
            assert (await client.answer("initialize", token=token))["error"]["code"] == -32014
        assert trusted == []
        await client.result("initialize", token=SECRET)
        assert trusted == [True]
        assert (await client.result("agentSession/list")) == {"sessions": []}


async def test_connection_that_shows_no_token_in_time_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "TOKEN_DEADLINE_S", 0.01)
    async with controlled() as control:
        client = Client(control, None)
        await client.box.until(lambda: client.box.closed is not None)
        assert client.box.closed == (1008, "no valid token in time")
        known = Client(control)
        await known.result("initialize")
        assert known.box.closed is None


# -- how much may wait -----------------------------------------------------------------------------


async def test_client_that_does_not_read_is_not_read_from() -> None:
    async with controlled() as control:
        client = Client(control)
        client.box.buffered = HIGH_WATER_BYTES + 1
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize"})
        reading = asyncio.ensure_future(client.connection.receive(body))
        await asyncio.wait({reading}, timeout=0.02)
        assert not reading.done()
        assert client.box.frames == []
        client.box.buffered = 0
        client.connection.viewer.drained()
        await reading
        await client.until(lambda message: message.get("id") == 1)


async def test_requests_beyond_the_bound_wait_for_one_that_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MOST_REQUESTS", 2)
    async with controlled() as control, asyncio.timeout(WAIT_S):
        client, held = Client(control), asyncio.Event()

        async def waits(*_: object, **__: object) -> list[object]:
            await held.wait()
            return []

        monkeypatch.setattr(control.context.hub, "metas", waits)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "agentSession/list"})
        for _ in range(2):
            await client.connection.receive(body)
        third = asyncio.ensure_future(client.connection.receive(body))
        await asyncio.wait({third}, timeout=0.02)
        assert not third.done()
        held.set()
        await third
        await becomes(lambda: len(client.box.frames) == 3)


async def test_what_was_recorded_for_a_client_that_is_gone_goes_on() -> None:
    async with controlled() as control:
        client = Client(control)
        start = {"input": {"text": "hello"}, "sessionId": "s"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "agentSession/turn/start", "params": start}
        await client.connection.receive(json.dumps(body))
        await becomes(lambda: "s" in control.context.hub.sessions)
        client.connection.closed()
        live = control.context.hub.sessions["s"]
        await becomes(lambda: live.session.status_of("t1") == "completed")


# -- subscriptions ---------------------------------------------------------------------------------


async def test_subscriber_gets_stored_facts_and_then_live_ones_once_each() -> None:
    async with controlled() as control:
        await said(control)
        client = Client(control)
        subscribed = await client.result("agentSession/subscribe", sessionId="s", after=0)
        name = subscribed["subscriptionId"]
        assert (subscribed["resume"], subscribed["after"]) == ("events", 0)
        assert "snapshot" not in subscribed
        await said(control, "again")
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
        last = len(await facts(control))
        await becomes(lambda: len(client.events(name)) == last)
        assert [fact["sequence"] for fact in client.events(name)] == list(range(1, last + 1))


async def test_answer_of_a_subscription_comes_before_its_facts() -> None:
    async with controlled() as control:
        await said(control)
        client = Client(control)
        await client.result("agentSession/subscribe", sessionId="s", after=0)
        await becomes(lambda: len(client.messages) > 3)
        assert "result" in client.messages[0]
        assert all("method" in message for message in client.messages[1:])


@pytest.mark.parametrize("place", [{}, {"after": 1, "epoch": "other"}, {"after": 10_000}])
async def test_subscriber_without_a_place_in_this_log_gets_a_snapshot(
    place: dict[str, Any],
) -> None:
    async with controlled() as control:
        await said(control)
        live = await control.context.live("s")
        await becomes(lambda: live.session.running is None)
        last = len(await facts(control))
        client = Client(control)
        subscribed = await client.result("agentSession/subscribe", sessionId="s", **place)
        assert (subscribed["resume"], subscribed["after"]) == ("snapshot", last)
        assert subscribed["snapshot"]["sequence"] == last


async def test_slow_subscriber_is_told_nothing_until_it_reads() -> None:
    async with controlled() as control:
        await said(control)
        client = Client(control)
        subscribed = await client.result("agentSession/subscribe", sessionId="s")
        name = subscribed["subscriptionId"]
        client.box.buffered = HIGH_WATER_BYTES + 1
        for number in range(30):
            await said(control, f"turn {number}")
        assert client.events(name) == []
        client.box.buffered = 0
        client.connection.viewer.drained()
        live = await control.context.live("s")
        await becomes(lambda: not live.session.turns.is_active)
        last = len(await facts(control))
        await becomes(lambda: client.events(name)[-1]["sequence"] == last)
        assert [fact["sequence"] for fact in client.events(name)] == list(
            range(subscribed["after"] + 1, last + 1)
        )


async def test_nothing_comes_after_unsubscribing() -> None:
    async with controlled() as control:
        await said(control)
        client = Client(control)
        subscribed = await client.result("agentSession/subscribe", sessionId="s")
        name = subscribed["subscriptionId"]
        assert await client.result("agentSession/unsubscribe", subscriptionId=name) == {
            "subscriptionId": name
        }
        before = len(client.events(name))
        await said(control, "again")
        await facts(control)
        assert len(client.events(name)) == before
        again = await client.answer("agentSession/unsubscribe", subscriptionId=name)
        assert again["error"]["code"] == -32001


async def test_subscriptions_end_with_their_session_and_say_why() -> None:
    async with controlled() as control:
        await said(control)
        live = await control.context.live("s")
        await becomes(lambda: not live.session.turns.is_active)
        client = Client(control)
        await client.result("agentSession/subscribe", sessionId="s")
        await becomes(lambda: live.followers == 1)
        await control.context.hub.delete("s", control.context.principal)
        closed = await client.until(lambda m: m.get("method") == "agentSession/closed")
        assert closed["params"]["sessionId"] == "s"
        assert closed["params"]["error"]["data"]["name"] == "SESSION_NOT_FOUND"


async def test_subscriptions_are_bounded_and_end_with_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arp.control.connection.MOST_SUBSCRIPTIONS", 2)
    async with controlled() as control:
        await said(control)
        client = Client(control)
        for _ in range(2):
            await client.result("agentSession/subscribe", sessionId="s")
        refused = await client.answer("agentSession/subscribe", sessionId="s")
        assert refused["error"]["code"] == -32004
        live = await control.context.live("s")
        await becomes(lambda: live.followers == 2)
        client.connection.closed()
        await becomes(lambda: live.followers == 0)


async def test_subscribing_to_what_is_somebody_elses_is_refused() -> None:
    async with controlled() as control:
        answer = await Client(control).answer("agentSession/subscribe", sessionId="hers")
        assert answer["error"]["code"] == -32008


HOSTILE: dict[str, dict[str, Any]] = {
    "wide": {"text": "x", **{f"k{n}": n for n in range(19_900)}},
    "begins of keys": {"text": "sk-" * 300_000},
    "begins of keys in fields": {"text": "x", **{f"k{n}": "sk-" * 14 for n in range(18_000)}},
    "JSON in a text": {"text": json.dumps([{"a": "sk-"}] * 50_000)},
}


_numbers = itertools.count()


async def silent(_: Turn) -> None:
    """An agent that costs nothing."""


async def loop_s(control: Control, data: dict[str, Any]) -> float:
    """CPU seconds of the loop's own thread for one request with data, the least of three."""
    best = 1e9
    for _ in range(3):
        params = {"input": {"data": data}, "turnId": f"n{next(_numbers)}"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "agentSession/turn/start", "params": params}
        frame = json.dumps(body, separators=(",", ":"))
        client = Client(control)
        began = time.thread_time()
        await client.connection.receive(frame)
        await client.connection.wait_until_answered()
        best = min(best, time.thread_time() - began)
        (answer,) = client.messages
        assert "result" in answer, answer
    return best


@pytest.mark.parametrize(
    "name",
    [
        # Several seconds; `tests/hub/test_inbound.py` sends the same to the hub every day.
        pytest.param(name, marks=pytest.mark.slow) if name.startswith("begins of keys") else name
        for name in HOSTILE
    ],
)
async def test_large_request_costs_the_loop_little_more_than_text(name: str) -> None:
    """At most three times a text of 1 MiB, of which 8 ms is what it may cost on a busy machine."""
    async with controlled(silent) as control:
        text = await loop_s(control, {"text": "word " * 190_000})
        allowed = 3 * max(text, 0.008)
        for _ in range(10):  # the machine may have other work just then
            cost = await loop_s(control, HOSTILE[name])
            if cost <= allowed:
                return
        pytest.fail(f"{cost:.4f} s where {allowed:.4f} s are allowed")
