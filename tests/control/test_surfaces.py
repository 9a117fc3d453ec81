"""Changes of what shows: control-plane.md 2, `agentSession/surface/update`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from arp import App, Turn, ui
from arp.access.principal import Principal
from arp.control.control import Control
from arp.control.surfaces import UpdateSurface
from arp.protocol.errors import (
    ArpError,
    InvalidMessage,
    InvalidPatch,
    SessionNotFound,
    SurfaceDestroyed,
)
from arp.protocol.patch import Append, Update
from arp.testing import session
from tests.control.control_rig import controlled, said
from tests.hub.rig import Renderer
from tests.support.waiting import becomes


async def importer(turn: Turn) -> None:
    """Shows what a job changes later."""
    turn.show(ui.progress([ui.step("Import", "active")], id="job"), ui.table(["n"], [[1]], id="t"))


async def test_change_shows_on_every_renderer_and_begins_no_turn() -> None:
    async with controlled(importer) as control:
        hub = control.context.hub
        one, two = await Renderer(hub).join(), await Renderer(hub).join()
        await said(control)
        assert await one.ended("t1") == "completed"
        for percent in range(3):
            op = Update("job", "props.steps.0.detail", f"{percent} %")
            state = await control.surfaces.update(UpdateSurface(session_id="s", ops=[op]))
        await control.surfaces.update(
            UpdateSurface(session_id="s", ops=[Append("t", "props.rows", [[2]])])
        )
        assert (state.session_id, state.surface) == ("s", "main")
        for renderer in (one, two):
            main = renderer.screen.surfaces["main"]
            assert main.component("job").props["steps"][0]["detail"] == "2 %"
            assert main.component("t").props["rows"] == [[1], [2]]
            assert list(renderer.screen.turns) == ["t1"]


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"sessionId": "other", "ops": [{}]}, InvalidMessage),
        ({"sessionId": "s", "ops": []}, InvalidMessage),
        ({"sessionId": "s", "ops": [{"op": "remove", "target": "job"}]}, InvalidMessage),
        (
            {
                "sessionId": "other",
                "ops": [{"op": "update", "target": "job", "path": "props.title", "value": "x"}],
            },
            SessionNotFound,
        ),
        (
            {
                "sessionId": "s",
                "surface": "details",
                "ops": [{"op": "update", "target": "job", "path": "props.title", "value": "x"}],
            },
            SurfaceDestroyed,
        ),
        (
            {
                "sessionId": "s",
                "ops": [{"op": "update", "target": "nobody", "path": "props.title", "value": "x"}],
            },
            InvalidPatch,
        ),
    ],
)
async def test_wrong_change_is_refused(params: dict[str, Any], error: type[ArpError]) -> None:
    async with controlled(importer) as control:
        await said(control)
        with pytest.raises(error):
            await control.call("agentSession/surface/update", params)


async def test_session_of_somebody_else_is_not_found() -> None:
    async with controlled(importer) as control:
        await said(control)
        stranger = Control(control.context.plane, Principal("eve"))
        op = Update("job", "props.title", "mine")
        with pytest.raises(SessionNotFound):
            await stranger.surfaces.update(UpdateSurface(session_id="s", ops=[op]))


def app_with_a_job() -> App:
    app = App("Imports")
    app.agent("importer")(importer)
    return app


async def test_program_in_the_same_process_changes_what_shows() -> None:
    app = app_with_a_job()
    async with session(app) as user:
        turn = await user.say("go")
        await app.patch(user.session_id, "job", "props.title", "Nearly done", user="")

        def shown() -> object:
            return turn.component("progress").props.get("title")

        await becomes(lambda: shown() == "Nearly done")
        await asyncio.gather(
            *(app.patch(user.session_id, "job", "props.title", f"{n}") for n in range(20))
        )
        await becomes(lambda: shown() == "19")
        with pytest.raises(SessionNotFound):
            await app.patch(user.session_id, "job", "props.title", "x", user="eve")
        with pytest.raises(TypeError, match="target: expected str, got int"):
            await app.patch(user.session_id, 7, "props.title", "x")  # type: ignore[arg-type]
        with pytest.raises(InvalidPatch, match='did you mean "title"'):
            await app.patch(user.session_id, "job", "props.titel", "x")
