"""`ContractCase`, one promise of the contract, and `CaseRun`, which checks it on a runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import msgspec

from arp.conformance.cases import CaseFailed, CaseList, CaseUnreachable, Check, expect
from arp.conformance.runtime.runtime_under_test import RuntimeUnderTest
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriError, Unimplemented
from arp.runtime.contract.services import EventSubscription, RuntimeService

WITHIN_S = 30.0
"""Time in seconds that a case waits for an event."""

ALLOW = ari.PermissionResponse("allow")
DENY = ari.PermissionResponse("deny")


class ContractCase(NamedTuple):
    """One promise of the contract."""

    name: str
    title: str
    """The promise in one sentence."""
    level: Literal[1, 2, 3]
    """Level of the interface. A runtime must implement everything at level 1."""
    needs: frozenset[ari.EventType]
    """Event types that the case checks. If one of them is synthetic, so is the outcome."""
    check: Check[CaseRun]


class Cases(CaseList[ContractCase, "CaseRun"]):
    """The cases of one subject, in source order."""

    def add(
        self, level: Literal[1, 2, 3], *needs: ari.EventType
    ) -> Callable[[Check[CaseRun]], Check[CaseRun]]:
        """Return a decorator that adds a case; its title is the function's docstring.

        Args:
            level: Level of the interface.
            *needs: Event types that the case checks.
        """

        def make(name: str, title: str, check: Check[CaseRun]) -> ContractCase:
            return ContractCase(name, title, level, frozenset(needs), check)

        return self.adder(make)


class CaseRun:
    """One run of a case: the runtime objects that it creates, and the events that it reads."""

    def __init__(self, under_test: RuntimeUnderTest) -> None:
        self.under_test = under_test
        self.prompts = under_test.prompts
        self.seen: list[ari.Event] = []
        self._runtimes: list[RuntimeService] = []

    @property
    def runtime(self) -> RuntimeService:
        """The newest runtime object; the first one is created on first use."""
        return self._runtimes[-1] if self._runtimes else self.use(self.under_test.make())

    def use(self, runtime: RuntimeService) -> RuntimeService:
        """Use a runtime object from now on; it is closed after the case."""
        self._runtimes.append(runtime)
        return runtime

    async def new_process(self) -> RuntimeService:
        """Close the runtime object, and return a new one over the same storage."""
        await self.runtime.close(ari.CloseRequest())
        return self.use(self.under_test.make())

    async def session(self, **fields: Any) -> CallerSession:
        """Create a session and subscribe to it from its first event."""
        request = ari.CreateSessionRequest(**{**self.under_test.fields, **fields})
        created = (await self.runtime.create_session(request)).session
        return await self._subscribed(created.session_id, 0)

    async def resumed(self, session_id: str, **fields: Any) -> CallerSession:
        """Resume a session and subscribe to its new events."""
        await self.runtime.resume_session(self.resume_request(session_id, **fields))
        return await self._subscribed(session_id, None)

    def resume_request(self, session_id: str, **fields: Any) -> ari.ResumeSessionRequest:
        """Return the request that resumes a session, with the fields of the runtime under test."""
        fields = {"session_id": session_id, **self.under_test.fields, **fields}
        return ari.ResumeSessionRequest(**fields)

    async def _subscribed(self, session_id: str, after: int | None) -> CallerSession:
        events = await self.runtime.session_events(ari.SessionEventsRequest(session_id, after))
        return CallerSession(self, self.runtime, session_id, events)

    def text_of(self, prompt: str, **values: str) -> str:
        """Return the text of a prompt.

        Raises:
            CaseUnreachable: The prompt is empty, so the agent cannot be made to do this.
        """
        template: str = getattr(self.prompts, prompt)
        if not template:
            raise CaseUnreachable(f"nothing makes the agent do what {prompt!r} is for")
        return template.format(**values)

    def run_text(self, command: str) -> str:
        """Return the prompt that makes the agent ask for permission to run a command."""
        return self.text_of("run", command=command)

    def service(self, wanted: type) -> Any:
        """Return the runtime, typed as the optional service `wanted`.

        Raises:
            Unimplemented: The runtime does not have this service.
        """
        if not isinstance(self.runtime, wanted):
            raise Unimplemented(f"it has no {wanted.__name__}")
        return self.runtime

    async def aclose(self) -> None:
        """Close every runtime object."""
        for runtime in self._runtimes:
            await runtime.close(ari.CloseRequest())


class CallerSession:
    """One session, as its caller uses it: send messages, read events, answer requests."""

    def __init__(
        self, run: CaseRun, runtime: RuntimeService, session_id: str, events: EventSubscription
    ) -> None:
        self.run, self.runtime, self.id, self.events = run, runtime, session_id, events

    async def value(self) -> ari.RuntimeSession:
        """Return the session as it is now."""
        return (await self.runtime.get_session(ari.GetSessionRequest(self.id))).session

    async def send(self, text: str, *parts: ari.ContentPart, **fields: Any) -> str:
        """Send a message and return the id of the turn that it starts."""
        message = ari.RuntimeMessage(content=text, parts=parts)
        request = ari.SendMessageRequest(self.id, message, **fields)
        return (await self.runtime.send_message(request)).turn_id

    async def until(self, wanted: Callable[[ari.Event], object]) -> list[ari.Event]:
        """Return the next events, up to the first event that `wanted` accepts."""
        found = await read_until(self.events, wanted)
        self.run.seen += found
        return found

    async def until_done(self) -> list[ari.Event]:
        """Return the next events, up to the terminal one."""
        return await self.until(lambda event: event.done)

    async def next_request(self) -> ari.PermissionRequest:
        """Return the next permission request.

        Raises:
            CaseFailed: The turn ended without one.
        """
        request = (await self.until(lambda event: event.permission or event.done))[-1].permission
        if request is None:
            raise CaseFailed("the turn ended without a permission request")
        return request

    async def turn(self, text: str, *parts: ari.ContentPart) -> list[ari.Event]:
        """Send a message and return all events of its turn; every permission is allowed."""
        turn_id = await self.send(text, *parts)
        seen: list[ari.Event] = []
        while not (seen and seen[-1].done):
            seen += await self.until(lambda event: event.done or event.permission)
            if seen[-1].permission is not None:
                await self.answer(seen[-1].permission, ALLOW)
        return [event for event in seen if event.turn_id == turn_id]

    async def echo(self, text: str) -> None:
        """Make the agent repeat a text in a turn, and check its output."""
        output = output_text(await self.turn(self.run.text_of("echo", text=text)))
        expect(text in output, f"expected output with {text!r}, got {output!r}")

    async def answer(
        self, request: ari.PermissionRequest, response: ari.PermissionResponse
    ) -> None:
        """Answer a permission request."""
        await self.runtime.respond_permission(
            ari.RespondPermissionRequest(self.id, request.request_id, response)
        )

    async def cancel(self, turn_id: str = "") -> None:
        """Cancel the active turn."""
        await self.runtime.cancel_turn(ari.CancelTurnRequest(self.id, turn_id))

    async def close(self) -> None:
        """Close the session."""
        await self.runtime.close_session(ari.CloseSessionRequest(self.id))

    async def delete(self) -> None:
        """Delete the session."""
        await self.runtime.delete_session(ari.DeleteSessionRequest(self.id))


async def read_until(
    events: EventSubscription, wanted: Callable[[ari.Event], object]
) -> list[ari.Event]:
    """Return the next events of a subscription, up to the first event that `wanted` accepts.

    Raises:
        CaseFailed: No such event arrived within `WITHIN_S`, or the subscription ended.
    """
    seen: list[ari.Event] = []
    reason = "the events ended before"
    try:
        async with asyncio.timeout(WITHIN_S):
            async for event in events:
                seen.append(event)
                if wanted(event):
                    return seen
    except TimeoutError:
        reason = f"Timeout: it did not come within {WITHIN_S:g} s"
    raise CaseFailed(f"{reason}; the last events: {[str(event)[:200] for event in seen[-5:]]}")


@contextmanager
def refused(*errors: type[AriError], names: str = "") -> Iterator[None]:
    """Expect that the block raises one of these errors, with the text `names` in its message."""
    expected = " or ".join(error.__name__ for error in errors)
    try:
        yield
    except errors as failed:
        expect(names in failed.message, f"the message should name {names!r}: {failed.message!r}")
    except Unimplemented:  # `run_case` decides whether the service may be missing
        raise
    except AriError as failed:
        raise CaseFailed(f"expected {expected}, got {failed.code}: {failed.message}") from failed
    else:
        raise CaseFailed(f"expected {expected}, but the call succeeded")


def output_text(events: Sequence[ari.Event]) -> str:
    """Return the text of the agent's output."""
    return joined(events, ari.EventType.TEXT)


