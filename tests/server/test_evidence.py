"""One turn in which much goes wrong, and what evidence tells of it, over the real server.

A tool that fails, a denied permission, 10 MiB from a process, a second attempt, a cancel: one pack
tells all of it with stable ids, can be verified, and plays the screens again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from arp.access.principal import Principal
from arp.audit.evidence.fact_lines import split_line
from arp.audit.evidence.manifest import FACTS
from arp.audit.evidence.pack import Pack
from arp.cli import main
from arp.hub.readers.player import Player
from arp.ledger.fact import decode
from arp.protocol.codec import agent_decoder
from arp.protocol.connection.screen import Screen
from arp.protocol.json_value import Json
from tests.hub.rig import running
from tests.server import eventful
from tests.server.rpc import Rpc, rpc
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.timeout(120)

WHOLE = b"0123456789abcde\n" * 65536 * eventful.MIB
SESSION = "eventful session/1"


def arp(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@contextmanager
def served(ledger: Path) -> Iterator[Serving]:
    with serving(eventful.app, ledger=f"sqlite:{ledger}") as server:
        yield server


async def happen(program: Rpc) -> None:
    """Lets the turn run until it waits, and stops it; then another one, which goes well."""
    await program.say(SESSION, "Count the rows", turnId="order-1")
    await program.follow(SESSION)
    await program.until("cost.recorded")
    await program.call("agentSession/turn/cancel", sessionId=SESSION, turnId="order-1")
    await program.until("turn.failed", statusReason="cancelled")
    await program.say(SESSION, "again", turnId="order-2")
    await program.until("turn.completed")


def screen_of(server: Serving) -> Json:
    """Return what renderers of the session show now."""
    hub = server.application.state.running
    assert hub is not None
    return server.call(lambda: hub.sessions[SESSION].session.screen.canonical())


class Story:
    """What came of it: the pack on the disk, and what was there besides."""

    def __init__(self, pack: Path, made: dict[str, Any], facts: list[Any], screen: Json) -> None:
        self.pack = pack
        self.made = made
        self.facts = facts
        self.screen = screen

    def of(self, type_name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(fact for fact in self.facts if fact["type"] == type_name)
        return found

    def section(self, part: str) -> dict[str, Any]:
        shown = arp("evidence", "show", str(self.pack), "--part", part)
        assert shown.exit_code == 0, shown.output
        told: dict[str, Any] = json.loads(shown.stdout)
        return told


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    place = tmp_path_factory.mktemp("eventful")

    async def tell(server: Serving) -> Story:
        async with asyncio.timeout(60), rpc(server.port) as program:
            await happen(program)
            made = await program.call("evidence/export", sessionId=SESSION, evidenceId="pack-1")
            facts = list(program.facts)
        async with httpx.AsyncClient(base_url=server.http) as http:
            answer = await http.get(made["file"]["path"])
        assert answer.status_code == 200
        pack = place / "pack.zip"
        pack.write_bytes(answer.content)
        assert sha256(answer.content).hexdigest() == made["file"]["sha256"]
        return Story(pack, made, facts, screen_of(server))

    with served(place / "ledger.db") as server:
        return asyncio.run(tell(server))


def test_the_pack_verifies_against_what_the_ledger_says_of_it(story: Story) -> None:
    checked = arp("evidence", "verify", str(story.pack), "--sha256", story.made["sha256"])
    assert checked.exit_code == 0, checked.output
    ledger = story.pack.with_name("ledger.db")
    beside = arp("evidence", "verify", str(story.pack), "--ledger", f"sqlite:{ledger}")
    assert beside.exit_code == 0, beside.output
    assert story.made["verification"] == {"outcome": "passed"}


def test_it_tells_the_failed_tool_with_its_ids(story: Story) -> None:
    failed = story.of("tool.failed")
    calls = {item["toolCallId"]: item for item in story.section("tool_calls.json")["items"]}
    call = calls[failed["toolCallId"]]
    assert call["outcome"] == "tool.failed"
    assert call["lastSequence"] == failed["sequence"]
    assert call["facts"][-1]["payload"]["error"] == "no such file: rows.csv"
    assert [item["outcome"] for item in calls.values()] == ["tool.failed", "tool.result"]


def test_it_tells_who_denied_the_permission(story: Story) -> None:
    (asked,) = story.section("permissions.json")["items"]
    assert (asked["requestId"], asked["outcome"]) == ("delete-request", "permission.resolved")
    assert asked["facts"][-1]["payload"]["deniedBy"] == {"kind": "rule", "name": "no-deletes"}
    assert asked["facts"][-1]["turnId"] == "order-1"


def test_it_holds_all_ten_mebibytes_of_the_process(story: Story) -> None:
    spilled = story.of("output.spilled")
    assert spilled["payload"]["bytes"] == len(WHOLE) == 10 << 20
    (output,) = story.made["manifest"]["outputs"]
    assert (output["outputRef"], output["state"]) == (spilled["outputRef"], "exported")
    with Pack(story.pack) as pack:
        assert pack.read(output["part"]) == WHOLE
    (process,) = story.section("processes.json")["items"]
    assert process["processId"] == spilled["processId"]
    assert process["outcome"] == "process.completed"


def test_it_tells_both_attempts_of_the_one_task(story: Story) -> None:
    (task,) = story.section("tasks.json")["items"]
    assert (task["taskId"], task["outcome"]) == ("count", "task.completed")
    attempts = [
        (fact["type"].removeprefix("task.attempt."), fact["runId"], fact["payload"]["attempt"])
        for fact in task["facts"]
        if fact["type"].startswith("task.attempt.")
    ]
    assert attempts == [
        ("started", "count.1", 1),
        ("failed", "count.1", 1),
        ("started", "count.2", 2),
        ("completed", "count.2", 2),
    ]


def test_it_tells_the_cancel_the_limit_the_cost_and_the_one_candidate(story: Story) -> None:
    turns = {turn["turnId"]: turn for turn in story.section("thread.json")["turns"]}
    assert (turns["order-1"]["status"], turns["order-2"]["status"]) == ("cancelled", "completed")
    assert story.section("cost.json")["totals"]["amounts"] == {"USD": 0.25}
    (limits,) = story.section("limits.json")["items"]
    assert (limits["turnId"], limits["outcome"]) == ("order-1", "rate_limit.hit")
    (routing,) = story.section("routing.json")["items"]
    assert "routing.single_candidate" in routing["counts"]
    assert story.made["manifest"]["runtimeCorrelation"]["turnIds"] == ["order-1", "order-2"]
    assert story.made["manifest"]["runtimeCorrelation"]["runIds"] == ["count.1", "count.2"]
    assert "gaps" not in story.made, "none applies"


def test_every_fact_that_was_told_is_in_the_pack_byte_for_byte(story: Story) -> None:
    with Pack(story.pack) as pack:
        packed = [json.loads(split_line(line)[1]) for line in pack.lines(FACTS)]
    assert packed == story.facts[: len(packed)]
    assert len(packed) == story.made["throughSequence"]


def test_the_screens_come_again_from_the_pack(story: Story) -> None:
    played = arp("replay", str(story.pack), "--speed", "0", "--json")
    assert played.exit_code == 0, played.output
    screen, decoder = Screen(), agent_decoder("json")
    for line in played.stdout.splitlines():
        for message in decoder.decode(line.encode()):
            screen.apply(message)
    assert screen.canonical() == story.screen


def test_the_terminal_draws_what_was_seen(story: Story) -> None:
    played = arp("replay", str(story.pack), "--speed", "0")
    assert played.exit_code == 0, played.output
    for said in ("I begin.", "The file is not there.", "rows", "Nothing new."):
        assert said in played.output


async def test_a_live_session_shows_the_same_when_the_pack_is_played_into_it(
    story: Story,
) -> None:
    with Pack(story.pack) as pack:
        facts = [decode(split_line(line)[1]) for line in pack.lines(FACTS)]
    async with running() as hub:
        live = await hub.open(SESSION, Principal(), "agent")
        await Player(live).play(facts, 0)
        assert live.session.screen.canonical() == story.screen


async def test_a_pack_may_still_be_fetched_after_a_restart_and_by_its_owner_alone(
    story: Story,
) -> None:
    ledger = story.pack.with_name("ledger.db")
    with served(ledger) as server:
        async with httpx.AsyncClient(base_url=server.http) as http:
            answer = await http.get(story.made["file"]["path"])
            other = await http.get(
                story.made["file"]["path"].replace("_api/blobs/s", "_api/blobs/sQ")
            )
        async with asyncio.timeout(60), rpc(server.port) as program:
            again = await program.call("evidence/export", sessionId=SESSION, evidenceId="pack-1")
    assert answer.content == story.pack.read_bytes()
    assert other.status_code == 404
    assert again["repeated"] is True
    assert (again["sha256"], again["file"]) == (story.made["sha256"], story.made["file"])
