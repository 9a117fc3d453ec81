"""`App`: what an agent's author writes down, and the ASGI application that it becomes."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from arp.access.settings import Access, unfit_signature
from arp.live.settings import HubSettings
from arp.protocol.json_value import Json
from arp.protocol.messages import Command, Workflow
from arp.protocol.safe_text import well_formed

if TYPE_CHECKING:
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp

    from arp.access.principal import User
    from arp.hub.extension import AppExtension
    from arp.hub.hub import Hub
    from arp.hub.pushed import PushedTurn
    from arp.hub.removal import Remainder, SessionKeeper
    from arp.hub.runner import AnswerHandler, Handler
    from arp.record.recorder import Recorder
    from arp.runtime.contract.services import RuntimeService
    from arp.runtime.contract.types import CreateSessionRequest, McpServer
    from arp.runtime.turns.agent import RuntimeAgent
    from arp.runtime.turns.agent_sessions import RuntimeLimits
    from arp.runtime.turns.session_commands import RuntimeOffers
    from arp.server.application import Application
    from arp.server.lifespan import AppLifespan, AppParts
    from arp.server.mounting import Mounted
    from arp.server.settings import Served
    from arp.store.session_list import SessionMeta
    from arp.turn.feedback import Feedback
    from arp.turn.sync_turn import SyncTurn
    from arp.turn.tool import ModelTools, ToolProvider
    from arp.turn.turn import Turn
    from arp.turn.user_settings import UserSettings

AgentFunction = TypeVar(
    "AgentFunction",
    bound="Callable[[Turn], Coroutine[Any, Any, object]] | Callable[[SyncTurn], object]",
)
"""An agent: `async def agent(turn: Turn)`, or `def agent(turn: SyncTurn)`, which runs in a thread.
What it returns, a text or what `turn.show` takes, is said or shown."""

AnswerFunction = TypeVar("AnswerFunction", bound="Callable[..., object]")
"""What takes an answer: `async def booked(turn: Turn, trip: Trip) -> None`; or a plain function,
which runs in a thread with a `SyncTurn`."""

FeedbackFunction = TypeVar("FeedbackFunction", bound="Callable[[Feedback], object]")

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_AGENT_NAME = re.compile(r"[\w.:@+-]{1,128}")


class App:
    """One or more agents, served together.

    Args:
        title: What the page and lists call it.
        description: One sentence for those who have not used it yet.
        suggestions: What a user may say first.
        ledger: Where facts live: `memory:`, or `sqlite:PATH`. `arp serve` has a default of its own.
        access: Who may come in: a token, or a hook that tells users apart; host names, origins.
        settings: How sessions behave: limits, what becomes of an input while a turn runs.
        tools: Where the tools come from that agents call by `turn.use`.
        mcp: MCP servers, whose tools come to them: addresses, commands such as `npx some-server`,
            or `McpServer`s. Each session that calls one has a connection of its own.
        lifespan: What is open as long as the app is served: an `@asynccontextmanager` that takes
            the app. Agents find what it yields as `turn.app_state`, other code as `app.state`. It
            is entered before the first session, also where a parent application does not run the
            lifespan of a mounted one.
        session_settings: What users may set for a session, such as a model: a dataclass, Struct or
            pydantic model whose fields have defaults. Users change them by the command `/settings`,
            on the page in its menu; agents have a value of it as `turn.settings`.

    Raises:
        TypeError: Something of it is of another type.
    """

    def __init__(
        self,
        title: str = "ARP agent",
        *,
        description: str = "",
        suggestions: Sequence[str] = (),
        ledger: str = "memory:",
        access: Access | None = None,
        settings: HubSettings | None = None,
        tools: ToolProvider | None = None,
        mcp: Sequence[str | McpServer] = (),
        lifespan: Callable[[App], AbstractAsyncContextManager[Any]] | None = None,
        session_settings: type[Any] | None = None,
    ) -> None:
        _check_tools(tools)
        _check_type("access", access, Access)
        _check_type("settings", settings, HubSettings)
        self.title = _text("title", title)
        self.description = _text("description", description)
        self.suggestions = _texts("suggestions", suggestions)
        self.ledger = _text("ledger", ledger)
        _check_ledger(self.ledger)
        self.access = access or Access()
        self.settings = settings or HubSettings()
        self._lifespan = self._with_lifespan(lifespan) if lifespan is not None else None
        self.tools = self._with_mcp(tools, mcp) if mcp else tools
        self.handlers: dict[str, Handler] = {}
        self._described: dict[str, Workflow] = {}
        """How each agent was described where it was registered, by its name."""
        self._commands: dict[str, Command] = {}
        self._command_handlers: dict[str, Handler] = {}
        self._answer_handlers: dict[str, AnswerHandler] = {}
        self._session_start: Handler | None = None
        self._feedback_handlers: list[Callable[[Feedback], Any]] = []
        self._user_settings = self._with_settings(session_settings)
        self._hub: Hub | None = None
        """The hub that serves this app now."""
        self._runtimes: list[RuntimeService] = []
        self._keepers: list[SessionKeeper] = []
        """They keep something of sessions outside of the ledger."""
        self._routes: list[BaseRoute] = []
        self._hub_watchers: list[Callable[[Hub | None], None]] = []
        self._last_agents: dict[str, tuple[Workflow, Handler]] = {}
        self._origin_handlers: dict[str, Handler] = {}
        """Agents that come behind those of the author."""
        self._runs_commands = bool(getattr(tools, "runs_commands", False))
        """Whether agents or tools of it run commands, which could use its server themselves."""
        if (attach := getattr(tools, "attach", None)) is not None:
            attach(self)

    if not TYPE_CHECKING:  # type checkers know the attributes, and would allow all others

        def __setattr__(self, name: str, value: object) -> None:
            """Set an attribute; refuse one that nothing reads, and a value of another type.

            Raises:
                AttributeError: There is no such attribute; the message names the nearest.
            """
            if type(self) is App and not name.startswith("_") and not hasattr(App, name):
                _check_attribute(name, value)
            super().__setattr__(name, value)

    @overload
    def agent(self, handler: AgentFunction, /) -> AgentFunction: ...

    @overload
    def agent(
        self,
        name: str | None = None,
        /,
        *,
        title: str = "",
        description: str = "",
        suggestions: Sequence[str] = (),
    ) -> Callable[[AgentFunction], AgentFunction]: ...

    def agent(
        self,
        name: Any = None,
        /,
        *,
        title: str = "",
        description: str = "",
        suggestions: Sequence[str] = (),
    ) -> Any:
        """Register an agent: `@app.agent`, or `@app.agent("name")` where there are several.

        The first is the one that a session gets which names none.

        Args:
            name: What `?workflow=` and `hello.workflow` give; empty = the function's own name.
            title: What pages and lists call it; empty = its name, or the app's title where there is
                no other agent.
            description: One sentence; empty = the first line of the function's docstring, or the
                app's description where there is no other agent.
            suggestions: What a user may say first; empty = the app's.

        Raises:
            TypeError: It is no function that takes a turn, or `suggestions` is one text; nothing is
                registered.
            ValueError: There is one of that name already, or no address can have the name.
        """
        if callable(name) or inspect.iscoroutine(name):
            return self._add(None, Workflow("", ""), name)
        described = Workflow(
            "",
            _text("title", title),
            _text("description", description),
            _texts("suggestions", suggestions),
        )
        if name is not None:
            _check_agent_name(name := _text("name", name))
        return partial(self._add, name, described)

    def _add(self, name: str | None, described: Workflow, handler: Any) -> Any:
        if name is None:
            name = str(getattr(handler, "__name__", type(handler).__name__))
        runs = _checked_handler(name, handler)
        if name in self.handlers:
            raise ValueError(f"there is an agent {name!r} already; give this one another name")
        self.handlers[name] = runs
        self._described[name] = described
        return handler

    def runtime(
        self,
        runtime: RuntimeService | object,
        *,
        name: str | None = None,
        session: CreateSessionRequest | None = None,
        offers: RuntimeOffers | None = None,
        limits: RuntimeLimits | None = None,
        listed: bool = True,
    ) -> RuntimeAgent:
        """Register an agent that exists already: `app.runtime(ClaudeCodeRuntime(cwd="."))`.

        Its text, tools, permissions and costs are on every screen. It is closed with the server.

        Args:
            runtime: A runtime of `arp.runtime`; or an agent of a framework: a compiled graph of
                LangGraph, an `Agent` of the OpenAI Agents SDK or of Pydantic AI; one that speaks
                AG-UI: `"ag-ui:URL"`, or a function whose parameter is a `RunAgentInput`. What it
                remembers of sessions is kept beside the ledger.
            name: What `?workflow=` and `hello.workflow` give; `None` = the runtime's name.
            session: How its sessions are created: directory, model, mode, tools.
            offers: Which models, modes and providers users may switch to; `None` = every model,
                and the modes that ask before they change anything.
            limits: How many of its sessions are open at once, and for how long without a turn.
            listed: `False`: users cannot choose it; agents of this app hand turns to it.

        Returns:
            The agent. Another agent hands a turn to it by `await agent(turn)`, which raises
            `ToolFailed` if it fails.

        Raises:
            AriError: It is no runtime, and no agent of a known framework; or what the framework
                needs is not installed. Nothing is registered.
            ValueError: There is an agent of that name already.
        """
        from arp.runtime.contract.types import CreateSessionRequest
        from arp.runtime.named import runtime_for
        from arp.runtime.turns.agent import RuntimeAgent
        from arp.runtime.turns.agent_sessions import RuntimeLimits
        from arp.runtime.turns.session_commands import RuntimeOffers

        if name is not None:
            _check_agent_name(name := _text("name", name))
        _check_type("session", session, CreateSessionRequest)
        _check_type("offers", offers, RuntimeOffers)
        _check_type("limits", limits, RuntimeLimits)
        runtime = runtime_for(runtime)
        agent = RuntimeAgent(runtime, session=session, offers=offers, limits=limits, app=self)
        known = name or str(getattr(runtime, "name", "")) or "runtime"
        if listed:
            self._add(well_formed(known), Workflow("", title=known), agent)
        self._parts.add(agent.open, agent.aclose)
        self._runtimes.append(runtime)
        self._keepers.append(agent)
        self._runs_commands |= bool(getattr(runtime, "runs_commands", True))
        return agent

    def model_agent(
        self,
        model: str,
        *,
        base_url: str | None = None,
        instructions: str | Callable[[], str] = "",
        tools: Sequence[Callable[..., Any]] | ModelTools = (),
        mcp: Sequence[str | McpServer] = (),
        name: str | None = None,
        listed: bool = True,
    ) -> RuntimeAgent:
        """Register an agent from nothing: `app.model_agent("openai:gpt-5", tools=[weather])`.

        Needs the extra `llm`. The provider's key is read from the environment, such as
        `OPENAI_API_KEY`.

        Args:
            model: `openai:NAME`, `anthropic:NAME`, `ollama:NAME`, or another that Pydantic AI
                knows.
            base_url: Where the model is, if not at its provider's: any server that speaks the
                protocol of the provider.
            instructions: What the model gets first; or a function that returns it for each
                request.
            tools: Functions, `async def` or `def` (which run in threads), with types and a
                docstring. One that returns a component shows it; a list of objects shows as a
                table. `@tool(needs_approval=True)` above one: a person allows each call. One that
                raises `ToolFailed` is shown as failed, and the model reads why. Or a catalog of
                tools that may change, such as a `ToolAgent`.
            mcp: MCP servers, whose tools the model may call too: addresses, commands, or
                `McpServer`s.
            name: What `?workflow=` and `hello.workflow` give; `None` = `model`.
            listed: `False`: users cannot choose it; agents of this app hand turns to it.

        Returns:
            The agent, as `runtime` returns it.

        Raises:
            AriError: There is no such model, its key is missing, or the extra is not installed; the
                message says what to do. Nothing is registered.
            ValueError: There is an agent of that name already.
        """
        from arp.runtime.named import model_named

        _check_functions(tools)
        _check_servers(mcp)
        if not isinstance(instructions, str) and not callable(instructions):
            what = type(instructions).__name__
            raise TypeError(f"instructions: expected a text or a function, got {what}")
        made = model_named(
            model, base_url=base_url, instructions=instructions, tools=tools, mcp=mcp
        )
        return self.runtime(made, name=name or "model", listed=listed)

    def command(
        self, name: str, *, description: str = "", hint: str = ""
    ) -> Callable[[AgentFunction], AgentFunction]:
        """Register what a user gives as `/name …`: `@app.command("export", hint="csv or json")`.

        The function runs in the place of the session's agent; `turn.arguments` is what stands
        behind the name.

        Args:
            name: Lower-case letters, digits, `-` and `_`; at most 32.
            description: For people; empty = the first line of the function's docstring.
            hint: What may stand behind the name.

        Raises:
            TypeError: It is no function that takes a turn; nothing is registered.
            ValueError: A name that nobody could type, or there is one of that name already.
        """
        _refuse_function("command", name)
        name = _text("command", name)
        description, hint = _text("description", description), _text("hint", hint)
        if not _NAME.fullmatch(name):
            raise ValueError(f"command {name!r}: take lower-case letters, digits, - and _")
        if name in self._commands:
            raise ValueError(f"there is a command {name!r} already; give this one another name")

        def add(handler: AgentFunction) -> AgentFunction:
            runs = _checked_handler(name, handler, what="command")
            described = Command(name, description or _first_line(handler), hint)
            self._commands[name] = described
            self._command_handlers[name] = runs
            return handler

        return add

    def on_answer(
        self, name: str, kind: type[Any] | None = None, /
    ) -> Callable[[AnswerFunction], AnswerFunction]:
        """Register what takes the answer to a question when the process that asked is gone.

            @app.on_answer("trip", Trip)
            async def booked(turn: Turn, trip: Trip) -> None: ...

        The question is asked with that name: `await turn.ask(Trip, name="trip")`. After a restart
        nobody waits for its answer any more: it begins a new turn, in which this function runs in
        the place of the session's agent. A question that somebody declines gives `DECLINED`.

        Args:
            name: Of the question.
            kind: The type that was asked for; absent: the answer is given as `turn.ask` gives it.

        Raises:
            NoForm: There is no form for the type.
            TypeError: It is no function that takes a turn and an answer; nothing is registered.
            ValueError: There is one of that name already, or the name is empty.
        """
        from arp.hub.runner import AnswerHandler
        from arp.surface.answer_type import AnswerType

        _refuse_function("on_answer", name)
        name = _text("on_answer", name)
        if not name or name in self._answer_handlers:
            advice = "take a name" if not name else "give this one another name"
            raise ValueError(f"on_answer {name!r:.60}: {advice}")
        wanted = None if kind is None else AnswerType(kind)

        def add(handler: AnswerFunction) -> AnswerFunction:
            runs = _checked_handler(name, handler, ("turn", "answer"), "on_answer")
            self._answer_handlers[name] = AnswerHandler(runs, wanted)
            return handler

        return add

    def on_session_start(self, handler: AgentFunction, /) -> AgentFunction:
        """Register what runs when a user begins a session: a greeting, first questions.

            @app.on_session_start
            async def greet(turn: Turn) -> None:
                await turn.say(f"Hello {turn.user.display_name}!")

        It runs as the first turn of the session, in the place of its agent, when a renderer opens a
        new one; not for sessions that programs begin. A session in which nothing else happens goes
        when the user leaves it for another one.

        Raises:
            TypeError: It is no function that takes a turn; nothing is registered.
            ValueError: There is one already.
        """
        if self._session_start is not None:
            raise ValueError("on_session_start: there is a function already")
        self._session_start = _checked_handler("on_session_start", handler, what="function")
        return handler

    def on_feedback(self, handler: FeedbackFunction, /) -> FeedbackFunction:
        """Register what is called when a user rates an answer, with a `Feedback`.

            @app.on_feedback
            async def rated(feedback: Feedback) -> None:
                await send(feedback.rating, feedback.comment, feedback.question, feedback.answer)

        It is called when the rating is in the ledger; a plain function in a thread. What it raises
        is in the log. `arp feedback` exports all of them.

        Raises:
            TypeError: It is no function that takes one argument; nothing is registered.
        """
        if not callable(handler):
            what = type(handler).__name__
            raise TypeError(f"on_feedback: expected a function of a feedback, got {what}")
        if (takes := unfit_signature(handler, 1)) is not None:
            write = "async def rated(feedback)"
            raise TypeError(f"on_feedback: it takes {takes}; write: {write}")
        self._feedback_handlers.append(handler)
        return handler

    def _with_settings(self, kind: type[Any] | None) -> UserSettings | None:
        """Return the type of the settings, and register the command that changes them."""
        if kind is None:
            return None
        from arp.turn.settings_command import change_settings
        from arp.turn.user_settings import UserSettings

        made = UserSettings(kind)
        self.command("settings", description="Change the settings of this chat")(change_settings)
        return made

    def commands(self) -> tuple[Command, ...]:
        """List the commands."""
        return tuple(self._commands.values())

    def workflows(self) -> list[Workflow]:
        """List the agents."""
        several = len(self.handlers) > 1
        found: list[Workflow] = []
        for name, handler in self.handlers.items():
            described = self._described.get(name, Workflow("", ""))
            title = name if several else self.title
            description = _first_line(handler) if several else self.description
            found.append(
                Workflow(
                    name,
                    described.title or title,
                    described.description or description,
                    described.suggestions or self.suggestions,
                )
            )
        return found

    def served(
        self,
        *,
        ledger: str | None = None,
        access: Access | None = None,
        settings: HubSettings | None = None,
        debug: bool = False,
        start_token: Literal["no", "printed", "logged"] = "no",
    ) -> Served:
        """Return what a server needs to know, with what its command line says instead."""
        from arp.server.settings import Served

        for name, (described, handler) in self._last_agents.items():
            if name not in self.handlers:
                self.handlers[name], self._described[name] = handler, described
        place = ledger or self.ledger
        return Served(
            self.handlers,
            self.workflows,
            place,
            access or self.access,
            settings or self.settings,
            self.commands,
            debug,
            self.title,
            self.tools,
            self._set_hub,
            self._command_handlers,
            partial(self._open_parts, place),
            self._parts.aclose,
            self._answer_handlers,
            tuple(self._routes),
            lambda: self.state,
            self._session_start,
            self._user_settings,
            tuple(self._feedback_handlers),
            self._origin_handlers,
            lambda: tuple(self._keepers),
            self._runs_commands,
            start_token,
        )

    @cached_property
    def _parts(self) -> AppParts:
        """Parts that open and close with the servers of this app."""
        from arp.server.lifespan import AppParts

        return AppParts()

    async def _open_parts(self, ledger: str) -> None:
        """Open what starts with a server; runtimes keep their sessions beside its ledger."""

        def prepare() -> None:
            if self._runtimes:
                from arp.runtime.named import keep_beside

                keep_beside(ledger, self._runtimes)

        await self._parts.open(prepare)

    def _with_lifespan(
        self, lifespan: Callable[[App], AbstractAsyncContextManager[Any]]
    ) -> AppLifespan:
        """Return what enters a context manager with the server, and leaves it after all else."""
        from arp.server.lifespan import AppLifespan

        _check_lifespan(lifespan)
        made = AppLifespan(lambda: lifespan(self))
        self._parts.add(made.open, made.aclose)
        return made

    @property
    def state(self) -> Any:
        """What the lifespan yielded; `None` while the app is not served, or without a lifespan."""
        return self._lifespan.value if self._lifespan is not None else None

    def _with_mcp(
        self, tools: ToolProvider | None, servers: Sequence[str | McpServer]
    ) -> ToolProvider:
        """Return a provider of an app's own tools and those of MCP servers."""
        from arp.runtime.named import mcp_tools

        _check_servers(servers)
        provider = mcp_tools(servers)
        self._parts.add(provider.open, provider.aclose)
        from arp.turn.tool import ToolProviders

        return provider if tools is None else ToolProviders((tools, provider))

    def _set_hub(self, hub: Hub | None) -> None:
        self._hub = hub
        for watcher in self._hub_watchers:
            watcher(hub)

    def extend(self, extension: AppExtension) -> None:
        """Take what a part brings that is served with it: agents, routes, what starts and ends.

        Args:
            extension: A `ToolProvider` with `attach(app)` hands it in when the app is made.
        """
        self._last_agents |= extension.agents
        self._origin_handlers |= extension.origins
        self._routes += extension.routes
        self._parts.add(extension.open, extension.aclose)
        self._hub_watchers.append(extension.hub_changed)

    async def push(
        self,
        session: str,
        text: str = "",
        *,
        data: Mapping[str, Json] | None = None,
        origin: str = "app",
        user: User | str | None = None,
        id: str | None = None,
    ) -> PushedTurn:
        """Queue a turn that nobody typed: `await app.push(session_id, "The build failed")`.

        The agent runs as for a typed turn; `turn.origin` says who began it, `turn.input.data` has
        `text` and `data`. Renderers show the text with its origin; without a text they show only
        what the agent outputs. It waits for the turns before it, and never interrupts one.

        Args:
            session: The id of a session; it need not be in memory.
            text: What the turn is about, as if somebody had typed it.
            data: Whatever else the agent is to know, as JSON.
            origin: What the program calls itself, for `turn.origin` and for the screens.
            user: Who began it, for `turn.user`; the session has to be theirs. `None`: nobody is
                known; the session may be anybody's. A session id that comes from outside is no
                credential: give the user too.
            id: 1 to 123 printable ASCII characters. With an id that came before in this session,
                the turn of that time is returned.

        Returns:
            The turn, as soon as it is durable; its `over()` waits for its end.

        Raises:
            ArpError: There is no such session, or it is another user's (`SESSION_NOT_FOUND`); too
                many turns are queued, or the data is too large; the session is read-only.
            TypeError, ValueError: The data is no JSON, or another argument does not fit; nothing
                happened.
            StoreError: The ledger cannot be opened or read.
        """
        from arp.hub.pushed import PushRequest, push_turn

        hub = self._hub or await self.asgi.hub()
        return await push_turn(hub, session, PushRequest(text, data, origin, user, id))

    async def patch(
        self,
        session: str,
        target: str,
        path: str,
        value: Json,
        *,
        surface: str = "main",
        user: User | str | None = None,
    ) -> None:
        """Set a property of a component without a turn, such as the progress of a job.

        `await app.patch(session_id, "import", "props.value", 40)` shows on every screen, also while
        a turn runs, and is durable when it returns. A program in another process uses
        `agentSession/surface/update` of the control plane.

        Args:
            session: The id of a session; it need not be in memory.
            target: The id of a component that a turn has shown.
            path: The property, as in `turn.patch`.
            value: The new value, as JSON.
            surface: Where the component is.
            user: Whose session it has to be; `None`: it may be anybody's.

        Raises:
            ArpError: There is no such session, surface or component, the value does not fit, or the
                component is an open question, which its turn alone changes. Nothing has changed.
            TypeError, ValueError: An argument does not fit; nothing has changed.
            StoreError: The ledger cannot be opened or read.
        """
        from arp.hub.pushed import patch_shown
        from arp.protocol.patch import Update

        hub = self._hub or await self.asgi.hub()
        await patch_shown(hub, session, surface, Update(target, path, value), user)

    async def sessions(self, *, user: User | str | None = None) -> AsyncIterator[SessionMeta]:
        """Yield the sessions, newest use first: `async for one in app.sessions()`.

        Args:
            user: Whose; `None`: those of all users.

        Raises:
            StoreError: The ledger cannot be opened or read.
        """
        from arp.hub.pushed import all_sessions

        async for one in all_sessions(self._hub or await self.asgi.hub(), user):
            yield one

    async def delete_session(
        self, session: str, *, user: User | str | None = None
    ) -> list[Remainder]:
        """Delete a session: its facts and files, and what runtimes keep of it.

        Args:
            session: The id of a session; it need not be in memory.
            user: Whose it has to be; `None`: it may be anybody's, so a session id that comes from
                outside is no credential.

        Returns:
            What is still there, because a runtime could not remove it.

        Raises:
            ArpError: There is no such session, or it is another user's (`SESSION_NOT_FOUND`).
            StoreError: The ledger cannot be opened, read or written.
        """
        from arp.hub.pushed import delete_session

        return await delete_session(self._hub or await self.asgi.hub(), session, user)

    async def set_commands(self, session: str, commands: Iterable[Command]) -> None:
        """Offer slash commands in a session: as `turn.set_commands`, also while no turn runs.

        They belong to the branch that shows.

        Args:
            session: The id of a session; it need not be in memory.
            commands: All of them, in order, in the place of those that were set before.

        Raises:
            ArpError: There is no such session (`SESSION_NOT_FOUND`), or they are too large.
            TypeError, ValueError: One of them is no command that people can type; nothing changed.
            StoreError: The ledger cannot be opened or read.
        """
        from arp.hub.pushed import offer_commands

        await offer_commands(self._hub or await self.asgi.hub(), session, commands)

    async def recorder(self, session: str) -> Recorder:
        """Return what records facts of a session outside of its turns; see `turn.record`.

        Args:
            session: The id of a session; it need not be in memory.

        Raises:
            ArpError: There is no such session (`SESSION_NOT_FOUND`).
            StoreError: The ledger cannot be opened or read.
        """
        from arp.hub.pushed import session_of

        hub = self._hub or await self.asgi.hub()
        return hub.recorder(await session_of(hub, session, None))

    @cached_property
    def asgi(self) -> Application:
        """The ASGI application: mount it anywhere, also where nobody runs its lifespan."""
        from arp.server.application import Application

        return Application(self.served(start_token="logged"), is_mounted=True)

    def mounted(self, path: str, *, inside: ASGIApp) -> Mounted:
        """Return an ASGI application that serves this app below a path of another one.

        For Django, and everything else that cannot mount an ASGI application itself. The lifespans
        of both run.

        Args:
            path: As `/agent`.
            inside: The other application, such as `get_asgi_application()`.

        Raises:
            ValueError: The path is none, or the other is no application.
        """
        from arp.server.mounting import Mounted

        return Mounted(self.asgi, path, inside)


