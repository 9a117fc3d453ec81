"""`SyncTurn`: the turn of an agent that is a plain function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject
from arp.turn.thread import LoopProxy, TurnThread
from arp.turn.tool import ToolCall
from arp.turn.turn import Turn


class SyncTurn(LoopProxy[Turn]):
    """A turn for a plain function: all methods of `Turn`, without `await`.

        @app.agent
        def agent(turn: SyncTurn) -> None:
            turn.say("Let me look. ")
            with turn.tool("query", {"sql": SQL}) as tool:
                tool.result(query(SQL))
            if turn.confirm("Export?"):
                turn.show(ui.status_card("success", "Exported"))

    The function runs in its own thread, so it may block. If the user cancels the turn, the waiting
    call or the next call raises `asyncio.CancelledError`.
    """

    __slots__ = ()

    @property
    def text(self) -> str:
        """Text of the input; see `Turn.text`."""
        return str(self.__getattr__("text"))

    def say(self, text: str, *, author: str | None = None) -> None:
        """Add text to the output; see `Turn.say`."""
        self.__getattr__("say")(text, author=author)

    def show(self, *components: Any, **more: Any) -> str:
        """Show components; see `Turn.show`."""
        return str(self.__getattr__("show")(*components, **more))

    def ask(self, asked: Component | type[Any], **options: Any) -> Any:
        """Ask a question; see `Turn.ask`."""
        return self.__getattr__("ask")(asked, **options)

    def confirm(self, title: str, message: str | None = None, **more: Any) -> bool:
        """Ask yes or no; see `Turn.confirm`."""
        return bool(self.__getattr__("confirm")(title, message, **more))

    def use(self, name: str, args: JsonObject | None = None) -> Json:
        """Call a tool of the app; see `Turn.use`."""
        return self.__getattr__("use")(name, args)

    @contextmanager
    def tool(self, name: str, args: Json = None) -> Iterator[LoopProxy[ToolCall]]:
        """Run a block as a tool call: `with turn.tool(name, args) as tool:`; see `Turn.tool`."""
        with self.__getattr__("tool")(name, args) as call:
            yield call

    @contextmanager
    def frame(self) -> Iterator[None]:
        """Make one commit of a block: `with turn.frame():`; see `Turn.frame`."""
        with self.__getattr__("frame")():
            yield


def in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an async agent that runs a plain function in a thread, with a `SyncTurn`.

    The function sees the context variables of the turn, and its result is returned.
    """

    @wraps(function)
    async def agent(turn: Turn, *args: Any) -> Any:
        thread = TurnThread(f"arp-{turn.session_id}-{turn.id}")
        sync = SyncTurn(turn, thread)
        return await thread.run(lambda: function(sync, *args))

    return agent
