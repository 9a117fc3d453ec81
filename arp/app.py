"""`App`: the agents of an author, and the ASGI application that serves them."""

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
    from arp.server.mounting import PathMount
    from arp.server.settings import AppDescription
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
A returned text is sent as by `turn.say`; another value is shown as by `turn.show`."""

AnswerFunction = TypeVar("AnswerFunction", bound="Callable[..., object]")
"""A function that receives an answer: `async def booked(turn: Turn, trip: Trip) -> None`; or a
plain function, which runs in a thread with a `SyncTurn`."""

FeedbackFunction = TypeVar("FeedbackFunction", bound="Callable[[Feedback], object]")

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_AGENT_NAME = re.compile(r"[\w.:@+-]{1,128}")


class App:
    """One or more agents that are served together.

    Args:
        title: Name of the app on the page and in lists.
        description: One sentence for users who do not know the app.
        suggestions: Texts that the page offers as the first input.
        ledger: Location of the facts: `memory:`, `sqlite:PATH` or `postgresql://…`. `arp serve` has
            its own default.
        access: Who has access: a token, or a hook that identifies users; host names; origins.
        settings: Behaviour of sessions: limits, and how to handle an input while a turn runs.
        tools: Provider of the tools that agents call with `turn.use`.
        mcp: MCP servers that provide more tools: addresses, commands such as `npx some-server`, or
            `McpServer`s. Each session that calls a server has its own connection to it.
        lifespan: Resources that are open while the app is served, as an `@asynccontextmanager`
            with the app as its parameter. Agents read the yielded value as `turn.app_state`, other
            code as `app.state`. It is entered before the first session, even if a parent
            application does not run the lifespans of mounted applications.
        session_settings: Settings that users can change in a session, such as a model: a
            dataclass, Struct or pydantic model with a default for every field. Users change them
            with the command `/settings`, or in the menu of the page. Agents read them as
            `turn.settings`.

    Raises:
        TypeError: An argument has a wrong type.
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
        """Title, description and suggestions of each agent, as they were registered."""
        self._commands: dict[str, Command] = {}
        self._command_handlers: dict[str, Handler] = {}
        self._answer_handlers: dict[str, AnswerHandler] = {}
        self._session_start: Handler | None = None
        self._feedback_handlers: list[Callable[[Feedback], Any]] = []
        self._user_settings = self._with_settings(session_settings)
        self._hub: Hub | None = None
        """Hub that serves this app; `None` while it is not served."""
        self._runtimes: list[RuntimeService] = []
        self._keepers: list[SessionKeeper] = []
        """Parts that store data of sessions outside of the ledger."""
        self._routes: list[BaseRoute] = []
        self._hub_watchers: list[Callable[[Hub | None], None]] = []
        self._last_agents: dict[str, tuple[Workflow, Handler]] = {}
        """Agents of extensions, which are listed after those of the author."""
        self._origin_handlers: dict[str, Handler] = {}
        """Agents of extensions for turns of certain origins."""
        self._runs_commands = bool(getattr(tools, "runs_commands", False))
        """Whether agents or tools run commands, which could send requests to this server."""
        if (attach := getattr(tools, "attach", None)) is not None:
            attach(self)

    # Hidden from type checkers: if they saw `__setattr__`, they would accept every attribute.
    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None:
            """Set an attribute, after checking its name and the type of its value.

            Raises:
                AttributeError: There is no such attribute; the message names a similar one.
                TypeError: The value has a wrong type.
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
        """Register an agent: `@app.agent`, or `@app.agent("name")` if there are several.

        A session that names no agent uses the first one.

        Args:
            name: Value of `?workflow=` and `hello.workflow`. Default: the name of the function.
            title: Name on pages and in lists. Default: `name`, or the title of the app if there is
                no other agent.
            description: One sentence. Default: the first line of the function's docstring, or the
                description of the app if there is no other agent.
            suggestions: Texts that the page offers as the first input. Default: those of the app.

        Raises:
            TypeError: The object is not a function with a turn as its parameter, or `suggestions`
                is a single text. Nothing is registered.
            ValueError: There is an agent with that name, or the name cannot be part of an address.
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
        run = _runnable(name, handler)
        if name in self.handlers:
            raise ValueError(f"there is an agent {name!r} already; give this one another name")
        self.handlers[name] = run
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
            runtime: A runtime of `arp.runtime`. Or an agent of a framework: a compiled graph of
                LangGraph, or an `Agent` of the OpenAI Agents SDK or of Pydantic AI. Or an agent
                with AG-UI: `"ag-ui:URL"`, or a function with a `RunAgentInput` as its parameter.
                Its data about sessions is stored beside the ledger.
            name: Value of `?workflow=` and `hello.workflow`. Default: the name of the runtime.
            session: Settings of new sessions of the runtime: directory, model, mode, tools.
            offers: Models, modes and providers that users can select. Default: every model, and the
                modes that ask before they change anything.
            limits: Maximum number of open sessions, and for how long a session without a turn stays
                open.
            listed: Whether users can choose the agent. If not, other agents of this app can still
                pass turns to it.

        Returns:
            The agent. Another agent passes a turn to it with `await agent(turn)`, which raises
            `ToolFailed` if it fails.

        Raises:
            AriError: The object is neither a runtime nor an agent of a known framework, or a
                package of the framework is not installed. Nothing is registered.
            ValueError: There is an agent with that name.
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
        agent_name = name or str(getattr(runtime, "name", "")) or "runtime"
        if listed:
            self._add(well_formed(agent_name), Workflow("", title=agent_name), agent)
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
        """Register an agent that runs a model: `app.model_agent("openai:gpt-5", tools=[weather])`.

        Needs the extra `llm`. The key of the provider is read from the environment, for example
        from `OPENAI_API_KEY`.

        Args:
            model: `openai:NAME`, `anthropic:NAME`, `ollama:NAME`, or another name that Pydantic AI
                supports.
            base_url: URL of the model, if it is not at its provider: any server with the API of
                the provider.
            instructions: Instructions for the model, or a function that returns them for each
                request.
            tools: Functions with types and a docstring: `async def`, or `def`, which runs in a
                thread. A returned component is shown, and a list of objects is shown as a table.
                With `@tool(needs_approval=True)`, a person must allow each call. If a function
                raises `ToolFailed`, it is shown as failed, and the model reads the reason. Or a
                catalog of tools that may change, such as a `ToolAgent`.
            mcp: MCP servers with more tools for the model: addresses, commands, or `McpServer`s.
            name: Value of `?workflow=` and `hello.workflow`. Default: `model`.
            listed: Whether users can choose the agent. If not, other agents of this app can still
                pass turns to it.

        Returns:
            The agent; see `runtime`.

        Raises:
            AriError: There is no such model, its key is missing, or the extra is not installed; the
                message says what to do. Nothing is registered.
            ValueError: There is an agent with that name.
        """
        from arp.runtime.named import model_named

        _check_functions(tools)
        _check_servers(mcp)
        if not isinstance(instructions, str) and not callable(instructions):
            what = type(instructions).__name__
            raise TypeError(f"instructions: expected a text or a function, got {what}")
        runtime = model_named(
            model, base_url=base_url, instructions=instructions, tools=tools, mcp=mcp
        )
        return self.runtime(runtime, name=name or "model", listed=listed)

    def command(
        self, name: str, *, description: str = "", hint: str = ""
    ) -> Callable[[AgentFunction], AgentFunction]:
        """Register a slash command: `@app.command("export", hint="csv or json")`.

        When a user types `/export csv`, the function runs instead of the session's agent, with
        `turn.arguments == "csv"`.

        Args:
            name: At most 32 lower-case letters, digits, `-` and `_`.
            description: Description for users. Default: the first line of the function's docstring.
            hint: Description of the arguments.

        Raises:
            TypeError: The object is not a function with a turn as its parameter. Nothing is
                registered.
            ValueError: The name is not valid, or there is a command with that name.
        """
        _refuse_function("command", name)
        name = _text("command", name)
        description, hint = _text("description", description), _text("hint", hint)
        if not _NAME.fullmatch(name):
            raise ValueError(f"command {name!r}: take lower-case letters, digits, - and _")
        if name in self._commands:
            raise ValueError(f"there is a command {name!r} already; give this one another name")

        def add(handler: AgentFunction) -> AgentFunction:
            run = _runnable(name, handler, what="command")
            described = Command(name, description or _first_line(handler), hint)
            self._commands[name] = described
            self._command_handlers[name] = run
            return handler

        return add

    def on_answer(
        self, name: str, kind: type[Any] | None = None, /
    ) -> Callable[[AnswerFunction], AnswerFunction]:
        """Register a function that receives the answer to a question after a restart.

            @app.on_answer("trip", Trip)
            async def booked(turn: Turn, trip: Trip) -> None: ...

        Ask the question with the same name: `await turn.ask(Trip, name="trip")`. After a restart,
        the turn that asked does not wait for the answer any more. The answer starts a new turn,
        which runs this function instead of the session's agent. If the user declines the question,
        the answer is `DECLINED`.

        Args:
            name: Name of the question.
            kind: Type of the answer. If it is absent, the answer has the form that `turn.ask`
                returns.

        Raises:
            NoForm: There is no form for the type.
            TypeError: The object is not a function with a turn and an answer as its parameters.
                Nothing is registered.
            ValueError: There is a function for that name, or the name is empty.
        """
        from arp.hub.runner import AnswerHandler
        from arp.surface.answer_type import AnswerType

        _refuse_function("on_answer", name)
        name = _text("on_answer", name)
        if not name or name in self._answer_handlers:
            advice = "take a name" if not name else "give this one another name"
            raise ValueError(f"on_answer {name!r:.60}: {advice}")
        answer_type = None if kind is None else AnswerType(kind)

        def add(handler: AnswerFunction) -> AnswerFunction:
            run = _runnable(name, handler, ("turn", "answer"), "on_answer")
            self._answer_handlers[name] = AnswerHandler(run, answer_type)
            return handler

        return add

    def on_session_start(self, handler: AgentFunction, /) -> AgentFunction:
        """Register a function that runs when a user starts a session, such as a greeting.

            @app.on_session_start
            async def greet(turn: Turn) -> None:
                await turn.say(f"Hello {turn.user.display_name}!")

        When a renderer opens a new session, the function runs as the first turn, instead of the
        agent. It does not run for sessions that programs start. If nothing else happens in the
        session, it is deleted when the user opens another session.

        Raises:
            TypeError: The object is not a function with a turn as its parameter. Nothing is
                registered.
            ValueError: There is such a function already.
        """
        if self._session_start is not None:
            raise ValueError("on_session_start: there is a function already")
        self._session_start = _runnable("on_session_start", handler, what="function")
        return handler

    def on_feedback(self, handler: FeedbackFunction, /) -> FeedbackFunction:
        """Register a function that is called with a `Feedback` when a user rates an answer.

            @app.on_feedback
            async def rated(feedback: Feedback) -> None:
                await send(feedback.rating, feedback.comment, feedback.question, feedback.answer)

        It is called after the rating was recorded in the ledger; a plain function runs in a thread.
        Its exceptions are logged. `arp feedback` exports all ratings.

        Raises:
            TypeError: The object is not a function with one parameter. Nothing is registered.
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
        """Register the command `/settings` and return the settings; `None` if there are none."""
        if kind is None:
            return None
        from arp.turn.settings_command import change_settings
        from arp.turn.user_settings import UserSettings

        settings = UserSettings(kind)
        self.command("settings", description="Change the settings of this chat")(change_settings)
        return settings

    def commands(self) -> tuple[Command, ...]:
        """Return the slash commands, in the order of their registration."""
        return tuple(self._commands.values())

    def workflows(self) -> list[Workflow]:
        """Return the agents with their titles, descriptions and suggestions."""
        several = len(self.handlers) > 1
        workflows: list[Workflow] = []
        for name, handler in self.handlers.items():
            described = self._described.get(name, Workflow("", ""))
            title = name if several else self.title
            description = _first_line(handler) if several else self.description
            workflows.append(
                Workflow(
                    name,
                    described.title or title,
                    described.description or description,
                    described.suggestions or self.suggestions,
                )
            )
        return workflows

    def served(
        self,
        *,
        ledger: str | None = None,
        access: Access | None = None,
        settings: HubSettings | None = None,
        debug: bool = False,
        start_token: Literal["no", "printed", "logged"] = "no",
    ) -> AppDescription:
        """Return the settings for a server; arguments replace the values of the app.

        Args:
            ledger: Location of the ledger.
            access: Who has access.
            settings: Behaviour of sessions.
            debug: Whether clients see tracebacks.
            start_token: Whether each start creates a token for an app that runs commands and has
                no other access control, and where people find the token.
        """
        from arp.server.settings import AppDescription

        for name, (described, handler) in self._last_agents.items():
            if name not in self.handlers:
                self.handlers[name], self._described[name] = handler, described
        location = ledger or self.ledger
        return AppDescription(
            self.handlers,
            self.workflows,
            location,
            access or self.access,
            settings or self.settings,
            self.commands,
            debug,
            self.title,
            self.tools,
            self._set_hub,
            self._command_handlers,
            partial(self._open_parts, location),
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
        """Open the parts of the app that start with a server.

        Runtimes store their sessions beside the ledger of that server.
        """

        def prepare() -> None:
            if self._runtimes:
                from arp.runtime.named import keep_beside

                keep_beside(ledger, self._runtimes)

        await self._parts.open(prepare)

    def _with_lifespan(
        self, lifespan: Callable[[App], AbstractAsyncContextManager[Any]]
    ) -> AppLifespan:
        """Return a lifespan that is entered with the server and exited after all other parts."""
        from arp.server.lifespan import AppLifespan

        _check_lifespan(lifespan)
        app_lifespan = AppLifespan(lambda: lifespan(self))
        self._parts.add(app_lifespan.open, app_lifespan.aclose)
        return app_lifespan

    @property
    def state(self) -> Any:
        """Value that the lifespan yielded; `None` while the app is not served, or without one."""
        return self._lifespan.value if self._lifespan is not None else None

    def _with_mcp(
        self, tools: ToolProvider | None, servers: Sequence[str | McpServer]
    ) -> ToolProvider:
        """Return a provider of the app's own tools and the tools of MCP servers."""
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
        """Add agents, routes and parts that start and end with the server.

        Args:
            extension: The agents, routes and parts. A `ToolProvider` with a method `attach(app)`
                calls `extend` when the app is created.
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
        """Queue a turn that a program starts: `await app.push(session_id, "The build failed")`.

        The agent runs as for a typed input. `turn.origin` is the program that started the turn, and
        `turn.input.data` has `text` and `data`. Renderers show the text with its origin; without a
        text they show only the output of the agent. The turn waits for the turns before it and
        never interrupts one.

        Args:
            session: Id of a session; it need not be in memory.
            text: Text of the turn, as if a user had typed it.
            data: Further data for the agent, as JSON.
            origin: Name of the program, for `turn.origin` and the screens.
            user: User for `turn.user`, who must be the owner of the session. `None` means no user,
                and the session may have any owner. A session id from outside is not a credential:
                pass the user too.
            id: 1 to 123 printable ASCII characters. If this session already has a turn with that
                id, that turn is returned.

        Returns:
            The turn, after it was stored durably; its `over()` waits until it has ended.

        Raises:
            ArpError: There is no such session, or it belongs to another user
                (`SESSION_NOT_FOUND`); too many turns are queued, or the data is too large; or the
                session is read-only.
            TypeError, ValueError: The data is not JSON, or another argument is not valid. Nothing
                has changed.
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

        After `await app.patch(session_id, "import", "props.value", 40)` the change is durable and
        on every screen, even while a turn runs. A program in another process uses
        `agentSession/surface/update` of the control plane.

        Args:
            session: Id of a session; it need not be in memory.
            target: Id of a component that a turn has shown.
            path: Path of the property, as in `turn.patch`.
            value: New value, as JSON.
            surface: Surface that shows the component.
            user: User who must be the owner of the session; `None` allows any owner.

        Raises:
            ArpError: There is no such session, surface or component; the value does not fit; or
                the component is an open question, which only its turn may change. Nothing has
                changed.
            TypeError, ValueError: An argument is not valid. Nothing has changed.
            StoreError: The ledger cannot be opened or read.
        """
        from arp.hub.pushed import patch_shown
        from arp.protocol.patch import Update

        hub = self._hub or await self.asgi.hub()
        await patch_shown(hub, session, surface, Update(target, path, value), user)

    async def sessions(self, *, user: User | str | None = None) -> AsyncIterator[SessionMeta]:
        """Yield the sessions, newest use first: `async for session in app.sessions()`.

        Args:
            user: Owner of the sessions; `None` means the sessions of all users.

        Raises:
            StoreError: The ledger cannot be opened or read.
        """
        from arp.hub.pushed import all_sessions

        async for session in all_sessions(self._hub or await self.asgi.hub(), user):
            yield session

    async def delete_session(
        self, session: str, *, user: User | str | None = None
    ) -> list[Remainder]:
        """Delete a session: its facts and files, and the data of runtimes about it.

        Args:
            session: Id of a session; it need not be in memory.
            user: User who must be the owner of the session. `None` allows any owner; do not use it
                with a session id from outside, which is not a credential.

        Returns:
            The data that a runtime could not delete.

        Raises:
            ArpError: There is no such session, or it belongs to another user
                (`SESSION_NOT_FOUND`).
            StoreError: The ledger cannot be opened, read or written.
        """
        from arp.hub.pushed import delete_session

        return await delete_session(self._hub or await self.asgi.hub(), session, user)

    async def set_commands(self, session: str, commands: Iterable[Command]) -> None:
        """Set the slash commands of a session, like `turn.set_commands` but outside of a turn.

        They belong to the current branch of the session.

        Args:
            session: Id of a session; it need not be in memory.
            commands: All commands, in order; they replace those that were set before.

        Raises:
            ArpError: There is no such session (`SESSION_NOT_FOUND`), or the commands are too large.
            TypeError, ValueError: A command is not valid. Nothing has changed.
            StoreError: The ledger cannot be opened or read.
        """
        from arp.hub.pushed import offer_commands

        await offer_commands(self._hub or await self.asgi.hub(), session, commands)

    async def recorder(self, session: str) -> Recorder:
        """Return the recorder of a session, for facts outside of its turns; see `turn.record`.

        Args:
            session: Id of a session; it need not be in memory.

        Raises:
            ArpError: There is no such session (`SESSION_NOT_FOUND`).
            StoreError: The ledger cannot be opened or read.
        """
        from arp.hub.pushed import session_of

        hub = self._hub or await self.asgi.hub()
        return hub.recorder(await session_of(hub, session, None))

    @cached_property
    def asgi(self) -> Application:
        """ASGI application, which can be mounted even if the parent does not run its lifespan."""
        from arp.server.application import Application

        return Application(self.served(start_token="logged"), is_mounted=True)

    def mounted(self, path: str, *, inside: ASGIApp) -> PathMount:
        """Return an ASGI application that serves this app below a path of another application.

        Use it with Django and other frameworks that cannot mount an ASGI application. The lifespans
        of both applications run.

        Args:
            path: Path of this app, for example `/agent`.
            inside: The other application, for example `get_asgi_application()`.

        Raises:
            ValueError: The path is not valid, or `inside` is not an application.
        """
        from arp.server.mounting import PathMount

        return PathMount(self.asgi, path, inside)


def _refuse_function(decorator: str, name: object) -> None:
    """Raise `TypeError` if a decorator that needs a name was used without one."""
    if callable(name):
        raise TypeError(f'write the name too: @app.{decorator}("name")')


def _check_type(name: str, value: object, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        what = f"{kind.__name__}(…)"
        raise TypeError(f"{name}: expected {what}, got {type(value).__name__}")


def _check_functions(tools: object) -> None:
    """Check that `tools` is a list of functions or a catalog of tools.

    Raises:
        TypeError: It is not; the message names the wrong item.
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
    """Check that `servers` is a list of MCP servers.

    Raises:
        TypeError, ValueError: It is not; the message names the wrong item.
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
    """Check the name and the value of an attribute of `App` that is set.

    Raises:
        AttributeError: There is no such attribute, or it can only be an argument of `App(…)`.
        StoreUnavailable, TypeError: `App(…)` would refuse the value too.
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
    """Return a text, or raise a `TypeError` that names the argument."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected str, got {type(value).__name__}")
    return well_formed(value)


def _texts(name: str, values: object) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: expected a list of str, got {values!r:.60}")
    return tuple(_text(f"{name}[{number}]", value) for number, value in enumerate(values))


def _check_lifespan(lifespan: Any) -> None:
    """Check that the server can enter a lifespan when it starts.

    Raises:
        TypeError: It cannot; the message says what to write.
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
    """Check the location of a ledger, so that the error points to the line of the author.

    Raises:
        StoreUnavailable: There is no such kind of ledger.
    """
    scheme = ledger.partition(":")[0].lower()
    # The usual kinds are not checked here, because importing the store takes time.
    if scheme not in ("memory", "sqlite"):
        from arp.store.location import path_of

        path_of(ledger)


