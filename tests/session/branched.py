"""A session with several versions of its turns."""

from __future__ import annotations

from typing import Any

from arp.ledger.fact import Fact
from arp.protocol.limits import Limits
from arp.protocol.messages import Input
from arp.session.effects import Effect
from arp.session.input.branching import asks_for_branch, branch_of, change_branch
from arp.session.recovery import apply_stored, end_plan
from arp.session.session import Session
from arp.session.tracking.branches import Survey
from arp.session.turn_end import end_turn
from tests.session.conversation import facts, new, user


def acting(action: str, turn_id: object, **more: Any) -> Input:
    return Input(
        input_type="action", data={"action": action, "payload": {"turn_id": turn_id}}, **more
    )


class Talk:
    """A session with all facts that it has recorded; the agent answers each turn at once."""

    def __init__(self) -> None:
        self.session = new()
        self.facts: list[Fact] = []

    def recorded(self) -> list[Fact]:
        """Return what was recorded since the last time."""
        written = facts(self.session)
        self.facts += written
        return written

    def say(self, *texts: str) -> None:
        """Say several things, each of which is answered."""
        for said in texts:
            user(self.session, said)
            self.answer()

    def answer(self, status: Any = "completed") -> None:
        """Let the turn that runs say which one it is, and end."""
        turn_id = self.session.running
        assert turn_id is not None
        self.session.say(turn_id, f"answer {turn_id}")
        end_turn(self.session, turn_id, status)
        self.recorded()

    def turn(self, message: Input) -> list[Effect]:
        """Take an input that turns to another branch."""
        self.recorded()
        assert asks_for_branch(self.session, message)
        survey = Survey()
        for fact in self.facts:
            survey.add(fact)
        branch = Session(self.session.head, Limits())
        branch.settings.begin_plan(branch_of(message, survey))
        apply_stored(branch, self.facts)
        end_plan(branch)
        return change_branch(self.session, message, survey, branch)

    def edit(self, turn_id: str, said: str, **more: Any) -> list[Effect]:
        return self.turn(Input(input_type="text", data={"text": said}, edits=turn_id, **more))

    def act(self, action: str, turn_id: object, **more: Any) -> list[Effect]:
        return self.turn(acting(action, turn_id, **more))

    @property
    def shown(self) -> dict[str, str]:
        """What was said in each turn that shows."""
        turns = self.session.screen.turns.values()
        return {turn.id: turn.inputs[0].data["text"] for turn in turns}

    @property
    def versions(self) -> dict[str, object]:
        """Which versions there are of each turn that shows."""
        turns = self.session.screen.turns.values()
        return {turn.id: turn.inputs[0].versions for turn in turns}
