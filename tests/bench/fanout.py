"""One session on 200 renderers of one profile: the server's cost of each delivered message.

The agent says a token every 10 ms; then it changes a property of a component every 10 ms, each
change in one commit. The bare server sends a constant to 200 connections at the same rate, in a
loop that awaits each send. Deliveries are counted by the receivers.
"""

from __future__ import annotations

import time

from msgspec import Struct

from tests.bench.crowd import Crowd
from tests.bench.figures import alone, compared, percentile, report, rounds
from tests.bench.plan import END, Plan, order
from tests.bench.received import decode
from tests.bench.servers import Server, both

RENDERERS = 200
DELTAS = 300
INTERVAL_S = 0.01
MARK_EVERY = 10
HOLD_S = 0.3
LEAD_NS = 300_000_000
SETTLE_NS = 20_000_000
TARGET = 1.1


class FanoutRounds(Struct):
    """The measurements of one server, one value for each round."""

    cpu_s: list[float] = []
    cpu_us: list[float] = []
    messages: list[float] = []
    p99_ms: list[float] = []


def measure(server: Server, measured: FanoutRounds, *, patches: bool) -> None:
    """Measure one round on one server."""
    session_id = f"fanout-{time.monotonic_ns()}"
    with Crowd(server.port, RENDERERS, session_id) as crowd:
        begin_ns = time.monotonic_ns() + LEAD_NS
        plan = Plan(
            DELTAS,
            INTERVAL_S,
            begin_ns=begin_ns,
            mark_every=MARK_EVERY,
            hold_s=HOLD_S,
            to_all=True,
            patches=patches,
        )
        crowd.members[0].send(order(plan))
        crowd.read_until(begin_ns - SETTLE_NS)
        crowd.forget()
        before = server.cpu_s()
        crowd.wait_for(END.encode())
        cpu_s = server.cpu_s() - before
        received = [decode(member.chunks) for member in crowd.members]
    for one in received:
        one.check_complete(1 if patches else DELTAS)
    delivered = sum(one.messages for one in received)
    measured.cpu_s.append(cpu_s)
    measured.cpu_us.append(cpu_s / delivered * 1e6)
    measured.messages.append(delivered)
    if server.is_ours and not patches:
        measured.p99_ms.append(percentile([age for one in received for age in one.ages_ms], 99))


def main() -> None:
    texts, commits = (FanoutRounds(), FanoutRounds()), (FanoutRounds(), FanoutRounds())
    with both() as servers:
        for _ in range(rounds(3)):
            for pair, patches in ((texts, False), (commits, True)):
                for server, measured in zip(servers, pair, strict=True):
                    measure(server, measured, patches=patches)
    (text, bare_text), (commit, bare_commit) = texts, commits
    report(
        "fanout",
        [
            compared("CPU per delivered delta", "µs", text.cpu_us, bare_text.cpu_us, TARGET),
            compared("CPU in all", "s", text.cpu_s, bare_text.cpu_s),
            compared("deltas delivered", "", text.messages, bare_text.messages),
            alone("say to receipt, p99", "ms", text.p99_ms),
            compared("CPU per delivered commit", "µs", commit.cpu_us, bare_commit.cpu_us, TARGET),
            compared("CPU in all", "s", commit.cpu_s, bare_commit.cpu_s),
            compared("commits delivered", "", commit.messages, bare_commit.messages),
        ],
    )


if __name__ == "__main__":
    main()
