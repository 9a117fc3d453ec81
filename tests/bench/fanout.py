"""One session on 200 renderers of one profile: what each delivered message costs the server.

The agent says a token every 10 ms; then it changes a property of a component as often, each time
one commit. The bare server sends a constant to 200 connections as often: a loop over them, each
send awaited in turn. What was delivered is counted where it arrived.
"""

from __future__ import annotations

import time

from msgspec import Struct

from tests.bench.crowd import Crowd
from tests.bench.figures import alone, compared, percentile, report, rounds
from tests.bench.heard import hear
from tests.bench.plan import END, Plan, order
from tests.bench.servers import Server, both

RENDERERS = 200
DELTAS = 300
INTERVAL_S = 0.01
MARK_EVERY = 10
HOLD_S = 0.3
LEAD_NS = 300_000_000
SETTLE_NS = 20_000_000
TARGET = 1.1


class Fanned(Struct):
    """What one server did in each round."""

    cpu_s: list[float] = []
    cpu_us: list[float] = []
    messages: list[float] = []
    p99_ms: list[float] = []


def measure(server: Server, fanned: Fanned, *, patches: bool) -> None:
    """Lets one server speak to all once."""
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
        crowd.members[0].tell(order(plan))
        crowd.read_until(begin_ns - SETTLE_NS)
        crowd.forget()
        before = server.cpu_s()
        crowd.wait_for(END.encode())
        cpu_s = server.cpu_s() - before
        heard = [hear(member.chunks) for member in crowd.members]
    for one in heard:
        one.check_whole(1 if patches else DELTAS)
    delivered = sum(one.messages for one in heard)
    fanned.cpu_s.append(cpu_s)
    fanned.cpu_us.append(cpu_s / delivered * 1e6)
    fanned.messages.append(delivered)
    if server.is_ours and not patches:
        fanned.p99_ms.append(percentile([age for one in heard for age in one.ages_ms], 99))


def main() -> None:
    texts, commits = (Fanned(), Fanned()), (Fanned(), Fanned())
    with both() as servers:
        for _ in range(rounds(3)):
            for pair, patches in ((texts, False), (commits, True)):
                for server, fanned in zip(servers, pair, strict=True):
                    measure(server, fanned, patches=patches)
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
