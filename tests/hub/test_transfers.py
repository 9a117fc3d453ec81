"""A surface that goes to another session is in exactly one of the two, whatever happens.

Source: architecture.md, "What must always hold", 2 and 10.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from arp import Turn, ui
from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.runner import HubApp
from arp.live.live_session import LiveSession, SessionWriteBatch
from arp.protocol.errors import TransferDenied
from arp.protocol.objects.messages import DisplayErrorEvent
from arp.store.blobs import MemoryBlobs
from arp.store.errors import StoreDamaged
from arp.store.sqlite import SqliteStore
from tests.hub.object_rig import Display
from tests.hub.rig import HeldStore, Renderer, quiet, running
from tests.support.waiting import becomes


async def surfaces(hub: Hub, session_id: str) -> dict[str, list[str]]:
    """Return the surfaces of a session besides `main`, with the ids that they show."""
    live = await hub.find(session_id, Principal())
    screen = live.session.screen
    named = [name for name in screen.surfaces if name != "main"]
    return {name: [one.id for one in screen.surfaces[name].output()] for name in named}


# -- in this server --------------------------------------------------------------------------------


@pytest.mark.parametrize(("moment", "owner"), [("before", "a"), ("within", "a"), ("after", "b")])
async def test_a_kill_leaves_the_surface_in_one_session(
    tmp_path: Path, moment: str, owner: str
) -> None:
    """Both sessions' facts are one transaction: never in both, never lost."""
    path = tmp_path / "ledger.db"
    command = [sys.executable, "-m", "tests.hub.transfer_child", moment, str(path)]
    done = await asyncio.to_thread(subprocess.run, command, check=False, timeout=30)
    assert done.returncode == -signal.SIGKILL
    store = SqliteStore(path)
    await store.open()
    hub = Hub(store, MemoryBlobs(), HubApp({"agent": quiet}))
    await hub.start()
    found = {name: await surfaces(hub, name) for name in ("a", "b")}
    await hub.aclose()
    other = "b" if owner == "a" else "a"
    assert found == {owner: {"side": ["x"]}, other: {}}


class PickyStore(HeldStore):
    """A store that takes nothing more of one session."""

    def __init__(self, refused: str) -> None:
        super().__init__()
        self.refused = refused
        self.is_picky = False

    def _last_of(self, session_id: str) -> int:
        if self.is_picky and session_id == self.refused:
            raise StoreDamaged(self.refused, 1)
        return super()._last_of(session_id)


@pytest.mark.parametrize("refused", ["a", "b"])
async def test_a_store_that_refuses_one_session_takes_nothing_of_the_other(refused: str) -> None:
    """A third session, which was in the same write, goes on."""
    store = PickyStore(refused)

    async def agent(turn: Turn) -> None:
        if turn.session_id != "a":
            return
        side = turn.surface("side")
        side.show(ui.text("content", id="x"))
        await turn.say("Shown. ")
        await hub.sessions["a"].written()
        store.hold()
        await turn.say("Written. ")
        await store.waiting.wait()
        await third.say("beside")  # goes into the same write as the transfer
        store.is_picky = True
        giving = asyncio.ensure_future(side.transfer(to_session="b"))
        await asyncio.sleep(0)
        store.release()
        await giving

    async with running(agent, store=store) as hub:
        await Renderer(hub, "b").join()
        third = await Renderer(hub, "c").join()
        one = await Renderer(hub, "a").join()
        await one.say("go")
        await one.box.until(lambda: one.box.closed is not None)
        await third.ended("t1")
        store.is_picky = False
        assert await surfaces(hub, "a") == {"side": ["x"]}
        assert await surfaces(hub, "b") == {}


