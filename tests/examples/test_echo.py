"""The smallest agent."""

from __future__ import annotations

import inspect

from arp.client.client import connect
from examples.echo import app as echo
from tests.support.serving import serving


async def test_it_repeats_what_was_said() -> None:
    with serving(echo.app, ledger="memory:") as server:
        async with connect(server.http) as client:
            turn = await client.ask("to be  or\nnot")
            assert client.screen.text(turn.id) == "to be or not "


def test_it_has_twelve_lines() -> None:
    assert len(inspect.getsource(echo).splitlines()) == 12
