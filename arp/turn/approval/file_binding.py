"""`FileBinding`: binds an approval to the input and to the files that the person saw."""

from __future__ import annotations

from collections.abc import Callable

from arp.protocol.json_value import Json, JsonObject
from arp.turn.approval.approval import Approval, RecheckResult
from arp.turn.approval.named_files import SeenFiles, difference, mark_of, recorded, seen_files


class FileBinding:
    """Binds the answer to a permission request to the input and the files that were shown.

    Args:
        tool_input: Input to be approved.
        cwd: Directory of the command; empty if it is on another machine, so that no file is looked
            up.
        hides: Returns whether a text has a secret.
        is_command: Whether the texts of the input are commands; see `words_of`.
    """

    def __init__(
        self, tool_input: Json, cwd: str, hides: Callable[[str], bool], *, is_command: bool
    ) -> None:
        self.refusal = ""
        """Reason why an answer did not count; empty if it counted or there was none."""
        self._input, self._cwd, self._hides = tool_input, cwd, hides
        self._is_command = is_command
        self._shown = SeenFiles({})

    async def look(self) -> list[JsonObject]:
        """Look up the files that the input names; return them as a fact records them.

        Called before the input is shown to the person.
        """
        self._shown = await self._look_up(self._input)
        return recorded(self._shown)

    @property
    def mark(self) -> str:
        """Mark of the files that were looked up; see `mark_of`."""
        return mark_of(self._shown)

    async def recheck(self, approval: Approval) -> RecheckResult:
        """Return whether an answer still fits the current files.

        An edited input has files of its own.

        Cancel: Safe; nothing has changed.
        """
        # The agent may have changed its input after it was shown, and would run the changed one.
        if not approval.edited and not approval.covers(self._input):
            return self._refused("the input changed after it was shown", SeenFiles({}))
        seen = await self._look_up(approval.args)
        changed = difference(self._shown, seen)
        if changed:
            return self._refused(changed, seen)
        return RecheckResult(files=recorded(seen) if approval.edited else None)

    def _refused(self, why: str, seen: SeenFiles) -> RecheckResult:
        self.refusal = f"{why}, so it was not run; ask again"
        return RecheckResult(self.refusal, recorded(seen))

    async def _look_up(self, tool_input: Json) -> SeenFiles:
        if not self._cwd:
            return SeenFiles({})
        return await seen_files(tool_input, self._cwd, self._hides, is_command=self._is_command)
