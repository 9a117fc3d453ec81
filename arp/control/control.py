"""`Control`: the control plane in the hand of a Python program.

The methods are grouped as in ledger.md 5: `control.turns.start(StartTurn(…))` is
`agentSession/turn/start`. What they take and give are the same values as over JSON-RPC.
"""

from __future__ import annotations

from arp.access.principal import Principal
from arp.control.actions import Actions
from arp.control.benchmarks import Benchmarks
from arp.control.desk import Desk, Plane
from arp.control.exports import Exports
from arp.control.methods import call
from arp.control.sessions import Sessions
from arp.control.tasks import TaskDesk
from arp.control.turns import Turns
from arp.protocol.json_value import Json, JsonObject


class Control:
    """What one principal may ask of the sessions that belong to it.

    Args:
        plane: Of the hub.
        principal: Who asks.
    """

    def __init__(self, plane: Plane, principal: Principal) -> None:
        self.desk = Desk(plane, principal)
        self.sessions = Sessions(self.desk)
        """`page`, `read`, `events`, `follow`, `resume`."""
        self.turns = Turns(self.desk)
        """`start`, `cancel`, `remove`, `promote`."""
        self.actions = Actions(self.desk)
        """`respond`."""
        self.tasks = TaskDesk(self.desk)
        """`create`, `update`, `retry`, `complete`, `cancel`, `get`, `page`, `link`."""
        self.exports = Exports(self.desk)
        """`evidence`, `replay`, `review`."""
        self.benchmarks = Benchmarks(self.desk)
        """`start`, `reward`, `export`, `compare`."""

    async def call(self, name: str, params: JsonObject) -> Json:
        """Calls any method by its name, as a JSON-RPC client does.

        Raises:
            UnknownMethod: There is none of that name.
            ArpError: As the method says; nothing has changed.
        """
        return await call(self.desk, name, params)
