"""`Turn`: what an agent's author has in hand.

Theory of operation. `show`, `patch` and the other changes gather as *pending*. They are committed
when the agent next awaits anything of the turn, or when the loop runs and the writer comes by: what
happens between two awaits is one commit. A commit that is refused changes nothing and raises where
the agent next awaits the turn. Inside `async with turn.frame()` nothing is committed until the end.
"""

from __future__ import annotations

import asyncio
import copy
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar, Unpack

import msgspec
from msgspec import UNSET, UnsetType

from arp.access.principal import User
from arp.hub.author_call import must_await
from arp.hub.tool import Call, ToolCall
from arp.hub.turn_counters import TurnCounters
from arp.hub.turn_host import MAX_UNWRITTEN, TurnHost
from arp.protocol.blob_path import blob_path
from arp.protocol.catalog import put_children, take_children
from arp.protocol.components import Component
from arp.protocol.errors import ArpError, InvalidComponent
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import FileRef, InputEcho, RendererInfo
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace, Update
from arp.record.wording import check_kind, encoded, plain, well_formed
from arp.session.inputs import UNKNOWN
from arp.session.recorded import SAYING, THINKING
from arp.session.session import About, Question
from arp.surface.change import Change, PatchChange, RenderChange
from arp.surface.degrade import how_shown
from arp.view.profile import fits_in, shown_as, supported

if TYPE_CHECKING:
    from arp.record.recorder import Recorder

T = TypeVar("T", bound=msgspec.Struct)

Shown: TypeAlias = Component | str
"""What `Turn.show` takes; a text stands for a component that shows it."""


class Confirming(TypedDict, total=False):
    """What `Turn.confirm` takes besides its title and message; `None` is as if it were absent."""

    confirm_label: str | None
    deny_label: str | None
    destructive: bool | None


