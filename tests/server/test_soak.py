"""The load of `make soak`, for some seconds: every client is served, and all sessions leave."""

from __future__ import annotations

import time

from tests.bench.soak import Load, Options, rest
from tests.bench.soak_agent import app
from tests.support.serving import serving

RUN_S = 3.0


async def test_mixed_load_is_served_and_leaves_no_session_in_memory() -> None:
    """Each turn is waited for by its client; one that is lost ends the load with an error."""
    with serving(app) as server:
        load = Load(server.port, Options(sessions=20, turns_per_session=6))
        await load.run(time.monotonic() + RUN_S)
        await rest(server.port)
    assert load.visits > 0
    assert load.turns >= 3 * load.visits
