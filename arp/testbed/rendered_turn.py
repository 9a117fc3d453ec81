"""`RenderedTurn`: a turn on a renderer, and the answers of its user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arp.client.watch import is_over
from arp.protocol.components import Component
from arp.protocol.connection.screen import ToolRun, TurnScreen, is_text_part
from arp.protocol.messages import Permission
from arp.testbed.rendered_question import RenderedQuestion
from arp.testbed.snapshot import parts_of, turn_as_text
from arp.testbed.watched_client import WatchedClient


class RenderedTurn:
    """A turn, with its current output on a renderer.

    Args:
        renderer: Renderer that shows the turn.
        turn_id: Id of the turn.
    """

    def __init__(self, renderer: WatchedClient, turn_id: str) -> None:
        self.id = turn_id
        self._renderer = renderer

    # -- output ----------------------------------------------------------------------------------

    @property
    def screen(self) -> TurnScreen:
        """The state of the turn in the protocol."""
        return self._renderer.screen.turns.get(self.id, TurnScreen(self.id))

    @property
    def status(self) -> str:
        """`queued`, `running`, `waiting` (for an answer), `completed`, `failed` or `cancelled`."""
        return str(self.screen.status or "")

    @property
    def text(self) -> str:
        """The text of the agent, without components."""
        return self._renderer.screen.text(self.id)

    @property
    def thinking(self) -> str:
        """The reasoning of the agent."""
        return self.screen.thinking

    @property
    def tools(self) -> list[ToolRun]:
        """The tools that ran: `tool`, `args` (JSON), `ok`, `result`, `error`."""
        return self.screen.tools

    @property
    def tool_names(self) -> list[str]:
        """The names of the tools that ran, in order."""
        return [run.tool for run in self.tools]

    @property
    def error(self) -> str:
        """Why the turn failed, with the agent's traceback; empty if it did not."""
        return "\n".join(one.debug or one.error for one in self.screen.errors)

    @property
    def files(self) -> list[Any]:
        """The files that came with the user's input."""
        return [one for echo in self.screen.inputs for one in echo.data.get("files", ())]

    def components(self, type_name: str | None = None) -> list[Component]:
        """Return the components of the turn in order, including nested ones.

        Args:
            type_name: Type of the components, such as `chart`; `None` means all components except
                the text of the agent.
        """
        return [one for one, _ in self._components() if type_name is None or one.type == type_name]

    def component(self, type_name: str) -> Component:
        """Return the only component of a type.

        Raises:
            AssertionError: There is no such component, or more than one.
        """
        found = self.components(type_name)
        if len(found) != 1:
            raise AssertionError(
                f"expected one {type_name}, there are {len(found)}:\n{self.snapshot()}"
            )
        return found[0]

    def snapshot(self) -> str:
        """Return the output of the turn as text, to compare it with an expected text."""
        return turn_as_text(self._renderer.screen, self.id)

    def _components(self) -> Iterator[tuple[Component, str]]:
        """Yield each component of this turn with the name of its surface."""
        screen = self._renderer.screen
        for surface in screen.surfaces:
            for root in screen.output(self.id, surface):
                if not (surface == "main" and is_text_part(root, self.id)):
                    for one in parts_of(root):
                        yield one, surface

    # -- questions -------------------------------------------------------------------------------

    @property
    def questions(self) -> list[RenderedQuestion]:
        """The open questions of the turn."""
        permissions = self.screen.permissions
        return [
            RenderedQuestion(one, surface, permissions.get(one.id))
            for one, surface in self._components()
            if one.props.get("state") == "open"
        ]

    @property
    def question(self) -> RenderedQuestion | None:
        """The newest open question; `None` if there is none.

        A question that the renderer shows as text has the type `text`.
        """
        questions = self.questions
        if questions:
            return questions[-1]
        output = self._renderer.screen.output(self.id)
        if self.status != "waiting" or not output:
            return None
        return RenderedQuestion(output[-1], "main")

    @property
    def permission(self) -> Permission | None:
        """The open permission request of a tool (`tool`, `input`, `scopes`), or `None`."""
        question = self.question
        return None if question is None else question.permission

    async def answer(self, value: Any, *, to: str | None = None) -> RenderedTurn:
        """Answer a question, and wait as `VirtualRenderer.say` does.

        Args:
            value: `True` or `False`, a text, an option or a list of options, or the fields of a
                form.
            to: Id of a question; `None` means the newest one.

        Returns:
            The turn that continues. It is a new turn if this one ended before the answer.

        Raises:
            ArpError: The server refuses the answer.
            LookupError: There is no open question.
            TypeError: The value is not an answer to this kind of question.
        """
        question = self._open_question(to)
        return await self._after(await question.send(self._renderer.client, value))

    async def decline(self, *, to: str | None = None) -> RenderedTurn:
        """Decline to answer; see `answer`."""
        return await self._after(await self._open_question(to).decline(self._renderer.client))

    async def allow(self, *, scope: str = "once", **more: Any) -> RenderedTurn:
        """Allow the permission request of a tool; see `answer`.

        Args:
            scope: `once`, or `session` to allow later calls of the session too.
            **more: Other arguments of `ArpClient.send_permission`, such as `updated_input`.
        """
        return await self._permit(True, scope=scope, **more)

    async def deny(self, reason: str = "") -> RenderedTurn:
        """Deny the permission request of a tool; see `answer`."""
        return await self._permit(False, reason=reason)

    async def _permit(self, allowed: bool, **more: Any) -> RenderedTurn:
        permission = self.permission
        if permission is None:
            raise LookupError(f"no tool asks for permission; the turn shows:\n{self.snapshot()}")
        client = self._renderer.client
        return await self._after(await client.send_permission(permission, allowed, **more))

    def _open_question(self, question_id: str | None) -> RenderedQuestion:
        found = [one for one in self.questions if question_id in (None, one.id)]
        question = found[-1] if found else self.question
        if question is None:
            raise LookupError(f"this turn has no open question; it shows:\n{self.snapshot()}")
        return question

    async def _after(self, input_id: str) -> RenderedTurn:
        client = self._renderer.client
        before = self.question
        await client.acknowledged(input_id)
        turn = RenderedTurn(self._renderer, await client.turn_of(input_id))
        return await turn.settled(after=before if turn.id == self.id else None)

    async def settled(self, *, after: RenderedQuestion | None = None) -> RenderedTurn:
        """Wait until the turn has ended or waits for an answer; return the turn.

        Args:
            after: Question that was answered. The screen may still show it as open, so only another
                question counts.
        """

        def look() -> RenderedTurn | None:
            known = self._renderer.screen.turns.get(self.id)
            if known is None:
                return None
            is_done = is_over(known)
            question = self.question if known.status == "waiting" else None
            is_new = question is not None and (after is None or question.id != after.id)
            return self if is_done or is_new else None

        return await self._renderer.until(look, f"end of turn {self.id}, and no question of it")

    async def over(self) -> RenderedTurn:
        """Wait until the turn has ended, even if it asks questions; return the turn."""

        def look() -> RenderedTurn | None:
            return self if is_over(self.screen) else None

        return await self._renderer.until(look, f"end of turn {self.id}")

    def __repr__(self) -> str:
        return f"<turn {self.id}\n{self.snapshot()}>"
