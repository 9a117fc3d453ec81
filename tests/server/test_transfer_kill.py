"""Two servers, one of which is killed in the middle of a transfer: the surface is never lost.

Source: docs/protocol.md 8, O27 to O29, and the table behind them.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.server.two_agents import APPS, Way, one_renderer
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

SHOWN = ["t", "q", "own"]

ASKS, TAKES, GIVES = '"leaving":{"', '"transfer:', '"transferred"'
"""Which writes there are, in this order: the first and the last in the giving ledger."""


def surfaces(server: Serving, session_id: str) -> dict[str, list[str]]:
    """Return what a session shows besides `main`: the ids of the components by surface."""

    def found() -> dict[str, list[str]]:
        hub = server.application.state.running
        assert hub is not None
        live = hub.sessions.get(session_id)
        trees = live.session.screen.surfaces if live is not None else {}
        return {
            name: [one.id for one in tree.output()]
            for name, tree in trees.items()
            if name != "main"
        }

    return server.call(found)


@asynccontextmanager
async def victim(
    agent: str, mark: str, moment: str, ledger: str
) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """Start an agent that is killed at a write; give its address and its process."""
    command = ("-m", "tests.server.transfer_victim", agent, mark, moment, ledger)
    child = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        yield (await child.stdout.readline()).decode().strip(), child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


@pytest.mark.parametrize(
    ("agent", "mark", "moment", "owner"),
    [
        ("giver", ASKS, "before", "giver"),  # the author had asked, and no renderer was
        ("giver", ASKS, "after", "taker"),  # it is asked by who comes back
        ("taker", TAKES, "before", "taker"),  # it is offered again
        ("taker", TAKES, "after", "taker"),  # it has it, and nobody knew
        ("giver", GIVES, "before", "taker"),  # both have it until a renderer comes back
        ("giver", GIVES, "after", "taker"),
    ],
)
async def test_a_server_that_is_killed_in_a_transfer_neither_loses_nor_doubles_the_surface(
    tmp_path: Path, agent: str, mark: str, moment: str, owner: str
) -> None:
    """Whichever of the two it is. Spec: O28, O29."""
    ledger, other = f"sqlite:{tmp_path / 'ledger.db'}", "taker" if agent == "giver" else "giver"
    with serving(APPS[other]) as alive:
        async with victim(agent, mark, moment, ledger) as (address, child):
            ways = {agent: Way(address), other: Way(alive.ws)}
            async with one_renderer(ways, "kill") as renderer:
                main = renderer.names["giver", "main"]
                await renderer.use("giver", main, "text", {"text": "kill-taker whole"})
                assert await child.wait() == -signal.SIGKILL
                await renderer.disconnect(agent)
                with serving(APPS[agent], ledger=ledger) as again:
                    await renderer.connect(agent, Way(again.ws))
                    servers = {agent: again, other: alive}
                    expected = {
                        "giver": {"side": SHOWN} if owner == "giver" else {},
                        "taker": {"acquired": SHOWN} if owner == "taker" else {},
                    }
                    await renderer.until(lambda: (agent, "main") in renderer.names)
                    await becomes(
                        lambda: (
                            expected
                            == {
                                name: surfaces(one, f"kill-{name}") for name, one in servers.items()
                            }
                        )
                    )
                    # It stays so: nothing is asked any more.
                    hub = servers["giver"].application.state.running
                    assert hub is not None
                    assert hub.sessions["kill-giver"].session.leaving == {}
                    await renderer.disconnect(agent)


async def test_a_renderer_that_is_gone_before_it_tells_the_old_owner_doubles_nothing() -> None:
    """The next renderer asks the new owner, which has the surface already. Spec: O28, O29."""
    with serving(APPS["giver"]) as giver, serving(APPS["taker"]) as taker:
        servers = {"giver": giver, "taker": taker}
        ways = {name: Way(one.ws) for name, one in servers.items()}
        async with one_renderer(ways, "gone") as renderer:
            renderer.ends_at_hand_over = True
            main = renderer.names["giver", "main"]
            await renderer.use("giver", main, "text", {"text": "gone-taker whole"})
            await renderer.until(lambda: renderer.handed)
            assert surfaces(giver, "gone-giver") == {"side": SHOWN}
            assert surfaces(taker, "gone-taker") == {"acquired": SHOWN}
        async with one_renderer(ways, "gone") as renderer:
            await becomes(lambda: surfaces(giver, "gone-giver") == {})
            assert surfaces(taker, "gone-taker") == {"acquired": SHOWN}
