"""Tests of the agent beside: `cd examples/echo && pytest`."""

import pytest
from app import app

from arp.testing import session


@pytest.mark.asyncio
async def test_each_word_is_repeated() -> None:
    async with session(app) as user:
        turn = await user.say("Hello, every screen!")
        assert turn.status == "completed"
        assert turn.text == "Hello, every screen! "
