"""The parts that only the pack of a benchmark trial has: `trial.json` and `trajectory.json`."""

from __future__ import annotations

from arp.ledger.exports.manifest import TrialOf
from arp.ledger.exports.trajectory import Agent, Trajectory
from arp.ledger.exports.trials import TrialPart
from arp.ledger.fact import Fact


class TrialParts:
    """Makes both parts; a maker of further parts of a pack.

    Args:
        about: As the manifest has it. Nothing else but the facts goes into the parts.
    """

    def __init__(self, about: TrialOf) -> None:
        self._trial = TrialPart(about.trial_id)
        self._trajectory = Trajectory(about.trial_id, Agent(about.agent))

    def take(self, fact: Fact) -> None:
        """Take a fact."""
        self._trial.take(fact)
        self._trajectory.take(fact)

    def documents(self) -> dict[str, bytes]:
        """Give the parts by their names."""
        return self._trajectory.documents(self._trial.extra()) | self._trial.documents()
