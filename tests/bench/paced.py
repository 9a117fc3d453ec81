"""500 sessions with one renderer each, whose agents say 20 tokens a second for 10 seconds.

It measures the server's processor time from just before the first token until the last one has
arrived; turns start before and end after that. The bare server has a task for each connection that
sends a constant at the same pace.
"""

from __future__ import annotations

import time

from msgspec import Struct

from tests.bench.crowd import Crowd
from tests.bench.figures import alone, compared, percentile, report, rounds
from tests.bench.plan import END, Plan, order
from tests.bench.received import decode
from tests.bench.servers import Server, both

SESSIONS = 500
INTERVAL_S = 0.05
DELTAS = 200
HOLD_S = 1.0
MARK_EVERY = 10
LEAD_NS = 1_500_000_000
"""Time for all turns to start."""
SETTLE_NS = 20_000_000
TARGET = 1.3
TARGET_P99_MS = 50.0


class PacedRounds(Struct):
    """The measurements of one server, one value for each round."""

    cpu_us: list[float] = []
    messages: list[float] = []
    p50_ms: list[float] = []
    p99_ms: list[float] = []
    worst_ms: list[float] = []
    lost: int = 0
    """Tokens that did not arrive, in all rounds."""


def measure(server: Server, measured: PacedRounds) -> None:
    """Measure one round on one server."""
    with Crowd(server.port, SESSIONS) as crowd:
        begin_ns = time.monotonic_ns() + LEAD_NS
        for number, member in enumerate(crowd.members):
            phase_ns = int(number * INTERVAL_S * 1e9 / SESSIONS)
            plan = Plan(
                DELTAS,
                INTERVAL_S,
                begin_ns=begin_ns + phase_ns,
                mark_every=MARK_EVERY,
                hold_s=HOLD_S,
            )
            member.send(order(plan))
        crowd.read_until(begin_ns - SETTLE_NS)
        crowd.forget()
        before = server.cpu_s()
        crowd.wait_for(END.encode())
        cpu_s = server.cpu_s() - before
        received = [decode(member.chunks) for member in crowd.members]
        crowd.wait_for(b'"final":true')
    lost = SESSIONS * DELTAS - sum(one.tokens for one in received)
    measured.lost += lost
    if not lost:
        for one in received:
            one.check_complete(DELTAS)
    measured.cpu_us.append(cpu_s / (SESSIONS * DELTAS) * 1e6)
    measured.messages.append(sum(one.messages for one in received))
    if server.is_ours:
        ages = [age for one in received for age in one.ages_ms]
        measured.p50_ms.append(percentile(ages, 50))
        measured.p99_ms.append(percentile(ages, 99))
        measured.worst_ms.append(max(ages))


def main() -> None:
    ours, bare = PacedRounds(), PacedRounds()
    with both() as (our_server, bare_server):
        for _ in range(rounds(3)):
            measure(our_server, ours)
            measure(bare_server, bare)
    report(
        "paced",
        [
            compared("server CPU per delta", "µs", ours.cpu_us, bare.cpu_us, TARGET),
            compared("WebSocket messages", "", ours.messages, bare.messages),
            alone("say to receipt, p50", "ms", ours.p50_ms),
            alone("say to receipt, p99", "ms", ours.p99_ms, TARGET_P99_MS),
            alone("say to receipt, worst", "ms", ours.worst_ms),
            alone("deltas lost", "", [ours.lost], 0),
        ],
    )
    if ours.lost:
        raise SystemExit(f"{ours.lost} tokens were lost")


if __name__ == "__main__":
    main()
