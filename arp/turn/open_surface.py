"""The interface of a surface other than `main` for an agent's author."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import UNSET, UnsetType, convert

from arp.protocol.catalog import split_children
from arp.protocol.components import Component
from arp.protocol.errors import InvalidComponent, SurfaceDestroyed
from arp.protocol.json_value import Json
from arp.protocol.messages import CloseReason, SurfaceInfo, Viewport
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace, Update
from arp.record.wording import check_kind
from arp.surface.change import RenderChange
from arp.turn.author_call import must_await
from arp.turn.author_values import text_of
from arp.values.display import as_component, components_of

if TYPE_CHECKING:
    from arp.turn.host import TurnHost

Shown: TypeAlias = Any
"""Values that `show` accepts: components, texts, data, figures; lists of them. See `Turn.show`."""

OnClose = TypeVar("OnClose", bound=Callable[[CloseReason], Awaitable[object]])
OnFocus = TypeVar("OnFocus", bound=Callable[[bool], Awaitable[object]])
OnConfigure = TypeVar("OnConfigure", bound=Callable[[Viewport, tuple[str, ...]], Awaitable[object]])


class SurfaceClosing(Awaitable[CloseReason]):
    """Awaitable that ends when a surface is closed; it may be awaited again."""

    def __init__(self, host: TurnHost, name: str) -> None:
        self._host = host
        self._closing = host.surfaces.closing(name)

    def __await__(self) -> Generator[Any, Any, CloseReason]:
        """Wait until the surface is closed and return the reason.

        Raises:
            SurfaceDestroyed: The turn is over.

        Cancel: Safe; the surface stays open.
        """
        return self._wait().__await__()

    async def _wait(self) -> CloseReason:
        self._host.settle()
        reason = await self._host.waiting_for(self._closing)
        if reason is None:
            turn_id = self._host.turn_id
            raise SurfaceDestroyed(
                f"turn {turn_id} is over; it can show nothing more", detail=turn_id
            )
        return reason

    @property
    def is_closed(self) -> bool:
        """Whether the surface was closed since this object was created."""
        return self._closing.done()


class OpenSurface:
    """A surface: `turn.surface("details", title="Details")`.

    It belongs to the session and stays when the turn ends. A user may close it at any time; showing
    something on it after that raises `SurfaceDestroyed`. Functions that are passed to `on_close`,
    `on_focus` and `on_configure` are called while the turn runs; these methods may be used as
    decorators.
    """

    def __init__(self, host: TurnHost, name: str) -> None:
        self.name = name
        """Name of the surface; inputs on it have it as their `surface`."""
        self._host = host
        self._closed = SurfaceClosing(host, name)

    @property
    def title(self) -> str:
        """Title that users see; may be empty."""
        return self._info.title

    @property
    def is_open(self) -> bool:
        """Whether the surface exists."""
        return not self._closed.is_closed and self._host.session.tree(self.name) is not None

    @property
    def closed(self) -> SurfaceClosing:
        """Awaitable that ends when the surface is closed: `reason = await surface.closed`.

        The reason is `user`, `agent`, `timeout`, `parent` (the surface below it was closed) or
        `transferred`.
        """
        return self._closed

    @property
    def _info(self) -> SurfaceInfo:
        return self._host.session.screen.info(self.name)

    # -- output ----------------------------------------------------------------------------------

    def show(self, *components: Shown, tool: str | None = None) -> str:
        """Show components at the end of the surface; see `turn.show`.

        If the surface has a component with the same id, this component is replaced.

        Raises:
            SurfaceDestroyed: The surface is closed, or the turn is over.
            InvalidComponent, TypeError, ValueError: See `turn.show`.
        """
        named = named_for(self._host, components, "surface.show")
        self._check_open()
        self._host.gather(self.name, RenderChange(named, tool and text_of(tool, "tool")))
        return named[-1].id if named else ""

    def patch(self, target: str, path: str, value: Json) -> None:
        """Set a property of a component; see `turn.patch`."""
        self._change(Update(target, path, value))

    def append(self, target: str, path: str, value: Json) -> None:
        """Append to a string, or append the items of an array to an array."""
        self._change(Append(target, path, value))

    def insert(
        self,
        component: Shown,
        *,
        after: str | UnsetType | None = UNSET,
        parent: str | None = None,
    ) -> str:
        """Insert a component; return its id.

        Args:
            component: Component, or a value to convert as `show` does.
            after: Id of the component that it follows; `None` means first. By default it is last.
            parent: Id of the group that contains it. `None` means the group of `after`, or the top
                level if there is none.
        """
        where = "surface.insert"
        named = self._host.named(as_component(component, where), where)
        self._change(Insert(named, after, parent))
        return named.id

    def remove(self, target: str) -> None:
        """Remove a component with its children."""
        self._change(Remove(target))

    def replace(self, target: str, component: Shown) -> str:
        """Replace the component `target`, and return the id of the new one.

        A value that is not a component is converted, as by `show`.
        """
        where = "surface.replace"
        named = self._host.named(as_component(component, where), where)
        self._change(Replace(target, named))
        return named.id

    def reorder(self, target: str, after: str | None) -> None:
        """Move a component behind `after`, which has the same parent; `None` means to the front."""
        self._change(Reorder(target, after))

    def _change(self, op: PatchOp) -> None:
        self._check_open()
        self._host.change(self.name, op)

    def _check_open(self) -> None:
        self._host.check_running()
        if self._closed.is_closed or self._host.session.tree(self.name) is None:
            raise SurfaceDestroyed(
                f"surface {self.name!r} is closed; make a new one with turn.surface(…)",
                detail=self.name,
            )

    # -- title, size and session -----------------------------------------------------------------

    def set_title(self, title: str) -> None:
        """Change the title of the surface.

        Raises:
            SurfaceDestroyed: The surface is closed, or the turn is over.
        """
        self._describe(title=text_of(title, "title"))

    def set_fullscreen(self, is_on: bool = True) -> None:
        """Show the surface fullscreen, or end fullscreen if `is_on` is `False`.

        Raises:
            InvalidSerial: `is_on` is `True`, and the surface has had no recent input from a user.
            SurfaceDestroyed: The surface is closed, or the turn is over.
        """
        check_kind(is_on, bool, "is_on")
        self._check_open()
        if is_on:
            self._host.surfaces.serial(self.name)
        self._describe(fullscreen=is_on)

    def _describe(self, **changed: Any) -> None:
        self._check_open()
        self._host.settle()
        self._host.surfaces.describe(self.name, **changed)

    def close(self) -> None:
        """Close the surface on every renderer, with its popups and overlays.

        Open questions on the surface are withdrawn. A second call does nothing.
        """
        self._host.check_running()
        self._host.settle()
        if not self._closed.is_closed:
            self._host.surfaces.close(self.name)

    @must_await("surface.transfer")
    async def transfer(self, *, to_session: str, retain_content: bool = True) -> None:
        """Move the surface to another session, and close it in this session.

        All renderers of the other session show the surface at once, with its title, and the agent
        of that session finds it in `turn.surfaces`. Answers to the questions on the surface begin
        turns in that session.

        Args:
            to_session: Id of a session of the same user, or of a session of another agent that a
                renderer of the object dialect shows too.
            retain_content: Whether the components of the surface are transferred too.

        Raises:
            TransferDenied: The session does not exist or has too many surfaces, no renderer moves
                the surface, or the surface is a popup or an overlay. Nothing has changed. If the
                message begins with "the outcome of the transfer is unknown", the other session may
                have the surface. Each renderer that joins is then asked again, and this surface is
                closed when one of them confirms the transfer.
            SurfaceDestroyed: The surface is closed, or the turn is over.
        """
        self._check_open()
        self._host.settle()
        await self._host.services.transfer(
            self._host.live, self.name, text_of(to_session, "to_session"), retain_content
        )

    # -- events ----------------------------------------------------------------------------------

    def on_close(self, callback: OnClose) -> OnClose:
        """Call `await callback(reason)` when the surface is closed, also by this agent."""
        self._host.surfaces.listen(self.name, "close", callback)
        return callback

    def on_focus(self, callback: OnFocus) -> OnFocus:
        """Call `await callback(is_focused)` when a user moves the focus to the surface or away."""
        self._host.surfaces.listen(self.name, "focus", callback)
        return callback

    def on_configure(self, callback: OnConfigure) -> OnConfigure:
        """Call `await callback(size, states)` when a renderer changes the surface's size or state.

        `size` has `width` and `height` in CSS pixels or cells; `states` holds some of `activated`,
        `suspended`, `resizing` and `fullscreen`.
        """
        self._host.surfaces.listen(self.name, "configure", callback)
        return callback


class OpenPopup(OpenSurface):
    """A popup or an overlay: `await popup.done` waits until it is closed.

    It stays when the turn ends, until a user dismisses it or its time is over.
    """

    @property
    def done(self) -> SurfaceClosing:
        """Awaitable that ends when the popup or overlay is closed; see `closed`."""
        return self._closed


def named_for(host: TurnHost, shown: Sequence[Shown], where: str) -> list[Component]:
    """Convert shown values to components, each with an id.

    Raises:
        InvalidComponent: No value is given, one is invalid, or two have the same id. The message
            begins with `where`.
    """
    if not shown:
        raise InvalidComponent(
            f"{where}: nothing to show; give a component, a text or data, or a list, which may be "
            "empty"
        )
    named = [host.named(one, where) for given in shown for one in components_of(given, where)]
    _refuse_same_ids(named, where)
    return named


def _refuse_same_ids(components: Iterable[Component], where: str) -> None:
    """Raise if two components of one call have the same id, as the first would never be seen."""
    seen: set[str] = set()
    waiting = list(components)
    while waiting:
        one = waiting.pop()
        if one.id in seen:
            raise InvalidComponent(
                f"{where}: two components have the id {one.id!r:.80}, so the second would take "
                "the place of the first; give each its own, or none"
            )
        seen.add(one.id)
        _, children = split_children(one.type, one.props)
        waiting += [convert(child, Component) for child in children]
