"""One use of a tool, as its author sees it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import sha256
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    NamedTuple,
    NoReturn,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
)

import msgspec
from msgspec import Struct

from arp.protocol.blob_path import blob_path
from arp.protocol.components import Component
from arp.protocol.errors import AgentFailed, ArpError, ResourceLimit, SurfaceDestroyed
from arp.protocol.json_value import Json, JsonObject
from arp.record.wording import (
    PREVIEW_CHARACTERS,
    check_kind,
    encoded,
    refuse_unknown,
    well_formed,
)
from arp.session.session import ToolUse
from arp.session.session_settings import Grant
from arp.surface.change import RenderChange
from arp.turn.author_call import must_await
from arp.turn.foreign_components import SHARE, fitting_component
from arp.turn.host import Asking, TurnHost, plain_object, text_of
from arp.turn.open_question import OpenQuestion
from arp.turn.open_surface import named_for
from arp.turn.question_outcome import Declined, expiry, rfc3339
from arp.turn.thread import call_in_thread, is_plain

if TYPE_CHECKING:
    from arp.record.work import RecordedPermission

ABANDONED = "stopped before it ended"
"""Of a call in a generator that nobody goes on with; one that its turn leaves open has another."""

MAX_COUNT = 2**53 - 1
"""Of `done` and `total`: what every renderer can count, in JavaScript too."""


MAX_RULE: Final = 1_000
"""Characters of what may be allowed for a session: a person has to read it."""

RECHECK: Final = "second-look"
"""The policy by which a yes does not count, in facts."""

SALT_BYTES: Final = 16
"""Before an input with a secret, in its digest: as many as no one can try."""


class Approval(Struct, frozen=True):
    """What came of asking a person for permission, and for which input."""

    decision: Literal["allow", "deny", "expired"]
    input: str
    """The input as JSON, secrets included: what was approved, or what was shown."""
    digest: str
    """Of `input`, as facts and renderers have it: see `digest_of`."""
    salt: bytes = b""
    """Of the digest. Nobody else gets it."""
    scope: Literal["once", "session"] | None = None
    """How far the approval goes; `None` if there is none."""
    edited: bool = False
    """Whether the person has changed the input."""
    reason: str = ""
    """Why not, if that is known."""

    def __bool__(self) -> bool:
        """Return whether it is allowed, so that `if await tool.ask_permission(…)` is right."""
        return self.allowed

    @property
    def allowed(self) -> bool:
        """Whether the tool may go on."""
        return self.decision == "allow"

    @property
    def args(self) -> Json:
        """The input, as a fresh copy."""
        return msgspec.json.decode(self.input)

    @property
    def updated_input(self) -> JsonObject | None:
        """The input if the person has changed it, as a fresh copy."""
        changed: JsonObject | None = self.args if self.edited else None
        return changed

    def covers(self, value: Json) -> bool:
        """Return whether exactly this may run: it is allowed, and what was approved.

        Args:
            value: The input, or its JSON as a text. Whoever carries it out on the word of somebody
                else compares it here at the last moment.
        """
        if isinstance(value, str):
            return self.allowed and _as_json(value) == self.input
        return self.allowed and _as_json(value) == encoded(self.args).decode()


class SecondLook(Struct, frozen=True):
    """What was found when somebody had said yes, before that counts."""

    refusal: str = ""
    """Why the answer does not count: what was shown is not what is there now."""
    files: list[JsonObject] | None = None
    """The files of it, for the ledger, where they are not those that were shown."""


class PermissionOptions(TypedDict, total=False):
    """How a tool asks for permission; `None` is as if it were absent."""

    reason: str | None
    """Why permission is needed, for the ledger."""
    session_rule: str | None
    """What a person may allow for the whole session, in words that they see: the input has to be a
    case of it. Whoever asks again with the same words for the same tool is allowed without a
    question. Absent: this input once, nothing more."""
    keeps_grant: bool
    """`False`: who asks applies a grant for the session itself, so each question is asked."""
    editable: bool
    """The person may change the input. Not offered where secrets are hidden in it: nobody can
    approve what they do not see."""
    timeout_s: float | None
    """After so many seconds the question is over, on all renderers; absent: when the turn ends."""
    files: list[JsonObject] | None
    """The files that the input names, for the ledger: `path`, `bytes`, `sha256`."""
    recheck: Callable[[Approval], Awaitable[SecondLook]] | None
    """Called with a yes before it counts: what the input refers to may have changed since. With
    `session_rule` only where `keeps_grant` is `False`, as a grant would not be looked at again."""
    message: str | None
    """As in `turn.confirm`, like all that follow."""
    confirm_label: str | None
    deny_label: str | None
    destructive: bool | None


_NO_PROPS: Final = frozenset(
    ("reason", "session_rule", "keeps_grant", "editable", "timeout_s", "files", "recheck")
)
"""Of the options, what is not for the `confirm` that asks."""


def digest_of(text: str, salt: bytes = b"") -> str:
    """Return the SHA-256 of an input as JSON text (UTF-8), behind its salt, in hex."""
    return sha256(salt + text.encode()).hexdigest()


F = TypeVar("F", bound=Callable[..., Any])

_ASKS = "__arp_needs_approval__"


def tool(*, needs_approval: bool = False) -> Callable[[F], F]:
    """Say how a function is used that a model may call: `@tool(needs_approval=True)`.

    Args:
        needs_approval: Whether a person has to allow each call, with its arguments.
    """

    def marked(function: F) -> F:
        setattr(function, _ASKS, needs_approval)
        return function

    return marked


def asks_first(function: Callable[..., Any]) -> bool:
    """Return whether a person has to allow each call of a function."""
    return bool(getattr(function, _ASKS, False))


class ToolSpec(Struct, frozen=True):
    """What whoever calls a tool has to know of it."""

    name: str
    description: str = ""
    """One sentence or more, for models and for people."""
    schema: JsonObject = {}
    """JSON Schema of its arguments; empty: any object."""


class ToolProvider(Protocol):
    """Where the tools of an app come from, which agents call by name: `App(tools=provider)`."""

    def tools(self) -> Sequence[ToolSpec]:
        """Return the tools that can be called now."""

    async def call(self, tool: ToolCall, args: JsonObject, /) -> Json:
        """Carry out a call, and return its result.

        A provider whose `call` is no `async def` is called in a thread; it calls the methods of
        `tool` without `await`.

        Args:
            tool: The call, which is shown already: `tool.name` says which tool it is. It takes
                progress, asks for permission, and records what the tool does.
            args: What the agent gave. The provider checks that they fit the tool's schema.

        Raises:
            ToolFailed: It could not be done; the message is shown to everyone.
        """


class ToolCaller(Protocol):
    """Who calls a tool: shows how far it is, and asks what the tool wants to know."""

    session_id: str
    """The session of the call: what the tool asks is asked nowhere else."""
    turn_id: str
    """The turn of the call, of which a bounded number of questions is asked."""

    def progress(self, text: str, done: float, total: float | None) -> None:
        """Show how far the tool is."""

    async def ask(self, message: str, schema: JsonObject) -> JsonObject | None:
        """Ask for what a form of the schema has; `None`: the user declines."""


class ToolFile(NamedTuple):
    """A file that a tool returned, for people to load."""

    name: str
    content: bytes
    mime: str


class ToolLink(NamedTuple):
    """What a tool names by its address."""

    title: str
    uri: str


class ToolOutput(NamedTuple):
    """What such a call returned."""

    text: str
    """As a model is told it."""
    value: Json
    """As JSON; else the text."""
    images: Sequence[tuple[bytes, str]] = ()
    """Bytes and MIME types."""
    files: Sequence[ToolFile] = ()
    """Audio, documents and other bytes."""
    links: Sequence[ToolLink] = ()
    failed: bool = False
    shown: Component | None = None
    """What shows it to people; `None`: its value shows as itself."""


class ModelTools(Protocol):
    """Tools that models may call: `app.model_agent(…, tools=…)`."""

    async def open(self) -> None:
        """Begin; called before each turn, and may be repeated."""

    async def aclose(self) -> None:
        """End; called with the runtime that has them."""

    def tools(self) -> Sequence[ToolSpec]:
        """Return the tools that can be called now."""

    async def run(self, name: str, args: JsonObject, caller: ToolCaller) -> ToolOutput:
        """Call a tool.

        Raises:
            ToolFailed: There is no such tool, or it could not do what it was asked.
        """


class ToolProviders:
    """Several providers as one; of two tools with one name the first provider's is called."""

    def __init__(self, providers: Sequence[ToolProvider]) -> None:
        self._providers = providers

    def tools(self) -> Sequence[ToolSpec]:
        """Return the tools of all."""
        found = {one.name: one for part in self._providers[::-1] for one in part.tools()}
        return list(found.values())

    async def call(self, tool: ToolCall, args: JsonObject, /) -> Json:
        """Carry out a call by the first that has the tool."""
        for provider in self._providers:
            if any(one.name == tool.name for one in provider.tools()):
                if is_plain(provider.call):
                    thread = f"arp-tool-{tool.call_id}"
                    return await call_in_thread(thread, provider.call, tool, args)
                return await provider.call(tool, args)
        raise ToolFailed(f"there is no tool {tool.name!r:.60}")


