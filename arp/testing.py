"""Tools for tests of your own agents: an app is served in this process, and tests use it.

    from arp.testing import session

    async def test_the_sales_are_shown() -> None:
        async with session(app) as user:
            turn = await user.say("Show the sales")
            assert turn.components("chart")

No socket is opened, and nothing is a mock: the app, its ledger, the hub and the protocol are those
of `arp serve`. `FakeRuntime` is an agent runtime with scripted turns, for tests of code that drives
runtimes.
"""

from arp.runtime.plain.fake import (
    Fails,
    FakeRuntime,
    Says,
    Step,
    Tells,
    Thinks,
    Uses,
    Waits,
)
from arp.testbed.rendered_question import RenderedQuestion
from arp.testbed.rendered_turn import RenderedTurn
from arp.testbed.served_app import ServedApp, serve, session
from arp.testbed.snapshot import as_seen
from arp.testbed.virtual_renderer import VirtualRenderer

__all__ = [
    "Fails",
    "FakeRuntime",
    "RenderedQuestion",
    "RenderedTurn",
    "Says",
    "ServedApp",
    "Step",
    "Tells",
    "Thinks",
    "Uses",
    "VirtualRenderer",
    "Waits",
    "as_seen",
    "serve",
    "session",
]