def joined(events: Sequence[ari.Event], event_type: ari.EventType) -> str:
    """Return the content of all events of a type."""
    return "".join(event.content for event in events if event.type is event_type)


def of_type(events: Sequence[ari.Event], event_type: ari.EventType) -> list[ari.Event]:
    """Return the events of a type."""
    return [event for event in events if event.type is event_type]


def lifecycle_events(events: Sequence[ari.Event], lifecycle: ari.Lifecycle) -> list[ari.Event]:
    """Return the events with this lifecycle value."""
    return [event for event in events if event.lifecycle is lifecycle]


def is_lifecycle(lifecycle: ari.Lifecycle) -> Callable[[ari.Event], bool]:
    """Return a predicate: whether an event has this lifecycle value."""
    return lambda event: event.lifecycle is lifecycle


def is_text(event: ari.Event) -> bool:
    """Return whether an event is output text of the agent."""
    return event.type is ari.EventType.TEXT


def changed_command(request: ari.PermissionRequest, old: str, new: str) -> dict[str, Any]:
    """Return the tool input of a request, with the command `old` replaced by `new`.

    Raises:
        CaseFailed: The input does not contain the command.
    """
    text = msgspec.json.encode(request.tool_input_raw).decode()
    expect(old in text, f"tool_input_raw should have {old!r}: {text}")
    changed: dict[str, Any] = msgspec.json.decode(text.replace(old, new))
    return changed