async def test_a_session_that_cannot_be_gathered_takes_nothing_of_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fault of our own in one of the two: both come back from the ledger as they were."""

    async def agent(turn: Turn) -> None:
        if turn.session_id == "a":
            side = turn.surface("side")
            side.show(ui.text("content", id="x"))
            await turn.say("Shown. ")
            await hub.sessions["a"].written()
            monkeypatch.setattr(LiveSession, "gather", broken)
            await side.transfer(to_session="b")

    gather = LiveSession.gather

    def broken(live: LiveSession, at: str) -> SessionWriteBatch:
        if live.id == "a":
            monkeypatch.setattr(LiveSession, "gather", gather)
            raise ZeroDivisionError
        return gather(live, at)

    async with running(agent) as hub:
        two = await Renderer(hub, "b").join()
        one = await Renderer(hub, "a").join()
        await one.say("go")
        for renderer in (one, two):
            await renderer.box.until(lambda box=renderer.box: box.closed is not None)  # type: ignore[misc]
        assert await surfaces(hub, "a") == {"side": ["x"]}
        assert await surfaces(hub, "b") == {}


# -- by way of a renderer --------------------------------------------------------------------------


async def test_a_renderer_that_goes_away_has_not_handed_the_surface_over() -> None:
    """The author is told that nobody knows, and still has the surface. Spec: O29."""
    told: list[str] = []

    async def agent(turn: Turn) -> None:
        side = turn.surface("side")
        side.show(ui.text("x", id="x"))
        with pytest.raises(TransferDenied) as error:
            await side.transfer(to_session="elsewhere")
        told.append(error.value.message)
        with pytest.raises(TransferDenied, match="there is no session 'elsewhere' of this user"):
            await side.transfer(to_session="elsewhere")
        assert side.is_open

    async with running(agent) as hub:
        watcher: Renderer
        async with Display(hub) as display:
            await display.open()
            (name,) = hub.sessions
            watcher = await Renderer(hub, name).join()
            await display.say("go")
            await display.until(lambda: display.asked)
            (live,) = hub.sessions.values()
        assert await watcher.ended("t1") == "completed"
        assert live.session.tree("side") is not None
    (message,) = told
    assert message == (
        "the outcome of the transfer is unknown: no renderer has confirmed that session "
        "'elsewhere' has surface 'side'; renderers that join are asked again"
    )


async def test_a_surface_that_is_closed_meanwhile_is_not_handed_over() -> None:
    """A user closes it while the renderer is asked; the author hears of both."""
    told: list[str] = []

    async def agent(turn: Turn) -> None:
        side = turn.surface("side")
        side.show(ui.text("x", id="x"))
        with pytest.raises(TransferDenied, match="is closed"):
            await side.transfer(to_session="elsewhere")
        told.append(await side.closed)

    async with running(agent) as hub, Display(hub) as display:
        await display.open()
        await display.say("go")
        await display.until(lambda: display.asked)
        display.end.close(display.names["side"])
        await display.flush()
        await display.until(lambda: display.finals)
    assert told == ["user"]


async def no_answer(display: Display, code: int = 17) -> None:
    """Lets the renderer refuse to hand `side` over; by default it says that it does not know."""
    surface_id = display.names["side"]
    number = display.end.objects.surface(surface_id).transfer
    display.end.send(0, DisplayErrorEvent(surface_id, code, "no answer", number))
    await display.flush()


async def test_a_surface_that_another_session_may_have_goes_to_no_third_one() -> None:
    """Its renderer is asked again, with the same id, until it knows. Spec: O29."""
    told: list[str] = []

    async def agent(turn: Turn) -> None:
        side = turn.surface("side")
        side.show(ui.text("x", id="x"))
        for to_session in ("elsewhere", "nowhere", "here"):
            with pytest.raises(TransferDenied) as error:
                await side.transfer(to_session=to_session)
            told.append(error.value.message)
        told.append(await side.closed)

    async with running(agent) as hub, Display(hub) as display:
        await display.open()
        (name,) = hub.sessions
        await Renderer(hub, "here").join()
        await display.say("go")
        await display.until(lambda: display.asked)
        await no_answer(display)
        await display.until(lambda: len(display.asked) > 1)
        first, second, *_ = display.asked
        assert first == second
        assert first.transfer_id
        await no_answer(display, 9)  # it was refused now, and may have been taken then
        await display.until(lambda: len(display.asked) > 2)
        assert hub.sessions[name].session.leaving == {"side": first}
        display.end.hand_over(display.names["side"])
        await display.flush()
        await display.until(lambda: display.finals)
        assert hub.sessions[name].session.leaving == {}
        assert await surfaces(hub, "here") == {}
    unclear, *denied, closed = told
    assert unclear.startswith("the outcome of the transfer is unknown: no renderer has confirmed")
    wanted = (
        "surface 'side' is being transferred to session 'elsewhere', which may have it already; "
        "close it, or transfer it there"
    )
    assert (denied, closed) == ([wanted, wanted], "transferred")


async def test_a_surface_that_is_refused_at_once_is_not_asked_for_again() -> None:
    """Neither by who is there nor by who joins; it may go elsewhere. Spec: O27."""

    async def agent(turn: Turn) -> None:
        side = turn.surface("side")
        side.show(ui.text("x", id="x"))
        with pytest.raises(TransferDenied, match="no answer"):
            await side.transfer(to_session="elsewhere")
        await side.transfer(to_session="here")

    async with running(agent) as hub, Display(hub) as display:
        await display.open()
        (name,) = hub.sessions
        await Renderer(hub, "here").join()
        await display.say("go")
        await display.until(lambda: display.asked)
        await no_answer(display, 9)
        await display.until(lambda: display.finals)
        assert hub.sessions[name].session.leaving == {}
        assert await surfaces(hub, "here") == {"side": ["x"]}
        assert len(display.asked) == 1


async def test_a_turn_that_is_stopped_while_it_waits_does_not_stop_the_transfer() -> None:
    """The renderer has been asked; the surface goes when it says so."""

    async def agent(turn: Turn) -> None:
        side = turn.surface("side")
        side.show(ui.text("x", id="x"))
        await side.transfer(to_session="elsewhere")

    async with running(agent) as hub, Display(hub) as display:
        await display.open()
        (name,) = hub.sessions
        await display.say("go")
        await display.until(lambda: display.asked)
        await display.use("action", {"action": "arp.cancel"})
        await display.until(lambda: display.finals)
        assert await surfaces(hub, name) == {"side": ["x"]}
        display.end.hand_over(display.names["side"])
        await display.flush()
        await becomes(lambda: hub.sessions[name].session.tree("side") is None)
