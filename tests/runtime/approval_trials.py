"""Trials of approve-A-run-B with a runtime behind `RuntimeAgent`: each is one question and a story.

    trials = Trials(rng, place, input_name="command")
    await trials.play(runtime, number=20, most_in_turn=3)
    assert trials.mismatches() == []

Each trial has a script of its own, and a message makes the agent run it. When two screens show the
question, a story happens: the script is swapped, the input changed, the answer replayed, given on
two screens at once, or after a cancel. A script that runs writes a line with its own token and its
arguments. The oracle knows the lines that may be there from what was shown and sent: nothing of
the project tells it.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from arp.protocol.json_value import JsonObject
from arp.protocol.messages import Permission
from arp.runtime.contract.services import RuntimeService
from arp.runtime.turns.agent import RuntimeAgent
from tests.hub.rig import Renderer, running
from tests.support.waiting import becomes

STORIES = ("plain", "arguments", "swapped", "swapped", "replayed", "screens", "cancelled")
SWAPS = ("written", "replaced", "quiet", "linked", "parent", "appeared", "restored", "edited")
WITHIN_S = 60.0
MOST_SILENT = 5
"""Turns, one after the other, in which an agent may ask nothing."""


@dataclass
class Trial:
    """A script, the command that runs it, and what may come of it."""

    number: int
    place: Path
    effects: Path
    form: int
    story: str
    swap: str
    arg: str
    token: str
    may_run: list[str] = field(default_factory=list)
    """The lines that may be written: none, or one."""
    must_run: bool = True
    """Whether they must: not if the turn was cancelled meanwhile."""
    ended: str = ""
    """What the screens said of the tool when its turn was over."""
    shown: Permission | None = None
    asked_for: JsonObject = field(default_factory=dict)
    """The input that the screens showed."""

    @property
    def script(self) -> Path:
        """Where the script is."""
        return self.place / f"d{self.number}" / "run.sh"

    def content(self, token: str) -> str:
        """Return a script that tells by its own token that it has run."""
        return f"#!/bin/sh\necho {token} $* >> '{self.effects}'\n"

    def write(self) -> None:
        """Write the script, one that an attacker has, and a link to the directory."""
        other = self.place / f"e{self.number}" / "run.sh"
        for script, token in ((self.script, self.token), (other, self.evil)):
            script.parent.mkdir()
            script.write_text(self.content(token))
            script.chmod(0o755)
        (self.place / f"l{self.number}").symlink_to(f"d{self.number}")
        if self.swap == "appeared":
            self.script.unlink()

    @property
    def evil(self) -> str:
        """The token of what must never run."""
        return f"B{self.token[1:]}"

    def command(self, arg: str) -> str:
        """Return the command, in one of several forms."""
        path = f"d{self.number}/run.sh"
        return (
            f"sh {path} {arg}",
            f"./{path} {arg}",
            f"sh -c 'sh {path} {arg}'",
            f"(cd d{self.number} && ./run.sh {arg})",
            f"sh l{self.number}/run.sh {arg}",
            f"sh {self.place}/{path} {arg}",
            f"X=1 sh \"{path}\" '{arg}'",
        )[self.form]

    def swap_script(self) -> None:
        """Put something else where the script was, or the same again."""
        script, evil = self.script, self.content(self.evil)
        match self.swap:
            case "written" | "edited":
                script.write_text(evil)
            case "replaced":
                new = script.with_name("new")
                new.write_text(evil)
                new.chmod(0o755)
                os.replace(new, script)
            case "quiet":  # the same size and times
                times = script.stat()
                script.write_text(evil)
                os.utime(script, ns=(times.st_atime_ns, times.st_mtime_ns))
            case "linked":
                script.unlink()
                script.symlink_to(self.place / f"e{self.number}" / "run.sh")
            case "parent":
                link, directory = self.place / f"l{self.number}", script.parent
                link.unlink()
                link.symlink_to(f"e{self.number}")
                directory.rename(directory.with_name(f"was{self.number}"))
                directory.symlink_to(f"e{self.number}")
            case "appeared":
                script.write_text(evil)
                script.chmod(0o755)
            case "restored":
                script.write_text(evil)
                script.write_text(self.content(self.token))


class Trials:
    """Plays trials, and knows what should have run."""

    def __init__(self, rng: random.Random, place: Path, *, input_name: str = "command") -> None:
        self.rng = rng
        self.place = place
        self.input_name = input_name
        """The field of an edited input that has the command."""
        self.effects = place / "effects"
        self.effects.touch()
        self.done: list[Trial] = []
        """Those whose question was shown."""
        self.inputs: dict[str, JsonObject] = {}
        """Inputs that a runtime in this process holds, by command: a story may change them."""
        self.made = 0

    def mismatches(self) -> list[str]:
        """Return each line too many or missing: what ran and was not approved, or the opposite."""
        told = {
            one.arg: f"{one.story} {one.swap} form {one.form}: {one.ended}" for one in self.done
        }
        ran = Counter(self.effects.read_text().splitlines())
        may = Counter(line for trial in self.done for line in trial.may_run)
        must = Counter(line for trial in self.done if trial.must_run for line in trial.may_run)
        found = [f"ran: {line}" for line in (ran - may).elements()]
        found += [f"did not run: {line}" for line in (must - ran).elements()]
        return [f"{line} ({told.get(line.split()[-1].lstrip('x'))})" for line in found]

    def stories(self) -> Counter[str]:
        """Return how often each story was played."""
        return Counter(trial.story for trial in self.done)

    async def play(self, runtime: RuntimeService, number: int, most_in_turn: int) -> None:
        """Play so many trials in one session of a runtime, several in each turn."""
        until = len(self.done) + number
        async with running(RuntimeAgent(runtime)) as hub:
            screens = [await Renderer(hub).join(), await Renderer(hub).join()]
            turn = silent = 0
            while len(self.done) < until:
                turn += 1
                count = min(self.rng.randint(1, most_in_turn), until - len(self.done))
                trials = [self._made() for _ in range(count)]
                for trial in trials:
                    if trial.story == "cancelled" and trial is not trials[-1]:
                        trial.story = "plain"
                played = _PlayedTurn(self, screens, f"t{turn}", trials)
                await played.play()
                # One that is still busy with a cancel refuses the message.
                silent = 0 if played.played else silent + 1
                assert silent < MOST_SILENT, f"nothing is asked any more: {self.mismatches()}"
            turns = list(screens[0].screen.turns)
            assert turns == [f"t{number}" for number in range(1, turn + 1)], (
                "an answer began a turn"
            )

    def _made(self) -> Trial:
        self.made += 1
        rng = self.rng
        trial = Trial(
            self.made,
            self.place,
            self.effects,
            rng.randrange(7),
            rng.choice(STORIES),
            "",
            f"a{rng.getrandbits(32):08x}",
            f"A{rng.getrandbits(32):08x}",
        )
        if trial.story == "swapped":
            trial.swap = rng.choice(SWAPS)
        trial.write()
        return trial


class _PlayedTurn:
    """One turn: its questions come one after the other, or several at once."""

    def __init__(
        self, trials: Trials, screens: list[Renderer], turn_id: str, planned: list[Trial]
    ) -> None:
        self.trials, self.screens, self.turn_id = trials, screens, turn_id
        self.rng = trials.rng
        self.word = self.rng.choice(["two", "steps"])
        self.waiting = list(planned)
        self.played: list[Trial] = []
        self.is_cancelled = False
        self.commands = [trial.command(trial.arg) for trial in planned]
        self.sent: list[tuple[JsonObject, str]] = []
        """Every answer: a later story may send it again."""
        self.inputs = 0
        self._seen: set[str] = set()

    async def play(self) -> None:
        """Send the message, and let the story of each question happen."""
        one = self.screens[0]
        async with asyncio.timeout(WITHIN_S):
            await one.say(f"{self.word}: {' @@ '.join(self.commands)}")
            while True:
                await one.box.until(lambda: bool(self._new()) or self._is_over())
                new = self._new()
                if not new:
                    break
                permission = self.rng.choice(new)
                self._seen.add(permission["component"])
                await self._question(permission["component"])
            for screen in self.screens:
                await screen.ended(self.turn_id)
        tools = self.screens[0].screen.turns[self.turn_id].tools
        for trial in self.played:
            (tool,) = (one for one in tools if trial.shown and one.call_id == trial.shown.call_id)
            trial.ended = f"{self.word} {self.turn_id} {tool.ok} {tool.error or tool.result}"

    def _new(self) -> list[JsonObject]:
        """Return the questions that no story was played for yet."""
        return [
            one["permission"]
            for one in self.screens[0].box.of("turn")
            if one["turn_id"] == self.turn_id
            and one.get("permission")
            and one["permission"]["component"] not in self._seen
        ]

    def _is_over(self) -> bool:
        return any(
            one["turn_id"] == self.turn_id and one.get("final")
            for one in self.screens[0].box.of("commit")
        )

    async def _question(self, component: str) -> None:
        """Find out which trial a question is of, and play it."""
        await becomes(lambda: all(component in self._permissions(one) for one in self.screens))
        shown = self._permissions(self.screens[0])[component]
        assert shown == self._permissions(self.screens[1])[component]
        turn = self.screens[0].screen.turns[self.turn_id]
        (args,) = (tool.args for tool in turn.tools if tool.call_id == shown.call_id)
        text = shown.input or str(args)
        (trial,) = (one for one in self.waiting if one.arg in text)
        self.waiting.remove(trial)
        self.played.append(trial)
        trial.shown, trial.asked_for = shown, msgspec.json.decode(text)
        if self.is_cancelled:
            trial.story, trial.swap = "cancelled", ""
        self.trials.done.append(trial)
        await getattr(self, f"_{trial.story}")(trial, shown)

    def _permissions(self, screen: Renderer) -> dict[str, Permission]:
        turn = screen.screen.turns.get(self.turn_id)
        return turn.permissions if turn is not None else {}

    # -- answers ---------------------------------------------------------------------------------

    async def _send(self, data: JsonObject, component: str, input_id: str = "") -> None:
        """Send an answer from one of the screens."""
        self.inputs += 1
        self.sent.append((data, component))
        screen = self.rng.choice(self.screens)
        name = input_id or f"{self.turn_id}-{self.inputs}"
        await screen.send("action", data, source_component=component, id=name)

    async def _allow(self, shown: Permission, input_id: str = "", **payload: Any) -> None:
        named = {"digest": shown.digest} if self.rng.random() < 0.7 else {}
        data = {"action": "confirm", "payload": {**named, **payload}}
        await self._send(data, shown.component, input_id)

    async def _deny(self, shown: Permission) -> None:
        await self._send({"action": "deny"}, shown.component)

    def _answer(self, screen: Renderer, component: str) -> Any:
        props = screen.screen.surfaces["main"].component(component).props
        return props["state"], props.get("answer")

    async def _is_answered(self, component: str) -> None:
        await becomes(
            lambda: all(self._answer(one, component)[0] != "open" for one in self.screens)
        )

    # -- stories ---------------------------------------------------------------------------------

    async def _plain(self, trial: Trial, shown: Permission) -> None:
        """The person allows or denies; what is allowed runs."""
        if self.rng.random() < 0.5:
            await self._deny(shown)
            return
        trial.may_run = [f"{trial.token} {trial.arg}"]
        await self._allow(shown)

    async def _arguments(self, trial: Trial, shown: Permission) -> None:
        """The input changes: in the answer, by the person, or in the runtime."""
        command, other = trial.command(trial.arg), f"x{trial.arg}"
        if command in self.trials.inputs and self.rng.random() < 0.5:
            self.trials.inputs[command]["command"] = trial.command(other)
            await self._allow(shown)
            return
        wrong = {"digest": f"{self.rng.getrandbits(256):064x}"}
        await self._send({"action": "confirm", "payload": wrong}, shown.component)
        if not shown.editable:
            changed = {"action": "confirm", "payload": {"updated_input": {"command": "true"}}}
            await self._send(changed, shown.component)
            await self._plain(trial, shown)
            return
        edited = {**trial.asked_for, self.trials.input_name: trial.command(other)}
        trial.may_run = [f"{trial.token} {other}"]
        await self._allow(shown, updated_input=edited)

    async def _swapped(self, trial: Trial, shown: Permission) -> None:
        """The script is another one when the person allows it; only the same again may run."""
        trial.swap_script()
        payload: JsonObject = {}
        if trial.swap == "restored":
            trial.may_run = [f"{trial.token} {trial.arg}"]
        elif "session" in shown.scopes and self.rng.random() < 0.3:
            payload = {"scope": "session"}
        if trial.swap == "edited" and shown.editable:
            other = trial.command(f"x{trial.arg}")
            payload["updated_input"] = {**trial.asked_for, self.trials.input_name: other}
        await self._allow(shown, **payload)
        if "scope" in payload:
            await self._choose()

    async def _choose(self) -> None:
        """Choose a rule, if there are several."""
        one = self.screens[0]

        def choices() -> list[Any]:
            return [
                shown
                for shown in one.screen.output(self.turn_id)
                if shown.type == "choices" and shown.props["state"] == "open"
            ]

        def goes_on() -> bool:
            return bool(choices()) or self._is_over() or self._has_failed()

        await one.box.until(goes_on)
        for shown in choices():
            self.inputs += 1
            taken = {"selected": [self.rng.choice(shown.props["options"][:-1])]}
            name = f"{self.turn_id}-{self.inputs}"
            await one.send("selection", taken, source_component=shown.id, id=name)

    def _has_failed(self) -> bool:
        turn = self.screens[0].screen.turns[self.turn_id]
        last = self.trials.done[-1].shown
        assert last is not None
        return any(tool.call_id == last.call_id and tool.ok is False for tool in turn.tools)

    async def _replayed(self, trial: Trial, shown: Permission) -> None:
        """Answers come again: of this question, and of those before."""
        for data, component in self.rng.sample(self.sent, min(2, len(self.sent))):
            await self._send(data, component, f"again-{self.rng.random()}")
            # To this question: it names another input.
            if data.get("payload", {}).get("digest") not in (None, shown.digest):
                await self._send(data, shown.component, f"again-{self.rng.random()}")
        input_id = f"twice-{self.rng.random()}"
        if self.rng.random() < 0.5:
            trial.may_run = [f"{trial.token} {trial.arg}"]
            await self._allow(shown, input_id)
        else:
            await self._deny(shown)
        await self._allow(shown, input_id)
        await self._allow(shown)
        await self._deny(shown)

    async def _screens(self, trial: Trial, shown: Permission) -> None:
        """Both screens answer at once: one answer counts, and both show which."""
        yes = {"action": "confirm", "payload": {"digest": shown.digest}}
        answers: list[JsonObject] = [yes, {"action": "deny"}]
        self.rng.shuffle(answers)
        await asyncio.gather(
            *(
                screen.send(
                    "action",
                    data,
                    source_component=shown.component,
                    id=f"{self.turn_id}-both{trial.number}-{place}",
                )
                for place, (screen, data) in enumerate(zip(self.screens, answers, strict=True))
            )
        )
        await self._is_answered(shown.component)
        state, answer = self._answer(self.screens[0], shown.component)
        assert self._answer(self.screens[1], shown.component) == (state, answer)
        assert isinstance(answer, bool)
        if answer:
            trial.may_run = [f"{trial.token} {trial.arg}"]

    async def _cancelled(self, trial: Trial, shown: Permission) -> None:
        """The turn is cancelled; an answer after it allows nothing, before its end or behind it."""
        if not self.is_cancelled:
            self.is_cancelled = True
            for other in self.played:
                # Several run at once with "two": the cancel may be faster than what was allowed.
                other.must_run = self.word != "two"
            await self.rng.choice(self.screens).cancel()
        await self._allow(shown)
        if self.rng.random() < 0.7:
            for screen in self.screens:
                await screen.ended(self.turn_id)
            await self._allow(shown)
