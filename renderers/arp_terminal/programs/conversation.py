"""A conversation: the current prompt, and the effect of each line that the user types.

Nothing here draws or reads a terminal, so a screen with a cursor (`chat`) and a pipe (`line_mode`)
share it.

Theory of operation. The client's screen may be ahead of the events that were received. What a typed
line means depends on the current question, on whether an answer is awaited, and on whether anything
runs. All three are read from the screen at once, in `_refresh`, after each event, and stay the same
until the next event. They are never combined from two moments: a line could then answer a question
that the user has not seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from arp.client.events import Connected, Disconnected, Event, Skipped
from arp.protocol.connection.screen import Screen, ToolRun, TurnScreen
from arp.protocol.errors import ArpError
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import AgentHello, Delta, ErrorMessage
from arp.protocol.messages import Command as Offered
from arp_terminal.asking.commands import (
    Command,
    completed,
    file_arguments,
    help_text,
    is_misspelt,
    parse_command,
)
from arp_terminal.asking.dialogue import (
    Dialogue,
    FormDialogue,
    PermissionDialogue,
    dialogue_for,
)
from arp_terminal.asking.in_flight import InFlight
from arp_terminal.asking.open_questions import Question, find, open_questions, permission_of
from arp_terminal.drawing.notes import Note
from arp_terminal.drawing.questions import STATES
from arp_terminal.log.transcript import Transcript
from arp_terminal.prompt import (
    ActionReply,
    FormReply,
    Problem,
    Prompt,
    Reply,
    SelectionReply,
    TextReply,
)

FREE = Prompt("")
"""Prompt for any text."""

QUESTION_COMMANDS = ("/back", "/decline", "/skip")
"""Commands that concern the current question."""

MAX_COMPLETIONS = 20
"""Maximum number of completions that are listed at the prompt."""

MAX_DIGITS = 7
"""Digits of a number after `/tool`; a longer one names no tool call."""

CONFIRM_LEAVE_S = 2.0
"""Maximum time between two Ctrl-C that quit."""


class Client(Protocol):
    """The part of `ArpClient` that a chat uses."""

    @property
    def screen(self) -> Screen: ...  # noqa: D102
    @property
    def session_id(self) -> str | None: ...  # noqa: D102
    @property
    def agent(self) -> AgentHello | None: ...  # noqa: D102
    @property
    def commands(self) -> Sequence[Offered]: ...  # noqa: D102
    @property
    def connected(self) -> bool: ...  # noqa: D102
    def events(self) -> AsyncIterator[Event]: ...  # noqa: D102
    async def send_text(self, text: str, *, source: str | None = None) -> str: ...  # noqa: D102
    async def send_action(  # noqa: D102
        self, action: str, payload: Json = None, *, source: str | None = None
    ) -> str: ...
    async def send_form(  # noqa: D102
        self, fields: JsonObject, *, source: str | None = None, action: str | None = None
    ) -> str: ...
    async def send_selection(  # noqa: D102
        self, selected: Sequence[Json], *, source: str | None = None
    ) -> str: ...
    async def send_files(self, sources: Sequence[str], text: str | None = None) -> str: ...  # noqa: D102
    async def cancel(self) -> str: ...  # noqa: D102


class ExpectedInput(Struct, frozen=True):
    """What the screen says about input, as of the last event."""

    is_awaited: bool = False
    """Whether the agent waits for an answer."""
    is_idle: bool = True
    """Whether no turn runs or is queued."""


class CurrentQuestion(Struct, frozen=True):
    """The current question with its dialogue."""

    question: Question
    dialogue: Dialogue

    @property
    def id(self) -> str:
        """Id of the component that asks."""
        return self.question.component.id


def resumed(begun: Dialogue | None, question: Question, screen: Screen) -> Dialogue:
    """Return the dialogue of a question; a form that was begun keeps its values."""
    if isinstance(begun, FormDialogue):
        return begun
    found = permission_of(screen, question.component.id)
    if found is not None:
        return PermissionDialogue(question.component.props, *found)
    dialogue = dialogue_for(question.component, offered=question.offered)
    assert dialogue is not None
    return dialogue


class Conversation:
    """One session: receives the events of a client, and sends what the user types."""

    def __init__(self, client: Client, *, hold: bool) -> None:
        self.client = client
        self.transcript = Transcript(client.screen, hold=hold, numbered=True)
        self._hold = hold
        self._shown_input = ""
        """Id of the last question whose input was printed as a note."""
        self.notes: list[Note] = []
        """Notes to be shown; the program that shows the conversation removes them."""
        self.ended: Literal["quit", "new", "interrupted", "lost"] | None = None
        """Why it ended; `None` while it runs."""
        self._asking: CurrentQuestion | None = None
        self._passed: set[str] = set()
        """Ids of questions that are not asked: skipped ones, and ones with a sent answer."""
        self._in_flight: InFlight[CurrentQuestion] = InFlight()
        self._is_lost = False
        self._expected = ExpectedInput()
        self._open_questions = 0
        """Number of questions that can be asked now."""
        self._interrupted_at = float("-inf")
        self._refresh()

    @property
    def running(self) -> TurnScreen | None:
        """The turn that runs or waits; `None` if there is none."""
        for turn in reversed(self.client.screen.turns.values()):
            if turn.status in ("running", "waiting") and not turn.final:
                return turn
        return None

    @property
    def is_idle(self) -> bool:
        """Whether no turn runs and the server has answered all inputs."""
        return self._expected.is_idle and self._in_flight.is_empty

    @property
    def is_awaited(self) -> bool:
        """Whether the agent waits for an answer, also to a question that was shown as text."""
        return self._expected.is_awaited and self._in_flight.is_empty

    @property
    def prompt(self) -> Prompt:
        """The prompt for the next line."""
        if self._asking is None:
            return FREE
        prompt = replace(self._asking.dialogue.prompt, open_questions=self._open_questions)
        if not self._may_decline(self._asking):
            return prompt
        note = f"{prompt.note}, /decline" if prompt.note else "/decline"
        return replace(prompt, note=note)

    @property
    def question_id(self) -> str | None:
        """Id of the current question; `None` if there is none."""
        return self._asking.id if self._asking is not None else None

    @property
    def asking(self) -> CurrentQuestion | None:
        """The current question; a new object whenever another question or dialogue begins."""
        return self._asking

    def is_stale(self, typed: str, shown: object | None) -> bool:
        """Return whether a line was meant for a question that is not the current one any more.

        Args:
            typed: The line. Commands that do not concern the question are never stale.
            shown: `asking` as the user saw it when the line was typed.
        """
        command = parse_command(typed)
        if command is not None and command.name not in QUESTION_COMMANDS:
            return False
        return shown is not self._asking

    # -- events ----------------------------------------------------------------------------------

    def receive(self, event: Event) -> None:
        """Handle an event of the client, after it was applied to the screen."""
        screen = self.client.screen
        self._in_flight.receive(event)
        match event:
            case Connected():
                self._connected()
            case Disconnected():
                self._disconnected(event)
            case Skipped():
                self.transcript.adopt(screen)
            case _ if screen is self.transcript.screen:
                self.transcript.receive(event)
        if screen is not self.transcript.screen:
            self.transcript.adopt(screen)
        if isinstance(event, ErrorMessage):
            self._error(event)
        if not isinstance(event, Delta):
            self._refresh()

    def _connected(self) -> None:
        if self._is_lost:
            self.notes.append(Note("good", "Connected again.", lasting=True))
        self._is_lost = False

    def _disconnected(self, event: Disconnected) -> None:
        if event.retry_in_s is None:
            self.ended = self.ended or "lost"
            self.notes.append(Note("bad", f"Connection lost: {event.reason}", lasting=True))
        elif not self._is_lost:
            lost = f"Connection lost: {event.reason.rstrip('.')}. Reconnecting…"
            self.notes.append(Note("warning", lost, lasting=True))
        self._is_lost = True

    def _error(self, event: ErrorMessage) -> None:
        asking = self._in_flight.refused(event)
        payload = event.payload
        if asking is not None:
            self._passed.discard(asking.id)
            self._asking = asking
            problem = asking.dialogue.refused(payload.error, payload.detail)
            self.notes.append(Note("bad", problem.message))
        elif event.turn_id is None or payload.id is not None:
            self.notes.append(Note("bad", payload.error, lasting=True))

    def _refresh(self) -> None:
        """Read from the screen what may be typed now."""
        screen = self.client.screen
        in_flight = self._in_flight
        self._expected = ExpectedInput(in_flight.is_awaited(screen), in_flight.is_idle(screen))
        self._update_question()

    def _update_question(self) -> None:
        """Ask the question that is due; add a note if the last one was answered elsewhere."""
        waiting = open_questions(self.client.screen, self._passed)
        self._open_questions = len(waiting)
        asking, due = self._asking, waiting[0] if waiting else None
        is_same = asking is not None and due is not None and due.component.id == asking.id
        if asking is not None and not is_same:
            self._note_closed(asking)
        if due is None:
            self._asking = None
        elif asking is None or not is_same or self._needs_other_dialogue(asking, due):
            begun = asking.dialogue if asking is not None and is_same else None
            self._asking = CurrentQuestion(due, resumed(begun, due, self.client.screen))
            if not self._hold:
                self._print_input(due.component.id)

    def _needs_other_dialogue(self, asking: CurrentQuestion, due: Question) -> bool:
        """Return whether the current question needs another dialogue than before."""
        if due.offered != asking.question.offered:
            return True
        # The permission arrives after the component. Until then the question has the dialogue of a
        # plain confirm. Its answer has no digest, so it would not be bound to the input.
        is_known = isinstance(asking.dialogue, PermissionDialogue)
        return not is_known and permission_of(self.client.screen, due.component.id) is not None

    def show_input(self) -> None:
        """Print the whole input to be approved, once, because not all of it is in sight."""
        if self._asking is not None and self._asking.id != self._shown_input:
            self._print_input(self._asking.id)

    def _print_input(self, question_id: str) -> None:
        """Print the whole input that a question asks permission for, if it asks for one."""
        found = permission_of(self.client.screen, question_id)
        if found is None or not found[1]:
            return
        permission, shown = found
        self._shown_input = question_id
        call = ToolRun(permission.call_id, permission.tool, shown)
        self.notes.append(Note("info", "To be allowed:", lasting=True, tool=call))

    def _note_closed(self, asking: CurrentQuestion) -> None:
        component = find(self.client.screen, asking.id)
        state = component.props.get("state") if component is not None else None
        if state == "answered":
            self.notes.append(Note("info", "Answered on another screen."))
        elif state in ("declined", "expired"):
            self.notes.append(Note("info", f"The question is over: {STATES[state]}."))

    # -- input of the user -----------------------------------------------------------------------

    async def enter(self, typed: str) -> Command | None:
        """Handle a line: an answer to the current question, a command, or text for the agent.

        Returns:
            A command that only a terminal can run (`/copy`); `None` if the line is handled.
        """
        command = parse_command(typed)
        asking = self._asking
        try:
            if command is not None and not (command.name == "/back" and asking is not None):
                return await self._run_command(command)
            if asking is not None:
                await self._answer(asking, typed)
            elif is_misspelt(typed, self._offered()):
                self.notes.append(
                    Note(
                        "bad",
                        f"No command {typed.strip()}. /help lists them all; //… sends it as text.",
                    )
                )
            elif typed.strip():
                await self._send_text(typed)
        except (ArpError, OSError, ValueError) as error:
            self.notes.append(Note("bad", str(error)))
        return None

    async def interrupt(self, now: float) -> None:
        """Handle Ctrl-C: stop the running turn; quit if it is the second one within two seconds.

        Args:
            now: Seconds of a monotonic clock.
        """
        if now - self._interrupted_at < CONFIRM_LEAVE_S:
            self.ended = "interrupted"
            return
        self._interrupted_at = now
        if self.running is None:
            self.notes.append(Note("info", "Press Ctrl-C again or Ctrl-D to leave.", brief=True))
            return
        self.notes.append(Note("info", "Stopping. Press Ctrl-C again to leave.", brief=True))
        await self.enter("/cancel")

    def complete(self, typed: str) -> str:
        """Return the text that Tab adds to a line; a note lists several candidates.

        Args:
            typed: Text before the cursor.
        """
        line, choices = completed(typed, self._offered())
        if choices:
            more = "  …" if len(choices) > MAX_COMPLETIONS else ""
            self.notes.append(Note("info", "  ".join(choices[:MAX_COMPLETIONS]) + more))
        return line[len(typed) :] if line.startswith(typed) else ""

    def _offered(self) -> Sequence[Offered]:
        """Return the commands of the app and the session; empty before the `hello`."""
        return self.client.commands

    async def _send_text(self, typed: str) -> None:
        text = typed.removeprefix("/") if typed.startswith("//") else typed
        self._in_flight.add(await self.client.send_text(text))
        if not self.client.connected:
            self.notes.append(
                Note("info", "No connection. This will be sent as soon as there is one.")
            )

    async def _answer(self, asking: CurrentQuestion, typed: str) -> None:
        result = asking.dialogue.enter(typed)
        if isinstance(result, Problem):
            self.notes.append(Note("bad", result.message))
        elif isinstance(result, TextReply) and not result.answers:
            await self._send_text(typed)
        elif result is not None:
            self._in_flight.add(await self._send(asking.id, result), asking)
            self._passed.add(asking.id)
            self._asking = None
            self._update_question()

    async def _send(self, source: str, reply: Reply) -> str:
        match reply:
            case ActionReply():
                return await self.client.send_action(reply.action, reply.payload, source=source)
            case SelectionReply():
                return await self.client.send_selection(reply.selected, source=source)
            case FormReply():
                return await self.client.send_form(reply.fields, source=source, action=reply.action)
            case TextReply():
                return await self.client.send_text(reply.text, source=source)

    async def _run_command(self, command: Command) -> Command | None:
        match command.name:
            case "/help":
                self.notes.append(Note("info", help_text(self._offered())))
            case "/quit":
                self.ended = "quit"
            case "/new":
                self.ended = "new"
            case "/cancel":
                await self.client.cancel()
            case "/decline":
                await self._decline()
            case "/skip" | "/answer":
                self._skip(command.name == "/skip")
            case "/file":
                paths, text = file_arguments(command.rest)
                self._in_flight.add(await self.client.send_files(paths, text))
            case "/tool":
                self._print_tool(command.rest)
            case "/back":
                self.notes.append(Note("bad", "/back goes back in a form. No form is open now."))
            case _:
                return command
        return None

    def _print_tool(self, typed: str) -> None:
        """Print a tool call with all of its arguments and its result."""
        digits = typed.removeprefix("#")
        number = int(digits) if digits.isdecimal() and len(digits) <= MAX_DIGITS else 0
        call = self.transcript.tool(number)
        if call is not None:
            note = Note("info", "Tool call:", lasting=True, tool=call, tool_number=number)
            self.notes.append(note)
            return
        last = self.transcript.tool_count
        known = f"the numbers are 1 to {last}" if last else "no tool was called yet"
        self.notes.append(Note("bad", f"/tool NUMBER shows a tool call; {known}."))

    async def _decline(self) -> None:
        asking = self._asking
        if asking is None or not self._may_decline(asking):
            self.notes.append(Note("bad", "There is no question that you can decline."))
            return
        self._in_flight.add(await self._send(asking.id, ActionReply("decline")), asking)
        self._passed.add(asking.id)
        self._asking = None
        self._update_question()

    @staticmethod
    def _may_decline(asking: CurrentQuestion) -> bool:
        return asking.question.component.props.get("can_decline") is True

    def _skip(self, skip: bool) -> None:
        if skip and self._asking is not None:
            self._passed.add(self._asking.id)
            self._asking = None
        elif not skip:
            self._passed = {asking.id for asking in self._in_flight.subjects()}
        self._update_question()