class Turn:
    """One turn of an agent: what the user said, and everything that the agent may do about it."""

    def __init__(self, host: TurnHost, turn_id: str) -> None:
        self.id = turn_id
        self._host = host
        self._session = host.session
        self._changed = host.changed
        self._pending: dict[str, list[Change]] = {}
        self._failed: ArpError | None = None
        self._frames = 0
        self._counters = TurnCounters()
        self._tool: str | None = None
        """The last tool that ran: what is shown before the agent speaks again came of it."""
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self._state: JsonObject | None = None
        """What the agent keeps; `None` if it did not ask for it."""

    # -- what the user said ------------------------------------------------------------------------

    @property
    def session_id(self) -> str:
        """The session that it belongs to."""
        return self._session.head.session_id

    @property
    def input(self) -> InputEcho:
        """What the user did: `input_type`, `data`, `source_component`, `surface`.

        The data are as they came, also where the ledger and the screens do not have all of them.
        """
        echo = self._session.screen.turns[self.id].inputs[0]
        typed = self._session.input_log.typed.get(self.id)
        return echo if typed is None else msgspec.structs.replace(echo, data=typed)

    @property
    def text(self) -> str:
        """What the user said; empty where the input is no text."""
        data = self.input.data
        text = data.get("transcript") if self.input.input_type == "voice" else data.get("text")
        return text if isinstance(text, str) else ""

    @property
    def command(self) -> str | None:
        """The name that a text begins with behind a slash, as `/export csv` with `export`."""
        first, *_ = self.text.split(maxsplit=1) or [""]
        return first[1:] if first.startswith("/") and len(first) > 1 else None

    @property
    def arguments(self) -> str:
        """What stands behind the command's name; all of the text where there is none."""
        if self.command is None:
            return self.text
        _, _, rest = self.text.strip().partition(f"/{self.command}")
        return rest.strip()

    @property
    def files(self) -> list[FileRef]:
        """The files that came with the input."""
        files = self.input.data.get("files", [])
        return msgspec.convert(files, list[FileRef])

    @property
    def renderer(self) -> RendererInfo:
        """What the renderer that began this turn said of itself: locale, time zone, theme, size.

        Each is `None` where it did not say. Others may watch the same session.
        """
        return self._session.input_log.renderers.get(self.id, UNKNOWN)

    @property
    def user(self) -> User:
        """Who began this turn: `name`, `display_name`, `roles`, `claims`.

        The name alone where the app's `Access` has no hook or the hook gives no more, and of a turn
        that waited while the server was started again. Empty where users are not told apart.
        """
        return self._host.user

    @property
    def thread_id(self) -> str:
        """The thread that the turn belongs to; `main` unless a program began another one."""
        return self._session.threads.of(self.id)

    @property
    def state(self) -> dict[str, Any]:
        """A JSON object of the agent's own for this session, durable; no renderer gets it.

        If the turn changed it, it is recorded when the turn ends, however it ends: as what a turn
        showed stays when it fails or is cancelled, so does what it keeps here. Only what a turn
        changed in which the process was killed is lost. Each branch has the state of its own turns.

        A state that has more than `MAX_STATE_BYTES` as JSON, holds a secret or is no JSON is not
        recorded, and fails the turn.
        """
        if self._state is None:
            self._state = copy.deepcopy(self._session.settings.state)
        return self._state

    @property
    def cache(self) -> dict[str, Any]:
        """A place for any objects of the agent's own, per session, in memory only."""
        return self._host.cache

    @property
    def record(self) -> Recorder:
        """Records what ARP does not see by itself: tasks, processes, models, costs, permissions."""
        # Only now, so that importing `Turn` stays quick; a hub has them loaded before any turn.
        from arp.record.recorder import Recorder
        from arp.record.scope import FactScope

        ids = {"thread_id": self.thread_id, "turn_id": self.id}
        scope = FactScope(self._session, ids, self._before_fact, self._changed)
        return Recorder(scope, self._host.outputs)

    @must_await("turn.read_file")
    async def read_file(self, ref: FileRef) -> bytes:
        """Return the content of an uploaded file.

        Raises:
            UnknownObject: There is no such file (any more).
        """
        check_kind(ref, FileRef, "ref")
        return await self._host.read_file(ref.sha256)

    @must_await("turn.save_file")
    async def save_file(
        self, name: str, content: bytes | os.PathLike[str], mime: str = ""
    ) -> FileRef:
        """Keep a file beside the ledger, for `ui.image`, a link, or later turns of this session.

        Args:
            name: As people see it; no path.
            content: The bytes, or where a file lies that is copied.
            mime: What it is; empty = by its name.

        Returns:
            What names it; `file_url` gives its address.

        Raises:
            ResourceLimit: It has more than `max_upload_bytes`; nothing is kept.
            OSError: The file cannot be read; nothing is kept.
        """
        self._session.check_running(self.id)
        name, mime = well_formed(name), well_formed(mime)
        ref = await self._host.save_file(name, content, mime)
        self._session.check_running(self.id)
        told = {"bytes": ref.size, "sha256": ref.sha256, "mime": ref.mime, "file": _plain(ref)}
        self._session.in_turn("output.spilled", self.id, told, output_ref=ref.sha256)
        self._session.input_log.remember_files([ref.sha256])
        self._changed()
        return ref

    def file_url(self, ref: FileRef) -> str:
        """Return the address of a file of this session, below that of the server."""
        check_kind(ref, FileRef, "ref")
        return blob_path(self.session_id, ref.sha256, ref.name)

    def history(self, limit: int = 20) -> list[tuple[str, str]]:
        """Return what was said before this turn: ("user" | "assistant", text), oldest first.

        Only what was said in its own thread.

        Args:
            limit: At most this many entries, the newest.
        """
        entries: list[tuple[str, str]] = []
        for turn in self._session.screen.turns.values():
            if turn.id == self.id:
                break
            if self._session.threads.of(turn.id) != self.thread_id:
                continue
            if (
                turn.status == "cancelled"
                and not turn.tools
                and not self._session.screen.output(turn.id)
            ):
                continue  # it was taken back before anything came of it
            for echo in turn.inputs[:1]:
                said = echo.data.get("text")
                if isinstance(said, str) and said:
                    entries.append(("user", said))
            answered = self._session.screen.text(turn.id)
            if answered:
                entries.append(("assistant", answered))
        return entries[-limit:]

    def usage(self, **used: Json) -> None:
        """Record what the turn took: `turn.usage(input_tokens=812, output_tokens=64)`.

        Numbers of several calls add up, of anything else the last is kept. Renderers get all of it
        with the final commit.

        Raises:
            ResourceLimit: More than `MAX_USAGE_BYTES`; nothing is recorded.
            TypeError: It cannot be written as JSON; nothing is recorded.
        """
        self._session.check_running(self.id)
        self._counters.add(used)

    # -- saying and showing ----------------------------------------------------------------------

    async def say(self, text: str) -> None:
        """Add text to the turn's output; everyone sees it as soon as the ledger has it.

        Cancel: Safe; a text of up to `MAX_UNWRITTEN` characters is said, of a longer one a part.
        """
        if self._pending or self._failed is not None or self._frames:
            if self._frames:
                spoken = {"content": well_formed(text), "format": "markdown"}
                self.show(Component("", "text", spoken))
                return
            self._settle()
        session = self._session
        if session.running != self.id:
            await asyncio.sleep(0)  # an agent that loops over this error must not stop the loop
            session.check_running(self.id)
        if type(text) is not str or not text.isascii():
            text = well_formed(text)
        size = len(text)
        if size > MAX_UNWRITTEN:
            for start in range(0, size, MAX_UNWRITTEN):
                await self.say(text[start : start + MAX_UNWRITTEN])
            return
        if not size:
            return
        self._tool = None
        session.log.say(self.id, text, SAYING)
        if self._host.text_added(size):
            await self._host.room()

    def think(self, text: str) -> None:
        """Add to the turn's thinking, which only renderers that ask for it show."""
        self._session.check_running(self.id)
        text = well_formed(text)
        if text:
            self._session.log.say(self.id, text, THINKING)
            self._changed()

    def show(
        self, *components: Shown | Iterable[Shown], surface: str = "main", tool: str | None = None
    ) -> str:
        """Show components at the end of the output, or in the place of those with their ids.

        Args:
            components: In order, also in lists; a text is shown as it is. Without an id they get
                one.
            surface: Where; a new name makes a new surface.
            tool: The tool that made them, for renderers that tell. `None` = the one that ran last,
                if nothing was said since.

        Returns:
            The id of the last one.

        Raises:
            InvalidComponent, TypeError, ValueError: Something of it is no component, or cannot be
                written as JSON.
        """
        self._session.check_running(self.id)
        named = [self._named(one, "turn.show") for one in _each(components)]
        tool = self._tool if tool is None else well_formed(tool) or self._tool
        self._gather(surface, RenderChange(named, tool))
        return named[-1].id if named else ""

    def patch(self, target: str, path: str, value: Json, *, surface: str = "main") -> None:
        """Set a property of a component: `turn.patch("chart", "props.title", "Sales")`."""
        self._change(surface, Update(target, path, value))

    def append(self, target: str, path: str, value: Json, *, surface: str = "main") -> None:
        """Extend a string, or an array by the items of an array."""
        self._change(surface, Append(target, path, value))

    def insert(
        self,
        component: Component,
        *,
        after: str | UnsetType | None = UNSET,
        parent: str | None = None,
        surface: str = "main",
    ) -> str:
        """Put a component behind another (`None`: first), or last; into the group `parent`."""
        named = self._named(component, "turn.insert")
        self._change(surface, Insert(named, after, parent))
        return named.id

    def remove(self, target: str, *, surface: str = "main") -> None:
        """Take a component away, with its children."""
        self._change(surface, Remove(target))

    def replace(self, target: str, component: Component, *, surface: str = "main") -> str:
        """Put another component in the place of one."""
        named = self._named(component, "turn.replace")
        self._change(surface, Replace(target, named))
        return named.id

    def reorder(self, target: str, after: str | None, *, surface: str = "main") -> None:
        """Move a component behind another of the same list; `None`: first."""
        self._change(surface, Reorder(target, after))

    @asynccontextmanager
    async def frame(self) -> AsyncIterator[None]:
        """Make one commit of everything inside; if the inside raises, none of it is shown."""
        self._settle()
        self._frames += 1
        try:
            yield
        except BaseException:
            self._pending.clear()
            raise
        finally:
            self._frames -= 1
        self._settle()

    # -- tools and questions ---------------------------------------------------------------------

    @asynccontextmanager
    async def tool(self, name: str, args: Json = None) -> AsyncIterator[ToolCall]:
        """Show that a tool runs, and how it ended.

        Args:
            name: Of the tool.
            args: What it is called with; anything that can be written as JSON.

        Raises:
            Whatever the inside raises, after the tool is shown as failed: with the message of a
            `ToolFailed` (see `ToolCall.fail`) or another `ArpError`, else with its class alone.
        """
        self._settle()
        self._session.check_running(self.id)
        name = self._tool = _name(name, "name")
        named = Call(name, self._counters.next_tool(), self.record, self._changed)
        call = ToolCall(self._session, self.id, named, self._ask)
        call.start({} if args is None else args)
        self._changed()
        try:
            with self._host.span_of_tool(call.call_id):
                yield call
            await call.settle()
            self._settle()
        except asyncio.CancelledError:
            self._end_tool(call, "cancelled")
            raise
        except ArpError as error:
            self._end_tool(call, error.message)
            raise
        except BaseException as error:
            self._end_tool(call, type(error).__name__)
            raise
        self._end_tool(call, None)

    @must_await("turn.ask")
    async def ask(self, component: Component, *, surface: str = "main") -> Json:
        """Show an input component and wait until somebody answers it, on any renderer.

        Returns:
            A form: `dict` of its fields. A confirm: `bool`. Choices: the value, or the list of
            values with `multi_select`. A table with `selectable="one"`: the number of the row,
            from 0; with `"many"` the list of them. A text input: `str`.

        Raises:
            ArpError: The component is refused.

        Cancel: Safe; the question is withdrawn on every renderer, and the turn runs on. An answer
            that was accepted before the cancel came is returned; the cancel then comes at the next
            await.
        """
        return await self._ask(component, None, surface)

    async def _ask(self, component: Component, about: About | None, surface: str = "main") -> Json:
        self._settle()
        self._session.check_running(self.id)
        named = self._named(component, "turn.ask")
        question = self._session.ask(self.id, named, _name(surface, "surface"), about)
        self._changed()
        try:
            return await self._answer_to(question)
        finally:
            self._waiting.pop(question.action_id, None)

    async def _answer_to(self, question: Question) -> Json:
        requests = _running_task().cancelling()
        future = asyncio.get_running_loop().create_future()
        self._waiting[question.action_id] = future
        try:
            return await future
        except asyncio.CancelledError:
            if self._session.running != self.id or self._host.is_stopping:
                raise  # the question closes with the turn, or stays open for the next server
            if self._session.is_open(question):
                self.flush()
                self._session.cancel_question(question)
                self._changed()
                raise
        # Every renderer shows the answer as accepted, so it counts: the cancel came after it.
        answer = await self._host.unless_gone(self._waiting_for(question.action_id))
        asyncio.get_running_loop().call_soon(_cancel_again, _running_task(), requests)
        return answer

    def _waiting_for(self, action_id: str) -> asyncio.Future[Json]:
        """Return the future of an answer; a new one where a cancel has ended the first."""
        future = self._waiting[action_id]
        if future.cancelled():
            future = self._waiting[action_id] = asyncio.get_running_loop().create_future()
        return future

    @must_await("turn.confirm")
    async def confirm(
        self, title: str, message: str | None = None, *, id: str = "", **more: Unpack[Confirming]
    ) -> bool:
        """Ask yes or no: `await turn.confirm("Delete?", "12 rows", destructive=True)`.

        Raises:
            ArpError: As `ask`.
        """
        props = {"title": title, "message": message, **more}
        given = {name: value for name, value in props.items() if value is not None}
        return bool(await self.ask(Component(id, "confirm", given)))

    def shown_as(self, component_id: str, *, surface: str = "main") -> dict[str, str]:
        """Return as what each renderer shows a component: `native`, or a simpler type.

        A renderer that acknowledges what it has drawn may say that it could not draw it so:
        `fallback` or `failed`.
        """
        self._settle()
        tree = self._session.tree(surface)
        if tree is None or component_id not in tree.nodes:
            return {}
        component, root = (
            tree.component(component_id),
            tree.component(tree.root_of(component_id).id),
        )
        out: dict[str, str] = {}
        for viewer in self._host.viewers:
            kind = how_shown(component, supported(viewer.profile))[component_id]
            if not fits_in(root, viewer.profile):
                (whole,) = shown_as(root, viewer.profile)[:1]
                kind = kind if root.id == component_id and whole.type == root.type else whole.type
            presented = viewer.presented.get(component_id, "native")
            if kind == component.type or presented == "failed":
                kind = presented
            out[viewer.id] = kind
        return out

    # -- for the hub -----------------------------------------------------------------------------

    @property
    def used(self) -> JsonObject | None:
        """What the agent recorded by `usage`."""
        return self._counters.usage or None

    @property
    def has_pending(self) -> bool:
        """Whether something waits to be committed."""
        return bool(self._pending)

    def flush(self) -> None:
        """Commit what is pending; a refusal is kept for the agent's next await."""
        if self._frames or not self._pending:
            return
        pending, self._pending = self._pending, {}
        for surface, changes in pending.items():
            try:
                self._session.commit(self.id, surface, changes)
            except ArpError as error:
                self._failed = self._failed or error

    def finish(self) -> None:
        """Commit the rest, and record the state; raise what was refused."""
        self._frames = 0
        self._settle()
        self.record_state()

    def record_state(self) -> None:
        """Record what the agent keeps, if the turn changed it. Called again, do nothing.

        Raises:
            ArpError, TypeError, ValueError: It cannot be recorded, and stays what it was.
        """
        state, self._state = self._state, None
        if state is None:
            return
        try:
            plain_state = plain(state)
        except TypeError as error:
            what = f"turn.state: {error}; keep live objects in turn.cache"
            raise TypeError(what) from None
        except ValueError as error:
            raise ValueError(f"turn.state: {error}") from None
        self._session.update_state(self.id, plain_state)
        self._changed()

    def resolve(self, action_id: str, value: Json) -> None:
        """Hand an answer to the `ask` that waits for it."""
        if action_id in self._waiting and not (future := self._waiting_for(action_id)).done():
            future.set_result(value)

    @property
    def is_waiting(self) -> bool:
        """Whether the agent waits for an answer."""
        return bool(self._waiting)

    # -- inside ----------------------------------------------------------------------------------

    def _settle(self) -> None:
        if not self._frames:
            self.flush()
            if self._session.has_recorded:
                self._changed()
        error, self._failed = self._failed, None
        if error is not None:
            raise error

    def _before_fact(self) -> None:
        self.flush()
        self._session.check_running(self.id)

    def _gather(self, surface: str, change: Change) -> None:
        changes = self._pending.setdefault(_name(surface, "surface"), [])
        last = changes[-1] if changes else None
        match last, change:
            case RenderChange(), RenderChange() if last.tool_name == change.tool_name:
                changes[-1] = RenderChange([*last.components, *change.components], last.tool_name)
            case PatchChange(), PatchChange():
                last.ops.extend(change.ops)
            case _:
                changes.append(change)
        self._changed()

    def _change(self, surface: str, op: PatchOp) -> None:
        self._session.check_running(self.id)
        self._gather(surface, PatchChange([_copied(op)]))

    def _named(self, component: Component, where: str) -> Component:
        """Return a copy that shares nothing with the author's, in which everything has an id."""
        if not isinstance(component, Component):
            what = type(component).__name__
            raise InvalidComponent(f"{where}: expected a component, got {what}; ui.text(…) is one")
        copied = _copied(component)
        try:
            return self._with_ids(copied)
        except (KeyError, TypeError, AttributeError, RecursionError):
            what = f"the children of {copied.type!r:.60} do not fit it"
            raise InvalidComponent(f"{where}: {what}; ui.group(…) makes one that does") from None

    def _with_ids(self, component: Component) -> Component:
        own, children = take_children(component.type, component.props)
        props = component.props
        if children:
            named = [self._with_ids(msgspec.convert(child, Component)) for child in children]
            props = put_children(component.type, own, [_plain(child) for child in named])
        name = component.id or f"{self.id}-{self._counters.next_component()}"
        return msgspec.structs.replace(component, id=name, props=props)

    def _end_tool(self, call: ToolCall, error: str | None) -> None:
        if self._session.running == self.id:
            call.end(error)
            self._changed()


