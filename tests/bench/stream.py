"""Four connections, 20,000 tokens each, as fast as the agent can say them.

Measured is the server's processor time from the order until every renderer has the final commit, over the
tokens said.
"""

from __future__ import annotations

import time

from msgspec import Struct

from tests.bench.crowd import Crowd
from tests.bench.figures import Figure, alone, compared, percentile, report, rounds
from tests.bench.heard import hear
from tests.bench.plan import Plan, order
from tests.bench.servers import Server, both

CONNECTIONS = 4
DELTAS = 20_000
TARGET = 0.7


class Streamed(Struct):
    """What one server did in each round."""

    cpu_us: list[float] = []
    per_s: list[float] = []
    messages: list[float] = []
    p50_ms: list[float] = []
    p99_ms: list[float] = []


def measure(server: Server, streamed: Streamed | None) -> None:
    """Lets one server stream once; `None` = to warm up."""
    said = CONNECTIONS * DELTAS
    with Crowd(server.port, CONNECTIONS) as crowd:
        crowd.forget()
        text = order(Plan(DELTAS))
        before, began = server.cpu_s(), time.monotonic()
        for member in crowd.members:
            member.tell(text)
        crowd.wait_for(b'"final":true')
        took, cpu_s = time.monotonic() - began, server.cpu_s() - before
        heard = [hear(member.chunks) for member in crowd.members]
    for one in heard:
        one.check_whole(DELTAS)
    if streamed is None:
        return
    streamed.cpu_us.append(cpu_s / said * 1e6)
    streamed.per_s.append(said / took)
    streamed.messages.append(sum(one.messages for one in heard))
    if server.is_ours:
        ages = [age for one in heard for age in one.ages_ms]
        streamed.p50_ms.append(percentile(ages, 50))
        streamed.p99_ms.append(percentile(ages, 99))


def main() -> None:
    ours, bare = Streamed(), Streamed()
    with both() as (our_server, bare_server):
        for number in range(rounds(7) + 1):
            measure(our_server, ours if number else None)
            measure(bare_server, bare if number else None)
    figures: list[Figure] = [
        compared("server CPU per delta", "µs", ours.cpu_us, bare.cpu_us, TARGET),
        compared("deltas per second", "/s", ours.per_s, bare.per_s),
        compared("WebSocket messages", "", ours.messages, bare.messages),
        alone("say to receipt, p50", "ms", ours.p50_ms),
        alone("say to receipt, p99", "ms", ours.p99_ms),
    ]
    report("stream", figures)


if __name__ == "__main__":
    main()
