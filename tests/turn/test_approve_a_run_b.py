"""What runs is what a person approved, whatever happens between the question and the run.

Random trials: the arguments change while the question is open, answers come twice, late, from two
screens at once, for another question, after a cancel or behind the deadline. The oracle knows only
what the two screens showed and what was sent from them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from typing import Any, NamedTuple

import msgspec
import pytest

from arp import Turn
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import Permission
from tests.hub.rig import Renderer, running
from tests.support.waiting import becomes

TRIALS = 1_000
ON_ONE_HUB = 25
SEED = 20_260_915


def text_of(value: Any) -> str:
    return msgspec.json.encode(value).decode()


class Plan(msgspec.Struct):
    """What the agent does in one trial."""

    args: list[JsonObject]
    """Of each tool; several ask at once."""
    editable: bool
    expires: bool
    session_rule: str | None
    runs: str
    """What it is about to run: `approved`, `args` as they are then, or something `swapped`."""
    early: bool
    """The arguments change before the question, not while it is open."""


class World:
    """The agent, and what it ran."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.plan = Plan([], False, False, None, "approved", False)
        self.ran: list[tuple[str, str]] = []
        """Call and text of each run."""
        self.kept: Counter[str] = Counter()

    async def agent(self, turn: Turn) -> None:
        """Uses the tools of the plan, all at once."""
        plan = self.plan
        uses = [self.use(turn, args, plan) for args in plan.args]
        await asyncio.gather(*uses)

    async def use(self, turn: Turn, args: JsonObject, plan: Plan) -> None:
        """Asks, and runs what it means to run if that was approved."""
        async with turn.tool("shell", args) as tool:
            if plan.early:
                args["command"] = "rm -r /"
            approval = await tool.ask_permission(
                "Run it?",
                rule="commands",
                session_rule=plan.session_rule,
                editable=plan.editable,
                timeout_s=3600.0 if plan.expires else None,
            )
            meant = {"approved": approval.args, "args": args, "swapped": {"command": "rm"}}
            if approval.covers(meant[plan.runs]):
                self.ran.append((tool.call_id, text_of(meant[plan.runs])))
            elif approval.allowed:
                self.kept["changed"] += 1


class Person:
    """What the screens showed in one trial, and what was sent from them."""

    def __init__(self, screens: list[Renderer], turn_id: str, rng: random.Random) -> None:
        self.screens, self.turn_id, self.rng = screens, turn_id, rng
        self.approved: dict[str, set[str]] = {}
        """By call: what a run may be."""
        self.allowed_rules: set[str] = set()
        self.answered: set[str] = set()
        self.sent: list[tuple[JsonObject, str | None, str]] = []
        self.is_over = False
        self.shown: dict[str, tuple[Permission, str]] = {}
        turn = screens[0].screen.turns[turn_id]
        by_call = {tool.call_id: tool.args for tool in turn.tools}
        for permission in turn.permissions.values():
            text = permission.input or by_call[permission.call_id]
            self.shown[permission.component] = (permission, text)

    async def send(self, data: JsonObject, source: str | None, input_id: str) -> None:
        """Sends an answer from any screen."""
        screen = self.rng.choice(self.screens)
        await screen.send("action", data, source_component=source, id=input_id)

    async def yes(self, digest: str | None, kind: str) -> None:
        """Allows one of the questions, by name."""
        permission, text = self.rng.choice(list(self.shown.values()))
        payload: JsonObject = {} if digest is None else {"digest": digest}
        if kind == "edited":
            payload["updated_input"] = {"command": f"echo {self.rng.random()}"}
            text = text_of(payload["updated_input"])
        if kind == "session":
            payload["scope"] = "session"
        if digest == "right":
            payload["digest"] = permission.digest
        fits = digest in (None, "right")
        fits = fits and (kind != "edited" or permission.editable)
        fits = fits and (kind != "session" or "session" in permission.scopes)
        await self.answer({"action": "confirm", "payload": payload}, permission, text, fits)

    async def no(self) -> None:
        """Denies one of them."""
        permission, _ = self.rng.choice(list(self.shown.values()))
        await self.answer({"action": "deny"}, permission, "", True)

    async def answer(self, data: JsonObject, about: Permission, text: str, fits: bool) -> None:
        """Answers, and notes what that allows: the first answer that fits counts, if it is time."""
        if fits and not self.is_over and about.component not in self.answered:
            self.answered.add(about.component)
            if data["action"] == "confirm":
                self.approved.setdefault(about.call_id, set()).add(text)
                if data.get("payload", {}).get("scope") == "session":
                    self.allowed_rules.add(about.session_rule or "")
        input_id = f"{self.turn_id}-{len(self.sent)}"
        self.sent.append((data, about.component, input_id))
        await self.send(*self.sent[-1])

    async def again(self) -> None:
        """Sends an answer again, as the same input or as another one."""
        if self.sent:
            data, source, input_id = self.rng.choice(self.sent)
            # As another one it may be the first that fits: it means the same as before.
            await self.send(data, source, input_id)
            if source in self.answered or self.is_over:
                await self.send(data, source, f"{input_id}-{self.rng.random()}")

    async def bare(self) -> None:
        """Allows without a name: it counts where there is one question, and for that one."""
        open_ones = [one for one, _ in self.shown.values() if one.component not in self.answered]
        if self.is_over or not open_ones:
            return  # it would begin a turn of its own
        if len(self.shown) == 1:
            (about,) = open_ones
            self.answered.add(about.component)
            self.approved.setdefault(about.call_id, set()).add(self.shown[about.component][1])
        await self.send({"action": "confirm"}, None, f"{self.turn_id}-bare{self.rng.random()}")


