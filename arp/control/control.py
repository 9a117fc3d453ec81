"""`Control`: the control plane for a Python program, and every method by its name.

The methods are grouped as in control-plane.md 1: `control.turns.start(StartTurn(…))` is
`agentSession/turn/start`. Parameters and results are the same values as over JSON-RPC.

Each method of a session raises `SessionNotFound` if the session does not exist or belongs to
another principal, and `StoreError` if the ledger cannot be read or written. A method that records
facts raises `PermissionDenied` if the server replays a recording. Further errors are listed at the
method.
"""

from __future__ import annotations

from arp.access.principal import Principal
from arp.control.actions import Actions
from arp.control.benchmarks import Benchmarks
from arp.control.context import ControlContext, Plane
from arp.control.exports import Exports
from arp.control.jsonrpc import UnknownMethod
from arp.control.method import methods_of, read_params
from arp.control.sessions import Sessions
from arp.control.surfaces import Surfaces
from arp.control.tasks import TaskMethods
from arp.control.turns import Turns
from arp.protocol.json_value import Json, JsonObject

METHODS = methods_of(Sessions, Turns, Actions, Surfaces, TaskMethods, Exports, Benchmarks)
"""Methods on sessions, by name. A connection adds `OWN_METHODS` of `arp.control.connection`."""


class Control:
    """The control plane of one principal, limited to the sessions of that principal.

    Args:
        plane: Plane of the hub.
        principal: Principal who calls.
    """

    def __init__(self, plane: Plane, principal: Principal) -> None:
        self.context = ControlContext(plane, principal)
        self.sessions = Sessions(self.context)
        """Methods `page`, `read`, `events`, `debug`, `verify`, `follow`, `start_thread`,
        `resume`."""
        self.turns = Turns(self.context)
        """Methods `start`, `cancel`, `remove`, `promote`."""
        self.actions = Actions(self.context)
        """Methods `respond`, `answer`."""
        self.surfaces = Surfaces(self.context)
        """Method `update`."""
        self.tasks = TaskMethods(self.context)
        """Methods `create`, `update`, `retry`, `complete`, `cancel`, `get`, `page`, `link`."""
        self.exports = Exports(self.context)
        """Methods `evidence`, `replay`, `review`."""
        self.benchmarks = Benchmarks(self.context)
        """Methods `start`, `reward`, `export`, `compare`."""

    async def call(self, name: str, params: JsonObject) -> Json:
        """Call a method by its name, as a JSON-RPC client does.

        Raises:
            UnknownMethod: There is no method with that name.
            ArpError: The method refused the call; nothing has changed.
        """
        return await call(self.context, name, params)


async def call(context: ControlContext, name: str, params: JsonObject) -> Json:
    """Call a method by its name.

    Raises:
        UnknownMethod: There is no method with that name.
        ArpError: The method refused the call; nothing has changed.
    """
    found = METHODS.get(name)
    if found is None:
        raise UnknownMethod(f"no method {name!r:.80}; initialize lists them", detail=name[:80])
    return await found.run(found.owner(context), read_params(name, found.params, params))