def _refuse_function(decorator: str, name: object) -> None:
    """Refuse a decorator that is written without its name."""
    if callable(name):
        raise TypeError(f'write the name too: @app.{decorator}("name")')


def _check_type(name: str, value: object, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        what = f"{kind.__name__}(…)"
        raise TypeError(f"{name}: expected {what}, got {type(value).__name__}")


def _check_functions(tools: object) -> None:
    """Refuse what is neither a list of functions nor a catalog of tools.

    Raises:
        TypeError: It says which one is wrong.
    """
    if hasattr(tools, "tools") and not isinstance(tools, type):
        return
    if isinstance(tools, str) or not isinstance(tools, Sequence):
        got = getattr(tools, "__name__", f"{tools!r:.60}")
        raise TypeError(f"tools: expected a list of functions, got {got}; write tools=[…]")
    for number, one in enumerate(tools):
        if not callable(one):
            what = type(one).__name__
            raise TypeError(f"tools[{number}]: expected a function, got {what}")


def _check_agent_name(name: str) -> None:
    if not _AGENT_NAME.fullmatch(name):
        raise ValueError(
            f"agent {name!r:.60}: a name is a part of an address; take letters, digits, "
            "-, _ and . and write the rest as title=…"
        )


def _check_servers(servers: object) -> None:
    """Refuse what is no list of MCP servers.

    Raises:
        TypeError, ValueError: It says which one is wrong.
    """
    from arp.runtime.contract.types import McpServer

    if isinstance(servers, str) or not isinstance(servers, Iterable):
        raise TypeError(f"mcp: expected a list of MCP servers, got {servers!r:.60}")
    expected = "expected an address, a command or an McpServer"
    for number, server in enumerate(servers):
        if not isinstance(server, str | McpServer):
            raise TypeError(f"mcp[{number}]: {expected}, got {type(server).__name__}")
        if isinstance(server, str) and not server.strip():
            raise ValueError(f"mcp[{number}]: {expected}, got an empty text")


def _check_tools(tools: object) -> None:
    if isinstance(tools, type):
        name = tools.__name__
        raise TypeError(f"tools: {name} is a class; give an object of it: tools={name}(…)")
    if tools is not None and not (hasattr(tools, "tools") and hasattr(tools, "call")):
        raise TypeError(f"tools: expected a ToolProvider, got {type(tools).__name__}")


def _check_attribute(name: str, value: object) -> None:
    """Refuse an attribute that nothing reads, and a value of another type.

    Raises:
        AttributeError: There is no such attribute, or it is set when the app is made.
        StoreUnavailable, TypeError: The value does not fit, as in `App(…)`.
    """
    match name:
        case "title" | "description":
            _text(name, value)
        case "suggestions":
            _texts(name, value)
        case "ledger":
            _check_ledger(_text(name, value))
        case "access":
            _check_type(name, value, Access)
        case "settings":
            _check_type(name, value, HubSettings)
        case "tools":
            _check_tools(value)
        case "handlers":
            pass
        case _:
            raise AttributeError(_unknown_attribute(name))


def _unknown_attribute(name: str) -> str:
    from difflib import get_close_matches

    arguments = list(inspect.signature(App.__init__).parameters)[1:]
    if name in arguments:
        return f"App.{name} is given when the app is made: App({name}=…)"
    near = get_close_matches(name, arguments, 1)
    own = "keep what is yours in a variable, or yield it from App(lifespan=…)"
    return f"App has no attribute {name!r:.60}; " + (f"did you mean {near[0]!r}?" if near else own)


def _text(name: str, value: object) -> str:
    """Return a text; the message names what has another type."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected str, got {type(value).__name__}")
    return well_formed(value)


def _texts(name: str, values: object) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: expected a list of str, got {values!r:.60}")
    return tuple(_text(f"{name}[{number}]", value) for number, value in enumerate(values))


def _check_lifespan(lifespan: Any) -> None:
    """Refuse what the server could not enter when it starts.

    Raises:
        TypeError: It says what to write.
    """
    write = "write @asynccontextmanager above async def lifespan(app)"
    if isinstance(lifespan, AbstractAsyncContextManager):
        raise TypeError("lifespan: expected the function, got a call of it; leave its brackets out")
    kinds = (inspect.isasyncgenfunction, inspect.iscoroutinefunction, inspect.isgeneratorfunction)
    if not callable(lifespan) or any(is_kind(lifespan) for is_kind in kinds):
        raise TypeError(f"lifespan: expected a context manager of an app; {write}")
    if (takes := unfit_signature(lifespan, 1)) is not None:
        raise TypeError(f"lifespan: it takes {takes}, but is given the app; {write}")


def _check_ledger(ledger: str) -> None:
    """Refuse a ledger that cannot be opened, where it is written.

    Raises:
        StoreUnavailable: There is no such kind of ledger.
    """
    scheme = ledger.partition(":")[0].lower()
    if scheme not in ("memory", "sqlite"):  # whose modules are needed only when it is served
        from arp.store.location import path_of

        path_of(ledger)


def _first_line(handler: object) -> str:
    return well_formed((handler.__doc__ or "").strip().partition("\n")[0])


def serve(app: App, *, host: str = "127.0.0.1", port: int = 8080) -> None:
    """Serve an app until the process is asked to stop; `arp serve` is the same with more to set.

    An app that runs commands of agents, and has no `Access` of its own, gets a token at each start:
    its address is printed with it.

    Args:
        app: What to serve.
        host: Address to listen on. Another than this machine's own needs `Access` with a token.
        port: 0 picks a free one.

    Raises:
        TypeError: It is no app, or the port is no number.
        ValueError: Others can reach the address, or a name of the app, and nothing keeps them out;
            or the app has no agent; or it is no address or port.
        OSError: The address cannot be had.
    """
    if not isinstance(app, App):
        what = type(app).__name__
        raise TypeError(f"serve: expected an App, got {what}; for a file: arp serve app.py")
    if not isinstance(port, int):
        raise TypeError(f"port: expected a number, got {port!r:.60}")
    if not 0 <= port <= 65535:
        raise ValueError(f"port: expected 0 to 65535, got {port}")
    if not isinstance(host, str) or not host or "/" in host:
        raise ValueError(f"host: expected an address such as 127.0.0.1, got {host!r:.60}")
    from arp.process.stop_signals import handlers_restored
    from arp.server.application import Application
    from arp.server.serve import bind, is_private
    from arp.server.serve import serve as run

    if not is_private(host) and app.access.is_open:
        raise ValueError(f"{host} can be reached by others: give App an Access with a token")
    application = Application(app.served(start_token="printed"))
    if not app.handlers:
        raise ValueError("the app has no agent; write @app.agent above an async function")
    listener = bind(host, port)
    token = application.state.start_token

    def ready() -> None:
        if token:  # nobody could come in without it
            place = f"[{host}]" if ":" in host else host
            sys.stdout.write(f"ARP on http://{place}:{listener.getsockname()[1]}/#token={token}\n")
            sys.stdout.flush()

    with handlers_restored():
        run(application, listener, ready)


def _checked_handler(
    name: str, handler: Any, given: Sequence[str] = ("turn",), what: str = "agent"
) -> Any:
    """Return what runs: the function itself, or for a plain one what runs it in a thread.

    It is refused if it cannot be called, as far as that can be seen without calling it. A function
    that a decorator has wrapped passes if what it wraps is a coroutine function.

    Raises:
        TypeError: It says what was given, and what to write.
    """
    runs = _kind(name, handler, given, what)
    _check_signature(name, handler, given, what)
    if runs == "loop":
        return handler
    from arp.turn.sync_turn import in_thread

    return in_thread(handler)


def _check_signature(name: str, handler: Any, given: Sequence[str], what: str) -> None:
    try:
        takes = inspect.signature(handler)
    except ValueError:  # it tells none
        return
    write = f"async def {name}({', '.join(given)})"
    try:
        bound = takes.bind(*given)
    except TypeError:
        passed = "the turn alone" if len(given) == 1 else f"({', '.join(given)})"
        raise TypeError(
            f"{what} {name!r} takes {takes}, but is given {passed}; write: {write}"
        ) from None
    first = next(iter(bound.arguments), "")
    annotation: Any = takes.parameters[first].annotation if first else None
    if _is_for_something_else(annotation):
        declared = getattr(annotation, "__name__", annotation)
        raise TypeError(
            f"{what} {name!r} takes {first}: {declared}, but is given a Turn; turn.text is what "
            f"the user said; write: {write}"
        )


def _is_for_something_else(annotation: object) -> bool:
    """Return whether a parameter is declared as a plain value, which a turn never is."""
    if isinstance(annotation, str):
        return annotation in _PLAIN_NAMES
    return annotation in (str, int, float, bool, bytes, dict, list) or annotation is App


_PLAIN_NAMES = frozenset(("str", "int", "float", "bool", "bytes", "dict", "list", "App"))


def _kind(name: str, handler: Any, given: Sequence[str], what: str) -> Literal["loop", "thread"]:
    """Return where a function runs."""
    call: object = handler
    if not inspect.isroutine(handler) and callable(handler):
        call = type(handler).__call__
    wrapped = inspect.unwrap(call) if callable(call) else call
    if any(map(inspect.iscoroutinefunction, (handler, call, wrapped))):
        return "loop"
    if inspect.isasyncgenfunction(call) or inspect.isgeneratorfunction(call):
        problem = "a generator; say what it yields: await turn.say(…)"
        problem = f"an async {problem[2:]}" if inspect.isasyncgenfunction(call) else problem
    elif inspect.iscoroutine(handler):
        handler.close()
        problem = f"a call of an agent; give the function: @app.agent above async def {name}(turn)"
    elif inspect.isclass(handler):
        problem = f"a class; give an object of it: app.agent({name}())"
    elif callable(handler):
        return "thread"
    else:
        problem = f"no function, but {type(handler).__name__}"
    raise TypeError(f"{what} {name!r} is {problem}")