def planned(rng: random.Random) -> Plan:
    args = [
        {"command": f"ls {rng.random()}", "n": rng.choice([1, 1.0, None, "1", [1]])}
        for _ in range(rng.choice([1, 1, 1, 2, 3]))
    ]
    return Plan(
        args,
        rng.random() < 0.4,
        rng.random() < 0.3,
        rng.choice([None, None, None, "rule a", "rule b"]),
        rng.choice(["approved", "approved", "args", "swapped"]),
        rng.random() < 0.2,
    )


async def tried(
    world: World, screens: list[Renderer], number: int, rules: set[str], clock: list[float]
) -> tuple[str, int, int]:
    """Plays one trial, and gives what happened, how much ran, and how much of it was wrong."""
    rng, turn_id = world.rng, f"t{number}"
    plan = world.plan = planned(rng)
    world.ran.clear()
    one = screens[0]
    await one.say("go")
    granted = plan.session_rule in rules
    if granted:
        await one.ended(turn_id)
        originals = Counter(run for _, run in world.ran)
        return "granted", len(world.ran), 0 if len(originals) <= len(plan.args) else 1

    def asked() -> int:
        found = [each for each in one.box.of("turn") if each.get("permission")]
        return len([each for each in found if each["turn_id"] == turn_id])

    await one.box.until(lambda: asked() == len(plan.args))
    person = Person(screens, turn_id, rng)
    story = rng.choice(["answers", "answers", "cancel", "deadline", "screens", "changes"])
    if story == "changes":
        for args in plan.args:
            args[rng.choice(["command", "cwd"])] = "rm -r /"
    elif story == "cancel":
        await one.cancel()
        await one.ended(turn_id)
        person.is_over = True
    elif story == "deadline" and plan.expires:
        clock[0] += 3_700.0
        person.is_over = True
    steps = [
        lambda: person.yes("right", "plain"),
        lambda: person.yes(rng.choice(["0" * 64, "right", None]), "plain"),
        lambda: person.yes(rng.choice(["right", None]), "edited"),
        lambda: person.yes("right", "session"),
        person.no,
        person.again,
        person.bare,
    ]
    chosen = rng.choices(steps, k=rng.randint(1, 5))
    if story == "screens":
        await asyncio.gather(*(step() for step in chosen))
    else:
        for step in chosen:
            await step()
    for permission, _ in person.shown.values():
        if permission.component not in person.answered:
            data = {"action": "deny"}
            await person.send(data, permission.component, f"{turn_id}-{permission.component}")
    await becomes(lambda: one.hub.sessions["s"].session.status_of(turn_id) not in _OPEN)
    await one.ended(turn_id)
    rules |= person.allowed_rules
    calls = [call for call, _ in world.ran]
    wrong = [run for run in world.ran if run[1] not in person.approved.get(run[0], ())]
    repeated = len(calls) - len(set(calls))
    if plan.runs == "approved":  # and what was approved did run
        wrong += [(call, "") for call in person.approved.keys() - set(calls)]
    return story, len(calls), len(wrong) + repeated


_OPEN = ("queued", "running", "waiting")


class Outcome(NamedTuple):
    """What random trials came to."""

    world: World
    stories: Counter[str]
    ran: int
    mismatches: int


async def outcome_of(trials: int, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Play trials, seeded."""
    rng = random.Random(SEED)
    real, clock = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + clock[0])
    stories: Counter[str] = Counter()
    ran = mismatches = 0
    world = World(rng)
    for _ in range(trials // ON_ONE_HUB):
        async with running(world.agent) as hub:
            screens = [await Renderer(hub).join(), await Renderer(hub).join()]
            rules: set[str] = set()
            for number in range(1, ON_ONE_HUB + 1):
                story, runs, wrong = await tried(world, screens, number, rules, clock)
                stories[story] += 1
                ran += runs
                mismatches += wrong
    assert sum(stories.values()) == trials
    return Outcome(world, stories, ran, mismatches)


async def test_in_two_hundred_random_trials_nothing_runs_but_what_was_approved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The beginning of the 1,000 trials: each story comes, and something runs."""
    outcome = await outcome_of(200, monkeypatch)
    assert outcome.mismatches == 0
    assert min(outcome.stories.values()) > 5, outcome.stories
    assert outcome.ran > 20


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_in_random_trials_nothing_runs_but_what_was_approved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1,000 trials, seeded: 0 runs of anything else, and none that was approved is missing."""
    outcome = await outcome_of(TRIALS, monkeypatch)
    assert outcome.mismatches == 0
    assert min(outcome.stories.values()) > 50, outcome.stories
    assert outcome.ran > 200
    assert outcome.world.kept["changed"] > 50
