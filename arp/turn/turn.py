"""`Turn`: what an agent's author has in hand.

Theory of operation. Text, and `show`, `patch` and the other changes, gather as *pending*. They are
recorded when the agent next awaits anything of the turn (text: anything but more text), or when the
loop runs and the writer comes by: what changes between two awaits is one commit. A commit that is
refused changes nothing and raises where the agent next awaits the turn. Inside `async with
turn.frame()` nothing is committed until the end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import takewhile
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_args,
    overload,
)

import msgspec
from msgspec import UNSET, UnsetType

from arp.access.principal import User
from arp.protocol.blob_path import blob_path
from arp.protocol.catalog import asks
from arp.protocol.components import Asks, Component, author_of
from arp.protocol.errors import InvalidComponent, RoleConflict
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import (
    Anchor,
    Command,
    FileRef,
    InputEcho,
    RendererInfo,
    SurfaceInfo,
)
from arp.protocol.patch import Append, Insert, Remove, Reorder, Replace, Update
from arp.protocol.screen import TurnScreen
from arp.record.wording import check_kind, plain, refuse_unknown, well_formed
from arp.session.inputs import UNKNOWN
from arp.session.recorded import SAYING, THINKING
from arp.surface.answer_type import AnswerType
from arp.surface.change import RenderChange
from arp.surface.degrade import how_shown
from arp.turn.author_call import must_await, must_enter
from arp.turn.earlier_questions import EarlierQuestions
from arp.turn.host import (
    MAX_UNWRITTEN,
    Asking,
    TurnHost,
    dict_of,
    name_of,
    plain_object,
    text_of,
)
from arp.turn.open_question import OpenQuestion
from arp.turn.open_surface import OpenPopup, OpenSurface, Shown, named_for
from arp.turn.past_messages import PastMessages, past_of
from arp.turn.question_outcome import Declined, expiry
from arp.turn.surfaces import checked_timeout, whole_number
from arp.turn.thread import call_in_thread, is_plain
from arp.turn.tool import ToolCall, ToolProvider, ToolSpec, running_tool, started_tool
from arp.turn.user_settings import UserSettings
from arp.values.shown import as_component
from arp.view.profile import fits_in, shown_as, supported

if TYPE_CHECKING:
    from arp.record.recorder import Recorder

A = TypeVar("A")
T = TypeVar("T")


class Confirming(TypedDict, total=False):
    """What `Turn.confirm` takes besides its title and message; `None` is as if it were absent."""

    confirm_label: str | None
    deny_label: str | None
    destructive: bool | None
    name: str
    """As in `AskOptions`."""
    timeout_s: float | None
    """As in `AskOptions`."""


class AskOptions(TypedDict, total=False):
    """How a question is asked."""

    surface: str
    """Where; absent: `main`."""
    name: str
    """For `@app.on_answer`: its function takes the answer when the process that asked is gone."""
    timeout_s: float | None
    """After so many seconds the question is over, on all renderers; absent: when the turn ends."""


class TypeOptions(AskOptions, total=False):
    """How a type is asked for."""

    title: str
    """Of the form; absent: the name of a pydantic model or Struct."""
    description: str
    """Below the title; absent: the docstring of the type."""
    submit_label: str
    """Text of the button."""
    id: str
    """Of the form, as of any component."""
    values: Mapping[str, Json]
    """What stands in the fields at first; absent: the defaults of the type."""


ASK_OPTIONS = AskOptions.__optional_keys__


class Turn:
    """One turn of an agent: what the user said, and everything that the agent may do about it.

    Input: `text`, `input`, `command`, `arguments`, `files`, `renderer`, `user`, `origin`; `id`,
    `session_id`, `thread_id`. Memory: `messages`, `history`, `parent`, `branch`. Output: `say`,
    `think`, `show`, `patch`, `append`, `insert`, `remove`, `replace`, `reorder`, `frame`,
    `shown_as`. Surfaces: `surface`, `surfaces`, `popup`, `overlay`. Tools: `tool`, `start_tool`,
    `tools`, `use`, `usage`, `record`. Questions: `ask`, `question`, `confirm`. Files: `read_file`,
    `save_file`, `file_url`. State: `state`, `shared_state`, `cache`, `app_state`, `settings`,
    `update_settings`, `set_commands`.
    """

    # An attribute that nobody reads, as `turn.txt = …`, is refused.
    __slots__ = (
        "__weakref__",
        "_author",
        "_host",
        "_provider",
        "_session",
        "_settings",
        "_tool",
        "id",
    )

    def __init__(
        self,
        host: TurnHost,
        provider: ToolProvider | None = None,
        settings: UserSettings | None = None,
    ) -> None:
        self.id = host.turn_id
        self._settings = settings
        self._provider = provider
        self._host = host
        self._session = host.session
        self._author = ""
        """Who speaks; empty: the agent itself."""
        self._tool: str | None = None
        """The last tool that ran: what is shown before the agent speaks again came of it."""

    # -- input -------------------------------------------------------------------------------------

    @property
    def session_id(self) -> str:
        """The session that it belongs to."""
        return self._session.head.session_id

    @property
    def thread_id(self) -> str:
        """The thread that the turn belongs to; `main` unless a program began another one."""
        return self._session.threads.of(self.id)

    @property
    def input(self) -> InputEcho:
        """What the user did: `input_type`, `data`, `source_component`, `surface`.

        The data are as they came, also where the ledger and the screens do not have all of them.
        """
        echo = self._session.screen.turns[self.id].inputs[0]
        typed = self._session.input_log.typed.get(self.id)
        if typed is None or typed is echo.data:  # nothing in it is a secret
            return echo
        return msgspec.structs.replace(echo, data=typed)

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
    def origin(self) -> str | None:
        """Which program began this turn by `app.push`; `None`: somebody typed it."""
        return self.input.origin

    @property
    def _leaves_questions_open(self) -> bool:
        """Whether the server stops while a question of this turn is open.

        The question stays, and its answer goes to the next process. So whoever asks on behalf of
        something else, such as a runtime, leaves that as it is.
        """
        return self._host.is_left_open and self._session.asks(self.id)

    @property
    def _earlier_questions(self) -> EarlierQuestions:
        """What the turns before it left open, for whoever goes on with that."""
        return EarlierQuestions(self._host)

    @property
    def parent(self) -> str | None:
        """The turn before this one, on its branch and in its thread; `None`: it is the first.

        What an agent remembers elsewhere belongs to `parent` and goes on from there: after an edit
        that is an older turn than the last one.
        """
        earlier = self._earlier()
        return earlier[-1] if earlier else None

    @property
    def branch(self) -> str:
        """The branch: `main`, or the id of the turn with which it left another one.

        An input that is edited, and an answer that is made again, begin a branch.
        """
        branches = self._session.branches
        if branches is None or self.id not in branches:
            return "main"
        way = [*branches.before(self.id), self.id]
        return next((one for one in way[::-1] if branches.versions(one)[0] != one), "main")

    def messages(self, limit: int = 200) -> PastMessages:
        """Return the conversation before this turn: what was said, shown, called and answered.

        Of this branch and thread alone. It has forms for models and frameworks:
        `turn.messages().as_openai()`, `as_anthropic()`, `as_langchain()`, `as_pydantic_ai()`.

        Args:
            limit: At most this many messages, the newest.
        """
        _check_limit(limit)
        screen = self._session.screen
        past = [
            message
            for turn_id in self._earlier()
            if turn_id in screen.turns and not self._was_taken_back(screen.turns[turn_id])
            for message in past_of(screen, screen.turns[turn_id])
        ]
        return PastMessages(past[-limit:] if limit else ())

    def _earlier(self) -> list[str]:
        """Return the turns before this one, on its branch and in its thread."""
        threads, branches = self._session.threads, self._session.branches
        if branches is not None and self.id in branches:
            before = branches.before(self.id)
        else:
            before = list(takewhile(lambda one: one != self.id, self._session.screen.turns))
        return [one for one in before if threads.of(one) == self.thread_id]

    def _was_taken_back(self, turn: TurnScreen) -> bool:
        """Return whether a turn was cancelled before anything came of it."""
        output = self._session.screen.output(turn.id)
        return turn.status == "cancelled" and not turn.tools and not output

    def history(self, limit: int = 20) -> list[tuple[str, str]]:
        """Return what was said before this turn: ("user" | "assistant", text), oldest first.

        Only what was said in its own thread.

        Args:
            limit: At most this many entries, the newest.
        """
        _check_limit(limit)
        entries: list[tuple[str, str]] = []
        screen = self._session.screen
        for turn_id in self._earlier():
            turn = screen.turns.get(turn_id)
            if turn is None or self._was_taken_back(turn):
                continue
            for echo in turn.inputs[:1]:
                typed = echo.data.get("text")
                if isinstance(typed, str) and typed:
                    entries.append(("user", typed))
            answered = screen.text(turn.id)
            if answered:
                entries.append(("assistant", answered))
        return entries[-limit:] if limit else []

    # -- output ------------------------------------------------------------------------------------

    async def say(self, text: str, *, author: str | None = None) -> None:
        """Add text to the turn's output; everyone sees it as soon as the ledger has it.

        Args:
            text: Markdown.
            author: Who says it, where the turn was handed to another agent: the name stands above
                what follows. It stays until another one is given; empty: the agent itself again.

        Cancel: Safe; a text of up to `MAX_UNWRITTEN` characters is said, of a longer one a part.
        """
        if author is not None:
            self._speak_as(author)
        host = self._host
        if host.pending or host.refused is not None or host.frames:
            if host.frames:
                spoken = {"content": _text(text, "turn.say"), "format": "markdown"}
                self.show(Component("", "text", spoken))
                return
            host.settle()
        if self._session.turns.running != self.id:
            await asyncio.sleep(0)  # an agent that loops over this error must not stop the loop
            self._session.check_running(self.id)
        if type(text) is not str or not text.isascii():
            text = _text(text, "turn.say")
        size = len(text)
        if size > MAX_UNWRITTEN:
            for start in range(0, size, MAX_UNWRITTEN):
                await self.say(text[start : start + MAX_UNWRITTEN])
            return
        if not size:
            return
        self._tool = None
        if host.add_text(text, SAYING):
            await host.services.room()

    def _speak_as(self, author: str) -> None:
        """Show who speaks from here on, if that is somebody else than before."""
        name = " ".join(_text(author, "turn.say: author").split())
        if name != self._author:
            self._author = name
            self.show(author_of(name or self._agent_title()))

    def _agent_title(self) -> str:
        """Return what pages call the agent, else its name."""
        name = self._session.head.workflow
        known = self._host.services.about().workflows
        return next((one.title for one in known if one.name == name and one.title), name)

    def think(self, text: str) -> None:
        """Add to the turn's thinking, which only renderers that ask for it show."""
        self._session.check_running(self.id)
        text = _text(text, "turn.think")
        if text:
            self._host.add_text(text, THINKING)

    def show(self, *components: Shown, surface: str = "main", tool: str | None = None) -> str:
        """Show components at the end of the output, or in the place of those with their ids.

        Args:
            components: In order, also in lists. A text is shown as it is, a data frame or a list of
                objects as a table (as by `ui.table`), one object as names with values, a figure of
                matplotlib or plotly and a picture of PIL as it looks; so is what has a method
                `__arp__` or an `@ui.converter`. Without an id they get one.
            surface: Where; a new name makes a new surface.
            tool: The tool that made them, for renderers that tell. `None` = the one that ran last,
                if nothing was said since.

        Returns:
            The id of the last one.

        Raises:
            InvalidComponent, TypeError, ValueError: Something of it is no component, or cannot be
                written as JSON; or nothing is given. A list may be empty.
        """
        self._session.check_running(self.id)
        host = self._host
        named = named_for(host, components, "turn.show")
        tool = self._tool if tool is None else text_of(tool, "tool") or self._tool
        host.gather(surface, RenderChange(named, tool))
        return named[-1].id if named else ""

    def patch(self, target: str, path: str, value: Json, *, surface: str = "main") -> None:
        """Set a property of a component: `turn.patch("chart", "props.title", "Sales")`.

        As `append`, `insert`, `remove`, `replace` and `reorder` it names a component of `surface`.
        What is wrong with it raises where the agent next awaits the turn; nothing of that commit is
        shown then.
        """
        self._host.change(surface, Update(target, path, value))

    def append(self, target: str, path: str, value: Json, *, surface: str = "main") -> None:
        """Extend a string, or an array by the items of an array."""
        self._host.change(surface, Append(target, path, value))

    def insert(
        self,
        component: Shown,
        *,
        after: str | UnsetType | None = UNSET,
        parent: str | None = None,
        surface: str = "main",
    ) -> str:
        """Put a component behind another (`None`: first), or last; into the group `parent`.

        A value that is no component is shown as by `show`.
        """
        where = "turn.insert"
        named = self._host.named(as_component(component, where), where)
        self._host.change(surface, Insert(named, after, parent))
        return named.id

    def remove(self, target: str, *, surface: str = "main") -> None:
        """Take a component away, with its children."""
        self._host.change(surface, Remove(target))

    def replace(self, target: str, component: Shown, *, surface: str = "main") -> str:
        """Put another component, or what `show` makes of a value, in the place of one."""
        where = "turn.replace"
        named = self._host.named(as_component(component, where), where)
        self._host.change(surface, Replace(target, named))
        return named.id

    def reorder(self, target: str, after: str | None, *, surface: str = "main") -> None:
        """Move a component behind another of the same list; `None`: first."""
        self._host.change(surface, Reorder(target, after))

    @must_enter("turn.frame")
    @asynccontextmanager
    async def frame(self) -> AsyncIterator[None]:
        """Make one commit of everything inside; if the inside raises, none of it is shown."""
        self._host.begin_frame()
        try:
            yield
        except BaseException:
            self._host.drop_frame()
            raise
        self._host.end_frame()

    def shown_as(self, component_id: str, *, surface: str = "main") -> dict[str, str]:
        """Return as what each renderer shows a component: `native`, or a simpler type.

        A renderer that acknowledges what it has drawn may say that it could not draw it so:
        `fallback` or `failed`.
        """
        self._host.settle()
        tree = self._session.tree(surface)
        if tree is None or component_id not in tree.nodes:
            return {}
        component, root = (
            tree.component(component_id),
            tree.component(tree.root_of(component_id).id),
        )
        out: dict[str, str] = {}
        for viewer in self._host.live.viewers.values():
            kind = how_shown(component, supported(viewer.profile))[component_id]
            if not fits_in(root, viewer.profile):
                (shown,) = shown_as(root, viewer.profile)[:1]
                kind = kind if root.id == component_id and shown.type == root.type else shown.type
            presented = viewer.presented.get(component_id, "native")
            if kind == component.type or presented == "failed":
                kind = presented
            out[viewer.id] = kind
        return out

    # -- surfaces ----------------------------------------------------------------------------------

    @property
    def surfaces(self) -> tuple[str, ...]:
        """The names of the session's surfaces besides `main`, also of those of earlier turns."""
        return tuple(name for name in self._session.screen.surfaces if name != "main")

    def surface(self, name: str, *, title: str | None = None) -> OpenSurface:
        """Return a surface, which is made if there is none of this name.

        A renderer that has the room shows it beside the conversation. `surface=name` of `show`,
        `patch` and the others is the short form.

        Args:
            name: Its name in this session; `main` is the conversation.
            title: What users read above it; `None`: as it is.

        Raises:
            RoleConflict: A popup or an overlay has this name.
            ResourceLimit: There are too many surfaces already.
            SurfaceDestroyed: The turn is over.
        """
        host, named = self._host, name_of(name, "name")
        host.check_running()
        host.settle()
        if named != "main":
            shown = text_of(title, "title") if title is not None else None
            if self._session.tree(named) is None:
                host.surfaces.open(named, SurfaceInfo(title=shown or ""))
            elif self._session.screen.info(named).is_transient:
                raise RoleConflict(f"{named!r} is a popup or an overlay", detail=named)
            elif shown is not None:
                host.surfaces.describe(named, title=shown)
        return OpenSurface(host, named)

    def popup(
        self,
        *components: Shown,
        over: str | None = None,
        row: int | None = None,
        surface: str = "main",
        title: str = "",
    ) -> OpenPopup:
        """Show components over a component that the user just used, until the user dismisses them.

        `popup = turn.popup(ui.key_value(…), over="orders", row=2)`, then `await popup.done`. A
        renderer without popups shows them in the output of the turn, and removes them again.

        Args:
            components: As of `show`; at most two levels deep.
            over: The component.
            row: A row of that component, if it is a table; 0 is the first.
            surface: Where that component is.
            title: What users read above it.

        Raises:
            InvalidSerial: The user did nothing on that surface within the last seconds
                (`serial_max_age_s`): an agent opens popups only in answer to something.
            InvalidComponent: There is no such component, or one that is shown is refused.
            ResourceLimit: There are too many surfaces already.
            SurfaceDestroyed: The turn is over.
        """
        number = whole_number(row, "row") if row is not None else None
        if number is not None and (over is None or number < 0):
            raise ValueError("row: expected the number of a row, from 0, of the table `over`")
        info = SurfaceInfo(
            role="popup",
            title=text_of(title, "title"),
            parent=name_of(surface, "surface"),
            component=None if over is None else text_of(over, "over"),
            row=number,
        )
        return self._transient(components, info, "turn.popup")

    def overlay(
        self,
        *components: Shown,
        anchor: Anchor = "top-right",
        timeout_ms: int | None = None,
        surface: str = "main",
        title: str = "",
    ) -> OpenPopup:
        """Show components above a surface, until the user dismisses them or their time is over.

        Args:
            components: As of `show`; at most two levels deep.
            anchor: Where on the surface.
            timeout_ms: They are closed after this time, also if the turn is over by then; `None`:
                never.
            surface: Above which.
            title: What users read above it.

        Raises:
            InvalidSerial, InvalidComponent, ResourceLimit, SurfaceDestroyed: As `popup`.
            TypeError, ValueError: No such anchor, or no such time.
        """
        place = text_of(anchor, "anchor")
        if place not in get_args(Anchor):
            raise ValueError(f"anchor: expected one of {', '.join(get_args(Anchor))}")
        info = SurfaceInfo(
            role="overlay",
            title=text_of(title, "title"),
            parent=name_of(surface, "surface"),
            anchor=cast("Anchor", place),
            timeout_ms=checked_timeout(timeout_ms),
        )
        return self._transient(components, info, "turn.overlay")

    def _transient(self, shown: Sequence[Shown], info: SurfaceInfo, where: str) -> OpenPopup:
        """Open a popup or an overlay."""
        host = self._host
        host.check_running()
        host.settle()
        named = named_for(host, shown, where)
        name = host.surfaces.new_name(info.role)
        host.surfaces.open(name, info, [RenderChange(named)])
        return OpenPopup(host, name)

    # -- tools -------------------------------------------------------------------------------------

    @must_enter("turn.tool")
    @asynccontextmanager
    async def tool(self, name: str, args: Json = None) -> AsyncIterator[ToolCall]:
        """Show that a tool runs, and how it ended.

        Args:
            name: Of the tool.
            args: What it is called with; anything that can be written as JSON.

        Raises:
            Exception: Whatever the inside raises, after the tool is shown as failed: with the
                message of a `ToolFailed` (see `ToolCall.fail`) or another `ArpError`, else with its
                class alone.
        """
        named = name_of(name, "name")
        async with running_tool(self._host, named, {} if args is None else args) as call:
            self._tool = call.name
            yield call

    def start_tool(
        self,
        name: str,
        args: Json = None,
        *,
        id: str | None = None,
        subagent_id: str | None = None,
    ) -> ToolCall:
        """Show that a tool runs; `done` or `failed` of what is returned shows how it ended.

        For tools that run elsewhere and say by events how they are: `await call.done(result)`. One
        that is open when the turn ends is shown as failed. Where the code of the tool is yours,
        `async with turn.tool(…)` ends it by itself.

        Args:
            name: Of the tool.
            args: What it is called with; anything that can be written as JSON.
            id: What the runtime outside calls this call; the ledger has it in the `correlation` of
                `tool.started`, as `runtimeCallId`. `None`: there is none.
            subagent_id: The sub-agent that calls it, in every fact of the call; as in
                `turn.record.subagent`. `None`: the agent itself.

        Raises:
            ArpError: A change before it is refused; no tool is shown.
            SurfaceDestroyed: The turn is over; no tool is shown.
        """
        runtime_id = None if id is None else name_of(id, "id")
        caller = None if subagent_id is None else name_of(subagent_id, "subagent_id")
        given: Json = {} if args is None else args
        call = started_tool(self._host, name_of(name, "name"), given, runtime_id, caller)
        self._tool = call.name
        return call

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """The tools of the app that `use` can call now: name, description and JSON Schema."""
        return () if self._provider is None else self._provider.tools()

    @must_await("turn.use")
    async def use(self, name: str, args: JsonObject | None = None) -> Json:
        """Call one of `tools`, and return its result: `await turn.use("search", {"query": "x"})`.

        It is shown and recorded as with `tool`.

        Raises:
            ToolFailed: There is no such tool, or it could not do what it was asked.
            Exception: Whatever else the tool raises, after it is shown as failed.
        """
        given: JsonObject = plain({} if args is None else args)
        async with self.tool(name, given) as call:
            provider, known = self._provider, [one.name for one in self.tools]
            if provider is None or call.name not in known:
                call.fail(f"no tool {call.name!r:.60}. Available: {', '.join(known) or 'none'}.")
            if is_plain(provider.call):
                thread = f"arp-tool-{call.call_id}"
                result = await call_in_thread(thread, provider.call, call, given)
            else:
                result = await provider.call(call, given)
            call.result(result)
        return result

    def usage(self, **used: Json) -> None:
        """Record what the turn took: `turn.usage(input_tokens=812, output_tokens=64)`.

        Numbers of several calls add up, of anything else the last is kept. Renderers get all of it
        with the final commit.

        Raises:
            ResourceLimit: More than `MAX_USAGE_BYTES`; nothing is recorded.
            TypeError, ValueError: It cannot be written as JSON, or a number is below 0; nothing is
                recorded.
        """
        self._host.check_running()
        self._host.add_usage(used)

    @property
    def record(self) -> Recorder:
        """Records what ARP does not see by itself: tasks, processes, models, costs, permissions."""
        return self._host.recorder()

    # -- questions ---------------------------------------------------------------------------------

    @overload
    async def ask(
        self,
        asked: Asks[A],
        *,
        can_decline: Literal[False] = False,
        **options: Unpack[AskOptions],
    ) -> A: ...

    @overload
    async def ask(
        self, asked: Asks[A], *, can_decline: bool, **options: Unpack[AskOptions]
    ) -> A | Declined: ...

    @overload
    async def ask(
        self, asked: Component, *, can_decline: bool = False, **options: Unpack[AskOptions]
    ) -> Json: ...

    @overload
    async def ask(
        self,
        asked: type[T],
        *,
        can_decline: Literal[False] = False,
        **options: Unpack[TypeOptions],
    ) -> T: ...

    @overload
    async def ask(
        self, asked: type[T], *, can_decline: bool, **options: Unpack[TypeOptions]
    ) -> T | Declined: ...

    @must_await("turn.ask")
    async def ask(
        self, asked: Any, *, can_decline: bool = False, **options: Unpack[TypeOptions]
    ) -> Any:
        """Show an input component and wait until somebody answers it, on any renderer.

        Args:
            asked: The component; or a type, for which a form is made: a msgspec Struct, a
                dataclass, a `TypedDict` or a pydantic model.
            can_decline: Somebody may decline to answer; `DECLINED` is returned then.
            options: See `AskOptions`, and for a type `TypeOptions`.

        Returns:
            Of a type, a value of it. A form: `dict` of its fields. A confirm: `bool`. Choices: the
            value, or the list of values with `multi_select`. A table with `selectable="one"`: the
            number of the row, from 0; with `"many"` the list of them. A text input: `str`.

        Raises:
            ArpError: The component is refused, or there is no form for the type.
            QuestionExpired: Nobody answered within `timeout_s`; it is a `TimeoutError`.

        Cancel: Safe; the question is withdrawn on every renderer, and the turn runs on. An answer
            that was accepted before the cancel came is returned; the cancel then comes at the next
            await.
        """
        question: OpenQuestion[Any] = self._question(asked, can_decline, options)
        return question.taken(await self._host.outcome_of(question.asked, withdraws=True))

    @overload
    def question(
        self,
        asked: Asks[A],
        *,
        can_decline: Literal[False] = False,
        **options: Unpack[AskOptions],
    ) -> OpenQuestion[A]: ...

    @overload
    def question(
        self, asked: Asks[A], *, can_decline: bool, **options: Unpack[AskOptions]
    ) -> OpenQuestion[A | Declined]: ...

    @overload
    def question(
        self, asked: Component, *, can_decline: bool = False, **options: Unpack[AskOptions]
    ) -> OpenQuestion[Json]: ...

    @overload
    def question(
        self,
        asked: type[T],
        *,
        can_decline: Literal[False] = False,
        **options: Unpack[TypeOptions],
    ) -> OpenQuestion[T]: ...

    @overload
    def question(
        self, asked: type[T], *, can_decline: bool, **options: Unpack[TypeOptions]
    ) -> OpenQuestion[T | Declined]: ...

    def question(
        self, asked: Any, *, can_decline: bool = False, **options: Unpack[TypeOptions]
    ) -> Any:
        """Show an input component as `ask` does, and return at once: `await` it for the answer.

        Several may be open at once. `question.withdraw()` closes it without an answer; those that
        are open when the turn ends are withdrawn.

        Raises:
            ArpError: As `ask`.
        """
        return self._question(asked, can_decline, options)

    def _question(self, asked: Any, can_decline: bool, options: TypeOptions) -> OpenQuestion[Any]:
        host, read, check = self._host, _as_it_is, None
        known = TypeOptions.__optional_keys__ if isinstance(asked, type) else ASK_OPTIONS
        check_kind(can_decline, bool, "can_decline")
        refuse_unknown("turn.ask", options, known, ": not for what is asked here")
        host.settle()  # what was shown before is refused in its own words
        if isinstance(asked, type):
            values = options.get("values")
            wanted: AnswerType[Any] = AnswerType(asked, values and dict_of(values, "values"))
            asked, read, check = _form_of(wanted, options), wanted.read, wanted.check
        if can_decline and isinstance(asked, Component):
            asked = msgspec.structs.replace(asked, props={**asked.props, "can_decline": True})
        asking = Asking(
            options.get("surface", "main"),
            text_of(options.get("name", ""), "name"),
            expiry(options.get("timeout_s")),
            check=check,
        )
        try:
            return OpenQuestion(host, host.ask(asked, asking), read)
        except InvalidComponent as error:
            raise InvalidComponent(
                _asked_wrong(asked, error.message), detail=error.detail
            ) from None

    async def _ask_checked(
        self, asked: Component, check: Callable[[Json], object] | None
    ) -> Json | Declined:
        """As `ask`, of a component whose answer `check` may refuse while it is open."""
        question: OpenQuestion[Json | Declined] = OpenQuestion(
            self._host, self._host.ask(asked, Asking(check=check)), _as_it_is
        )
        return question.taken(await self._host.outcome_of(question.asked, withdraws=True))

    @must_await("turn.confirm")
    async def confirm(
        self, title: str, message: str | None = None, *, id: str = "", **more: Unpack[Confirming]
    ) -> bool:
        """Ask yes or no: `await turn.confirm("Delete?", "12 rows", destructive=True)`.

        Raises:
            ArpError: As `ask`.
            QuestionExpired: As `ask`.
        """
        refuse_unknown("turn.confirm", more, Confirming.__optional_keys__)
        options: AskOptions = {
            "name": more.pop("name", ""),
            "timeout_s": more.pop("timeout_s", None),
        }
        if type(title) is str and not title.strip():
            raise InvalidComponent("turn.confirm: title: empty; write the question")
        props = {"title": title, "message": message, **more}
        given = {name: value for name, value in props.items() if value is not None}
        return bool(await self.ask(Component(id, "confirm", given), **options))

    # -- files -------------------------------------------------------------------------------------

    @must_await("turn.read_file")
    async def read_file(self, ref: FileRef) -> bytes:
        """Return the content of an uploaded file.

        Raises:
            UnknownObject: There is no such file (any more).
        """
        check_kind(ref, FileRef, "ref")
        return await self._host.files.read(ref.sha256)

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
        name, mime = text_of(name, "name"), text_of(mime, "mime")
        ref = await self._host.files.save(name, content, mime)
        self._session.check_running(self.id)
        payload = {
            "bytes": ref.size,
            "sha256": ref.sha256,
            "mime": ref.mime,
            "file": plain_object(ref),
        }
        self._host.flush_text()
        self._session.in_turn("output.spilled", self.id, payload, output_ref=ref.sha256)
        self._session.input_log.remember_files([ref.sha256])
        self._host.changed()
        return ref

    def file_url(self, ref: FileRef) -> str:
        """Return the address of a file of this session, below that of the server."""
        check_kind(ref, FileRef, "ref")
        return blob_path(self.session_id, ref.sha256, ref.name)

    # -- state -------------------------------------------------------------------------------------

    @property
    def state(self) -> dict[str, Any]:
        """A JSON object of the agent's own for this session, durable; no renderer gets it.

        If the turn changed it, it is recorded before a question is asked, and when the turn ends,
        however it ends: as what a turn showed stays when it fails or is cancelled, so does what it
        keeps here. Only what a turn changed after that is lost if the process is killed. Each
        branch has the state of its own turns.

        A state that has more than `MAX_STATE_BYTES` as JSON, holds a secret or is no JSON is not
        recorded, and fails the turn.
        """
        return self._host.state

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        kept = dict_of(state, "turn.state")
        self._host.state.clear()
        self._host.state.update(kept)

    @property
    def shared_state(self) -> dict[str, Any]:
        """A JSON object that renderers get too, durable: what a rich client wants to know besides.

        What the turn changes in it is recorded with its output, and sent to every renderer that
        said `hello`. `turn.shared_state = {…}` sets all of it. Each branch has that of its own
        turns; the bounds are those of `state`.
        """
        return self._host.shared_state

    @shared_state.setter
    def shared_state(self, state: JsonObject) -> None:
        self._host.check_running()
        self._host.shared_state = state

    def set_commands(self, commands: Iterable[Command]) -> None:
        """Offer slash commands in this session, in the place of those that it set before.

        They stand beside those of the app, and take the place of one with the same name. They are
        durable, and each branch has those of its own turns, as with `state`. A command with
        `choices` shows as a menu on renderers that have menus. Who gives one begins a turn: the
        function of `@app.command` runs where there is one of that name, else the session's agent,
        with `turn.command` and `turn.arguments`.

        Args:
            commands: `Command(name, description, hint, choices)`, all of them, in order.

        Raises:
            ResourceLimit: They have more than 64 KiB as JSON; nothing changes.
            SurfaceDestroyed: The turn is over; nothing changes.
            TypeError, ValueError: One is no `Command`, or has a name or a choice that nobody could
                type, or two have the same; nothing changes.
        """
        self._host.set_commands(commands)

    @property
    def settings(self) -> Any:
        """What the user set for this session: a value of the type in `App(session_settings=…)`.

        Raises:
            RuntimeError: The app has no such type.
        """
        return self._known_settings().value(self._session.settings.chosen)

    def update_settings(self, **changes: Json) -> None:
        """Change what is set for this session: `turn.update_settings(model="large")`.

        Raises:
            RuntimeError: The app has no `session_settings`.
            TypeError: There is no such field; nothing changes.
            InvalidAnswer: A value that the field cannot have; nothing changes.
        """
        self._session.check_running(self.id)
        chosen = self._known_settings().changed(self._session.settings.chosen, changes)
        self._host.flush_text()
        self._session.choose_settings(chosen)
        self._host.changed()

    def _known_settings(self) -> UserSettings:
        if self._settings is None:
            raise RuntimeError("turn.settings: the app has none; write App(session_settings=…)")
        return self._settings

    @property
    def app_state(self) -> Any:
        """What the app's lifespan yielded, such as a pool of connections; see `App(lifespan=…)`."""
        return self._host.services.app_state()

    @property
    def cache(self) -> dict[str, Any]:
        """A place for any objects of the agent's own, per session, in memory only."""
        return self._host.live.cache