def _first_line(handler: object) -> str:
    return well_formed((handler.__doc__ or "").strip().partition("\n")[0])


def serve(app: App, *, host: str = "127.0.0.1", port: int = 8080) -> None:
    """Serve an app until the process is asked to stop; `arp serve` does the same with more options.

    If agents of the app run commands and the app has no `Access`, each start creates a token, and
    the printed address contains it.

    Args:
        app: The app.
        host: Address to listen on. An address that other machines can reach needs an `Access` with
            a token.
        port: Port to listen on; 0 selects a free one.

    Raises:
        TypeError: `app` is not an `App`, or the port is not a number.
        ValueError: Others can reach the address or a host name of the app, and the app has no
            access control; or the app has no agent; or the address or port is not valid.
        OSError: The address cannot be used.
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
        if token:  # print it, because without it no user has access
            netloc = f"[{host}]" if ":" in host else host
            sys.stdout.write(f"ARP on http://{netloc}:{listener.getsockname()[1]}/#token={token}\n")
            sys.stdout.flush()

    with handlers_restored():
        run(application, listener, ready)


def _runnable(
    name: str, handler: Any, given: Sequence[str] = ("turn",), what: str = "agent"
) -> Any:
    """Check a handler and return an async function that runs it.

    A coroutine function is returned as it is; a plain function is wrapped so that it runs in a
    thread. A function that a decorator has wrapped is accepted if the wrapped function is a
    coroutine function.

    Args:
        name: Name of the agent, command or question, for error messages.
        handler: The handler.
        given: Names of the arguments that it is called with.
        what: Kind of handler, for error messages.

    Raises:
        TypeError: It cannot be called with these arguments. The message says what to write.
    """
    runs_in = _kind(name, handler, given, what)
    _check_signature(name, handler, given, what)
    if runs_in == "loop":
        return handler
    from arp.turn.sync_turn import in_thread

    return in_thread(handler)


def _check_signature(name: str, handler: Any, given: Sequence[str], what: str) -> None:
    try:
        takes = inspect.signature(handler)
    except ValueError:  # some callables, such as those in C, have no signature
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
    """Return whether a parameter is annotated with a type that a turn never has."""
    if isinstance(annotation, str):
        return annotation in _PLAIN_NAMES
    return annotation in (str, int, float, bool, bytes, dict, list) or annotation is App


_PLAIN_NAMES = frozenset(("str", "int", "float", "bool", "bytes", "dict", "list", "App"))


def _kind(name: str, handler: Any, given: Sequence[str], what: str) -> Literal["loop", "thread"]:
    """Return whether a handler runs in the event loop or in a thread.

    Raises:
        TypeError: It is not a handler. The message says what to write.
    """
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