class ToolFailed(AgentFailed):
    """A tool could not do what it was asked; the message is shown to everyone.

    An agent that lets it through ends its turn with the same message.
    """


class ToolCall:
    """A tool that runs; `async with turn.tool(name, args) as call` gives one, and `start_tool`.

    A call ends once: at the end of the `async with`, or by `done` or `failed`. One that is open
    when its turn ends is shown as failed then.
    """

    def __init__(
        self,
        host: TurnHost,
        name: str,
        runtime_id: str | None = None,
        subagent_id: str | None = None,
    ) -> None:
        self.name = name
        self.denial = ""
        """Why it may not, if that is known: what somebody said with the newest no."""
        self.approval: Approval | None = None
        """The newest approval; `None` if the newest question was not answered by yes."""
        self.session_id = host.session.head.session_id
        self.turn_id = host.turn_id
        self.call_id = f"{host.turn_id}.{host.next_tool()}"
        self._ids = {"step_id": self.call_id, "tool_call_id": self.call_id}
        if subagent_id is not None:
            self._ids["subagent_id"] = subagent_id
        self.record = host.recorder().within(**self._ids)
        """Records what the tool does; every fact carries the ids of this call."""
        self._host = host
        self._session = host.session
        self._result: JsonObject = {}
        self._whole: str | None = None
        self._output_ref: str | None = None
        """Where the whole result is kept, if it is longer than a preview."""
        self._began = time.monotonic()
        self._state: Literal["open", "ending", "over"] = "open"
        self._runtime_id = runtime_id
        """What a runtime outside calls this call; `None`: there is none."""
        self._input = "null"
        """The arguments as JSON, secrets included."""

    def progress(
        self, text: str = "", *, done: int | None = None, total: int | None = None
    ) -> None:
        """Show how far the tool is; the newest replaces the one before.

        Args:
            text: What it is doing.
            done: How much is done, in the unit of `total`.
            total: How much there is to do.

        Raises:
            RuntimeError: The call has ended.
            SurfaceDestroyed: The turn is over.
            TypeError: `done` or `total` is no whole number.
            ValueError: One of them is below 0 or above `MAX_COUNT`, or `done` is more than `total`.
        """
        self._check_open()
        payload: JsonObject = {"text": text_of(text, "text")}
        if done is not None:
            payload["done"] = _count(done, "done")
        if total is not None:
            payload["total"] = _count(total, "total")
        if done is not None and total is not None and done > total:
            raise ValueError(f"done: {done} is more than the total of {total}")
        self._record("tool.progress", payload)
        self._host.changed()

    def result(self, value: Json) -> None:
        """Show what came of it: a preview, and where the whole is kept if it is longer.

        Args:
            value: Anything that can be written as JSON; what cannot is recorded by its `repr`.
        """
        try:
            text = value if isinstance(value, str) else encoded(value).decode()
        except (TypeError, ValueError):
            text = _repr(value)
        self._whole = well_formed(text)

    def show(self, *components: Any) -> None:
        """Show components, texts, data or figures that the tool has made; as `Turn.show`."""
        self._check_open()
        named = named_for(self._host, components, "tool.show")
        self._host.gather("main", RenderChange(named, self.name))

    def show_foreign(self, component: Json) -> None:
        """Show a component that the tool of somebody else has made, as far as it fits.

        What is left out is said in its place, and recorded.
        """
        self._check_open()
        found = fitting_component(component, self._session.rules.limits.max_message_bytes)
        if found.component is not None:
            self.show(found.component)
        if found.warning:
            self.record("runtime.warning", {"message": f"{self.name}: {found.warning}"})
            self.show(Component("", "text", {"content": f"Not all is shown: {found.warning}."}))

    async def show_image(self, content: bytes, mime: str, *, alt: str) -> None:
        """Show an image that the tool has made, from its bytes.

        Raises:
            ResourceLimit: It is larger than an upload may be; nothing is shown.
        """
        src = await self._saved("image", content, mime)
        self.show(Component("", "image", {"src": src, "alt": alt}))

    async def show_file(self, name: str, content: bytes, mime: str) -> None:
        """Show a file that the tool has made, for people to load.

        Raises:
            ResourceLimit: It is larger than an upload may be; nothing is shown.
        """
        name, mime = text_of(name, "name"), text_of(mime, "mime")
        url = await self._saved(name, content, mime)
        about = f"{mime}, {len(content):,} bytes"
        self.show(
            Component("", "product-cards", {"cards": [{"name": name, "badge": about, "url": url}]})
        )

    async def _saved(self, name: str, content: bytes, mime: str) -> str:
        """Keep a file of the tool, and return its address."""
        self._check_open()
        ref = await self._host.files.save(name, content, mime)
        self._check_open()
        payload = {
            "bytes": ref.size,
            "sha256": ref.sha256,
            "mime": ref.mime,
            "file": plain_object(ref),
        }
        self._record("output.spilled", payload, output_ref=ref.sha256)
        self._session.input_log.remember_files([ref.sha256])  # else nobody could load it
        return blob_path(self._session.head.session_id, ref.sha256, ref.name)

    @must_await("tool.ask")
    async def ask(
        self, component: Component, *, check: Callable[[Json], object] | None = None
    ) -> Json | Declined:
        """Show an input component and wait for its answer; as `Turn.ask`.

        Args:
            component: The question; with `can_decline` among its props, `DECLINED` may come back.
            check: Raises `InvalidAnswer` for an answer that fits the component, but not who asked:
                the question stays open.
        """
        self._check_open()
        question: OpenQuestion[Json | Declined] = OpenQuestion(
            self._host, self._host.ask(component, Asking(check=check)), lambda answer: answer
        )
        return question.taken(await self._host.outcome_of(question.asked, withdraws=True))

    @property
    def args(self) -> Json:
        """The arguments: those that were approved last, else those of the call. A fresh copy."""
        return msgspec.json.decode(self.approval.input if self.approval else self._input)

    @must_await("tool.approve")
    async def approve(self, title: str, *, rule: str, **options: Unpack[PermissionOptions]) -> bool:
        """Ask a person whether the tool may go on with its arguments, and return whether it may.

        As `ask_permission`. With `editable`, what may run afterwards is `args`.
        """
        return (await self.ask_permission(title, rule=rule, **options)).allowed

    @must_await("tool.ask_permission")
    async def ask_permission(
        self,
        title: str,
        *,
        rule: str,
        input: JsonObject | None = None,
        **options: Unpack[PermissionOptions],
    ) -> Approval:
        """Ask a person whether the tool may go on, and record who wanted that and what came of it.

        Several may be asked at once in one turn, each by its own `turn.tool`.

        Args:
            title: What is asked.
            rule: The rule that wants a person asked.
            input: What is to be approved; it is shown whole, secrets as marks. `None`: the
                arguments of the call.
            options: See `PermissionOptions`.

        Returns:
            What came of it. Without an answer nothing is allowed. Who says no may tell why.

        Raises:
            ResourceLimit: The input is too large to be shown whole; nobody is asked.
            RuntimeError: The call has ended.
            TypeError, ValueError: An argument is wrong; nobody is asked.

        Cancel: Safe; what nobody answered is no approval.
        """
        self._check_open()
        refuse_unknown("tool.approve", options, PermissionOptions.__optional_keys__)
        if not text_of(title, "title").strip():
            raise ValueError("title: empty; write what a person allows")
        shown = self._as_shown(self._input if input is None else _as_json(input))
        self.check_size(shown.input)
        about, expires_at = self._about(text_of(rule, "rule"), shown, options)
        permission = self.record.permission(self.name)
        self.denial, self.approval = "", None
        granted = about.session_rule and Grant(self.name, about.session_rule)
        if options.get("keeps_grant", True) and granted in self._session.settings.grants:
            permission.evaluated("allow", "person", "user", scope="session", digest=shown.digest)
            self.approval = msgspec.structs.replace(shown, decision="allow", scope="session")
            return self.approval
        permission.evaluated("ask", "rule", about.rule)
        permission.requested(
            options.get("reason"),
            digest=shown.digest,
            sessionRule=about.session_rule,
            editable=about.editable or None,
            expiresAt=about.expires_at,
            files=options.get("files") or None,
        )
        ids = {**self._ids, "request_id": permission.request_id or ""}
        about = msgspec.structs.replace(about, ids=ids)
        props = {
            name: value
            for name, value in options.items()
            if name not in _NO_PROPS and value is not None
        }
        question = Component("", "confirm", {"title": title, **props})
        try:
            asked = self._host.ask(question, Asking(about=about, expires_at=expires_at))
            outcome = await self._host.outcome_of(asked, withdraws=True)
            self._host.check_running()
            answer = outcome.value if outcome.kind == "answered" else None
            approval = self._meant(shown, answer)
            recheck = options.get("recheck")
            found = SecondLook()
            if recheck is not None and approval.allowed:
                found = await recheck(approval)
        except BaseException:
            # What the server's stop leaves open may still be answered: that is no outcome.
            if not self._host.is_left_open:
                with suppress(SurfaceDestroyed):
                    permission.unanswered("cancelled", digest=shown.digest)
            raise
        return self._answered(permission, approval, found)

    def check_size(self, value: Json) -> None:
        """Refuse an input that no message carries: nobody can approve what they do not see.

        Raises:
            ResourceLimit: It is too large.
        """
        text = _as_json(value)
        size, most = len(text.encode()), self._session.rules.limits.max_message_bytes // SHARE
        if size > most:
            raise ResourceLimit(
                f"the input of {self.name} has {size:,} bytes; at most {most:,} can be approved",
                detail="max_message_bytes",
            )

    def hides(self, text: str) -> bool:
        """Return whether a text has a secret, of which facts and screens have a mark only."""
        check_kind(text, str, "text")
        return bool(self._session.log.redactor.clean(text)[1])

    def _as_shown(self, text: str) -> Approval:
        """Return what becomes of an input that nobody has approved yet."""
        salt = self._salt(text)
        return Approval("expired", text, digest_of(text, salt), salt)

    def _about(
        self, rule: str, shown: Approval, options: PermissionOptions
    ) -> tuple[ToolUse, float | None]:
        """Return what a question tells about the tool, and until when it may be answered."""
        editable = options.get("editable", False)
        if editable and not isinstance(shown.args, dict):
            raise ValueError("editable: only an input that is an object can be edited")
        session_rule, expires_at = options.get("session_rule"), expiry(options.get("timeout_s"))
        keeps_grant = session_rule is not None and options.get("keeps_grant", True)
        if keeps_grant and options.get("recheck") is not None:
            raise ValueError("recheck: a session_rule with it needs keeps_grant=False")
        about = ToolUse(
            self.name,
            self._ids,
            rule,
            shown.digest,
            shown.input if shown.input != self._input else None,
            None if session_rule is None else _rule(session_rule),
            bool(editable) and not shown.salt,
            None if expires_at is None else rfc3339(expires_at),
        )
        return about, expires_at

    def _meant(self, shown: Approval, answer: JsonObject | None) -> Approval:
        """Return what an answer to a question about an input means."""
        payload: JsonObject = (answer or {}).get("payload", {})
        if answer is None:
            return msgspec.structs.replace(shown, reason="nobody answered in time")
        if answer["action"] != "confirm":
            return msgspec.structs.replace(shown, decision="deny", reason=payload.get("reason", ""))
        approval, edited = shown, payload.get("updated_input")
        if edited is not None and encoded(edited) != encoded(shown.args):
            approval = self._as_shown(encoded(edited).decode())
        is_edited, scope = approval is not shown, payload.get("scope", "once")
        return msgspec.structs.replace(approval, decision="allow", scope=scope, edited=is_edited)

    def _answered(
        self, permission: RecordedPermission, approval: Approval, found: SecondLook
    ) -> Approval:
        """Record what an answer means, and return it."""
        digest = approval.digest
        if found.refusal:
            approval = msgspec.structs.replace(
                approval, decision="deny", scope=None, reason=found.refusal
            )
        self.denial = approval.reason
        if approval.decision == "expired":
            permission.unanswered("expired", digest=digest)
        elif found.refusal:
            permission.refused(RECHECK, found.refusal, digest=digest, files=found.files)
        elif approval.decision == "deny":
            reason = approval.reason or None
            permission.denied("person", "user", digest=digest, reason=reason)
        else:
            self.approval = approval
            more = {"edited": True} if approval.edited else {}
            permission.allowed(scope=approval.scope, digest=digest, files=found.files, **more)
        return approval

    def _salt(self, text: str) -> bytes:
        """Return what goes before an input in its digest: random bytes if it holds a secret."""
        return secrets.token_bytes(SALT_BYTES) if self.hides(text) else b""

    async def _settle(self) -> None:
        """Keep a large result beside the ledger. Safe to cancel: the result is lost then."""
        if self._whole is None:
            return
        text, self._whole = self._whole, None
        if len(text) <= PREVIEW_CHARACTERS:
            self._result = {"preview": text, "characters": len(text)}
            return
        stored = await self.record.keep(text)
        self._result = {"preview": stored.preview, "characters": len(text)}
        self._output_ref = stored.output_ref

    @must_await("call.done")
    async def done(self, result: Json = None) -> None:
        """Show that the tool is done: for a call of `start_tool`.

        Args:
            result: What came of it, as `result` takes it; `None`: nothing more than that says.

        Raises:
            ArpError: A change before it is refused; the tool is shown as failed by that.
            RuntimeError: The call has ended.
            SurfaceDestroyed: The turn is over.

        Cancel: Safe; a large result may be lost, and the tool is shown as failed then.
        """
        self._check_open()
        if result is not None:
            self.result(result)
        with self._ending():
            await self._finish()

    def failed(self, error: str) -> None:
        """Show that the tool failed, and why: for a call of `start_tool`. The agent goes on.

        Args:
            error: What went wrong, for those who watch.

        Raises:
            RuntimeError: The call has ended.
            SurfaceDestroyed: The turn is over.
        """
        self._check_open()
        self._end(error)

    def fail(self, message: str) -> NoReturn:
        """End the tool of an `async with` as failed, and show why.

        Args:
            message: What went wrong, for those who watch.

        Raises:
            ToolFailed: Always, with the message; catch it around the `async with` to go on.
        """
        raise ToolFailed(well_formed(message))

    def _check_open(self) -> None:
        """Raise `RuntimeError` if the call has ended, `SurfaceDestroyed` if its turn has."""
        if self._state != "open":
            raise RuntimeError(f"tool {self.name!r:.60}: the call {self.call_id} has ended already")
        self._host.check_running()

    def _start(self, args: Json) -> None:
        self._host.settle()
        self._host.check_running()
        self._input = _as_json(args)
        known = None if self._runtime_id is None else {"runtimeCallId": self._runtime_id}
        self._record("tool.started", {"tool": self.name}, correlation=known)
        self._record("tool.args", {"tool": self.name, "args": self._input})
        self._host.changed()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the call by what happens inside: as done, or as failed by what is raised."""
        error: str | None = None
        is_left_open = False
        try:
            yield
        except asyncio.CancelledError:
            error = "cancelled"
            # As after a crash: readers show it as interrupted, or as waiting with its question.
            is_left_open = self._host.is_left_open
            raise
        except GeneratorExit:
            # Nobody goes on with the generator that the call is in: no failure of the tool's own.
            error = ABANDONED
            raise
        except ArpError as failed:
            error = failed.message
            raise
        except BaseException as failed:
            error = type(failed).__name__
            raise
        finally:
            is_over = self._state == "over" or self._session.running != self._host.turn_id
            if not (is_over or is_left_open):
                self._end(error)

    async def _finish(self) -> None:
        """Store the result and commit what is pending; raise what was refused."""
        self._state = "ending"
        await self._settle()
        self._host.settle()

    def _end(self, error: str | None) -> None:
        self._state = "over"
        took = {"durationMs": round((time.monotonic() - self._began) * 1000)}
        ref = None if error is not None else self._output_ref
        if error is not None:
            failure = {"tool": self.name, "error": well_formed(error)}
            self._record("tool.failed", {**failure, **took})
        else:
            result = {"tool": self.name, **self._result, **took}
            self._record("tool.result", result, output_ref=ref)
        if ref is not None:  # as when the session is made again from its facts
            self._session.input_log.remember_files([ref])
        self._host.changed()

    def _record(self, type_name: str, payload: JsonObject, **ids: Json) -> None:
        self._host.flush_text()
        named = {**self._ids, **{name: value for name, value in ids.items() if value is not None}}
        self._session.in_turn(type_name, self._host.turn_id, payload, **named)


def started_tool(
    host: TurnHost,
    name: str,
    args: Json,
    runtime_id: str | None = None,
    subagent_id: str | None = None,
) -> ToolCall:
    """Show that a tool runs; who called it says how it ends."""
    call = ToolCall(host, name, runtime_id, subagent_id)
    call._start(args)
    return call


@asynccontextmanager
async def running_tool(host: TurnHost, name: str, args: Json) -> AsyncIterator[ToolCall]:
    """Show that a tool runs, and how it ended: a tool that is seen to begin is seen to end."""
    call = started_tool(host, name, args)
    with call._ending():
        with host.services.spans.of_tool(host.session, host.turn_id, call.call_id):
            yield call
        if call._state != "over":
            await call._finish()


def _as_json(args: Json) -> str:
    """Return arguments as JSON; a string that is JSON already stays as it is."""
    if isinstance(args, str) and _is_json(text := well_formed(args)):
        return text
    try:
        return encoded(args).decode()
    except (TypeError, ValueError):
        return encoded(_repr(args)).decode()


def _repr(value: object) -> str:
    """Return the `repr` of a value; of one that has none, its type."""
    try:
        return well_formed(repr(value))
    except Exception:  # noqa: BLE001 - it is the code of whoever wrote the type
        return f"<{type(value).__name__}>"


def _rule(text: str) -> str:
    """Return a rule as a plain text."""
    if not isinstance(text, str):
        raise TypeError(f"session_rule: expected a text, got {type(text).__name__}")
    formed = well_formed(text)
    if not formed.strip() or len(formed) > MAX_RULE:
        raise ValueError(f"session_rule: expected 1 to {MAX_RULE} characters that can be read")
    return formed


def _count(number: int, name: str) -> int:
    """Return a count as a plain `int`."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name}: expected a whole number, got {type(number).__name__}")
    if not 0 <= number <= MAX_COUNT:
        raise ValueError(f"{name}: expected a number from 0 to {MAX_COUNT}")
    return int(number)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True