def _name(text: str, what: str) -> str:
    """Return a name as a plain text; one that is empty names nothing."""
    formed = well_formed(text)
    if not formed:
        raise ValueError(f"{what}: expected a name, got an empty text")
    return formed


def _running_task() -> asyncio.Task[Any]:
    """Return the current task. A variable with it would keep its traceback, and so a session."""
    task = asyncio.current_task()
    assert task is not None
    return task


def _cancel_again(task: asyncio.Task[Any], requests: int) -> None:
    """Repeat a cancel that an `ask` did not pass on, unless the timeout that sent it is over.

    Args:
        task: Whose `ask` got the cancel.
        requests: How many cancels the task had before it.
    """
    if task.cancelling() > requests:
        task.uncancel()
        task.cancel()


def _copied(value: T) -> T:
    """Return a deep copy as plain values; refuse at once what cannot be written as JSON."""
    return msgspec.json.decode(encoded(value), type=type(value))


def _each(shown: Iterable[Shown | Iterable[Shown]]) -> Iterator[Component]:
    """Return components one by one, those in lists too; what is neither is left to be refused."""
    for given in shown:
        is_one = isinstance(given, Component | str | bytes | Mapping)
        several: Iterable[Any] = [given] if is_one or not isinstance(given, Iterable) else given
        for one in several:
            yield Component("", "text", {"content": one}) if isinstance(one, str) else one


def _plain(value: msgspec.Struct) -> JsonObject:
    plain: JsonObject = msgspec.to_builtins(value)
    return plain
