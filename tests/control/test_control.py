"""`Control`: the same methods for a Python program, by hand or by name."""

from __future__ import annotations

import pytest

from arp.access.principal import Principal
from arp.control.control import METHODS
from arp.control.jsonrpc import UnknownMethod
from arp.live.settings import HubSettings
from arp.protocol.errors import InvalidMessage, PermissionDenied, UnknownObject
from arp.protocol.json_value import JsonObject
from tests.control.control_rig import controlled, types

LEDGER_5 = {
    "agentSession/turn/start",
    "agentSession/turn/cancel",
    "agentSession/action/respond",
    "agentSession/thread/resume",
    "agentSession/read",
    "agentSession/queue/remove",
    "agentSession/queue/promote",
    "task/create",
    "task/update",
    "task/retry",
    "task/complete",
    "task/cancel",
    "task/get",
    "task/list",
    "task/link",
}


def test_every_method_of_the_design_is_there() -> None:
    assert set(METHODS) >= LEDGER_5


async def test_method_may_be_called_by_its_name() -> None:
    async with controlled() as control:
        params = {"sessionId": "s", "input": {"text": "hello"}, "turnId": "mine"}
        state = await control.call("agentSession/turn/start", params)
        assert state.turn_id == "mine"


async def test_wrong_name_and_wrong_parameters_are_refused() -> None:
    async with controlled() as control:
        with pytest.raises(UnknownMethod, match="no method 'task/eat'"):
            await control.call("task/eat", {})
        with pytest.raises(InvalidMessage, match=r"task/list: params\.sessionId: missing"):
            await control.call("task/list", {})


_TASK = {"taskId": "t"}
_TRIAL = {"trialId": "x"}

READING: dict[str, JsonObject] = {
    "agentSession/list": {},
    "agentSession/read": {"sessionId": "s", "view": "thread"},
    "agentSession/events": {"sessionId": "s"},
    "agentSession/debug": {"sessionId": "s"},
    "agentSession/thread/resume": {"sessionId": "s"},
    "task/list": {"sessionId": "s"},
}
CHANGING: dict[str, JsonObject] = {
    "agentSession/thread/start": {},
    "agentSession/surface/update": {
        "ops": [{"op": "update", "target": "a", "path": "props.title", "value": "b"}]
    },
    "agentSession/turn/start": {"input": {"text": "hello"}},
    "agentSession/turn/cancel": {},
    "agentSession/queue/remove": {"turnId": "t1"},
    "agentSession/queue/promote": {"turnId": "t1"},
    "agentSession/action/respond": {"actionId": "t1/a", "response": True},
    "task/create": {"objective": "o"},
    "task/update": {**_TASK, "objective": "o"},
    "task/retry": _TASK,
    "task/complete": _TASK,
    "task/cancel": _TASK,
    "task/link": {**_TASK, "dependsOn": []},
    "evidence/export": {},
    "replay/export": {},
    "review/export": {},
    "benchmark/trial/start": {
        **_TRIAL,
        **_TASK,
        "benchmark": {"datasetId": "d", "datasetVersion": "1"},
        "input": {"text": "hello"},
    },
    "benchmark/reward/record": {**_TRIAL, "reward": 1.0},
    "benchmark/trial/export": _TRIAL,
    "benchmark/compare": {
        "baseline": [{"sessionId": "s", **_TRIAL}],
        "candidate": [{"sessionId": "s", **_TRIAL}],
    },
}


async def test_of_a_recording_everything_is_read_and_nothing_changed() -> None:
    assert {*READING, *CHANGING, "task/get"} == set(METHODS)  # the new ones too
    async with controlled(settings=HubSettings(takes_input=False)) as control:
        await control.context.hub.open("s", Principal(), "agent")
        before = await types(control)
        for name, params in READING.items():
            await control.call(name, params)
        with pytest.raises(UnknownObject):
            await control.call("task/get", {"sessionId": "s", **_TASK})
        for name, params in CHANGING.items():
            with pytest.raises(PermissionDenied, match="this is a recording"):
                await control.call(name, {"sessionId": "s", **params})
        assert await types(control) == before