def _asked_wrong(asked: Any, message: str) -> str:
    """Return why something cannot be asked, as its author reads it."""
    if isinstance(asked, str):
        write = f"turn.ask(ui.text_input({asked!r:.60}))"
        return f"turn.ask: expected a question, got a text; write: {write}"
    if isinstance(asked, list | tuple | dict):
        return (
            f"turn.ask: expected a question, got {type(asked).__name__}; write: "
            "turn.ask(ui.choices([…])) or turn.ask(ui.form([…]))"
        )
    if not isinstance(asked, Component):
        what = type(asked).__name__
        return f"turn.ask: expected a component that asks or a type, got {what}; see turn.ask"
    if isinstance(asked, Component) and not asks(asked.type, asked.props):
        return (
            f"turn.ask: a {asked.type} asks nothing; ask a form, confirm, choices or text-input, a "
            'table with selectable="one" or "many", or a type'
        )
    reason = message.removeprefix("components[0].props").removeprefix("components[0]").lstrip(".: ")
    return reason if reason.startswith("turn.ask") else f"turn.ask: {reason}"


def _check_limit(limit: int) -> None:
    check_kind(limit, int, "limit")
    if limit < 0:
        raise ValueError(f"limit: expected a number from 0, got {limit}")


def _form_of(wanted: AnswerType[Any], options: TypeOptions) -> Component:
    return wanted.form.component(
        title=options.get("title"),
        description=options.get("description"),
        submit_label=options.get("submit_label"),
        id=options.get("id", ""),
    )


def _text(text: str, where: str) -> str:
    try:
        return well_formed(text)
    except TypeError as error:
        raise TypeError(f"{where}: {error}; turn.show(…) shows everything else") from None


def _as_it_is(answer: Json) -> Json:
    return answer
