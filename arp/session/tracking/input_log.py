"""Inputs that took effect before: a bounded window over the newest ones.

Theory of operation. An id does not show its age, so a forgotten id looks like a new one. The window
must therefore reach back further than any client resends. A client resends what was not
acknowledged when its connection was lost, and the window holds the thousands of inputs that may
arrive in between. Ids enter in the order of their facts, so replaying the log gives the same
window.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, convert
from msgspec.structs import replace

from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import RendererInfo

REMEMBERED = 4096
"""Number of input ids, and of files, that a session remembers: more than all renderers of a session
send while one of them reconnects. They take half a megabyte at most."""


class GivenAnswer(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An answer that began a turn of its own, because the turn that asked had ended."""

    action_id: str
    """Id of the question."""
    name: str = ""
    """Name of the question's handler; empty if it has none."""
    value: Json = None
    """Value of the answer, in the form that every renderer may see."""
    declined: bool = False
    """Whether the user declined to answer."""


class InputLog(dict[str, str | None]):
    """The newest inputs that took effect: input id → turn, or `None` if the input began none."""

    __slots__ = ("answers", "files", "given", "renderers", "traceparents", "typed", "users")

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, None] = {}
        """SHA-256 of the session's newest files, uploaded or saved by its agent. An input may name
        no other files, and the session serves no others."""
        self.renderers: dict[str, RendererInfo] = {}
        """Description of the renderer that began each turn that is not over."""
        self.users: dict[str, object] = {}
        """User who began each turn that is not over, if the driver knows more than a name. They are
        lost in a restart."""
        self.traceparents: dict[str, str] = {}
        """External span that requested each turn that is not over, if there is one."""
        self.typed: dict[str, JsonObject] = {}
        """Data of the input that began each turn that is not over, with its secrets. The agent gets
        this data; the ledger has it without secrets. It is lost in a restart."""
        self.answers: dict[str, GivenAnswer] = {}
        """Answer that began each turn that is not over, if it answers a question of an ended turn.
        """
        self.given: dict[str, Json] = {}
        """Values of these answers, with their secrets. They are lost in a restart."""

    def remember(self, input_id: str, turn_id: str | None) -> None:
        """Record an input that took effect, and forget the oldest beyond `REMEMBERED`."""
        self[input_id] = turn_id
        while len(self) > REMEMBERED:
            del self[next(iter(self))]

    def remember_input(self, payload: JsonObject, turn_id: str | None) -> None:
        """Remember the id and the files of the input that the payload of a fact contains.

        If the payload has only an `inputId`, only this id is remembered.
        """
        submitted = payload.get("input")
        if submitted is not None and (named := files_named(submitted["data"])):
            self.remember_files(named)
        input_id = submitted.get("id") if submitted is not None else payload.get("inputId")
        if input_id is not None:
            self.remember(input_id, turn_id)

    def remember_turn(self, turn_id: str, payload: JsonObject) -> None:
        """Record who began a turn, from the payload of its `turn.submitted`."""
        if "renderer" in payload:
            self.renderers[turn_id] = convert(payload["renderer"], RendererInfo)
        if "answers" in payload:
            self.answers[turn_id] = convert(payload["answers"], GivenAnswer)

    def forget_turn(self, turn_id: str) -> None:
        """Forget the data of a turn that is over."""
        self.renderers.pop(turn_id, None)
        self.traceparents.pop(turn_id, None)
        self.typed.pop(turn_id, None)
        self.answers.pop(turn_id, None)
        self.given.pop(turn_id, None)
        self.users.pop(turn_id, None)

    def answer_of(self, turn_id: str) -> GivenAnswer | None:
        """Return the answer that began a turn, with its secrets if they are still in memory."""
        answer = self.answers.get(turn_id)
        if answer is None or turn_id not in self.given:
            return answer
        return replace(answer, value=self.given[turn_id])

    def remember_files(self, sha256: Iterable[str]) -> None:
        """Record files; a file that was known before becomes the newest one."""
        for name in sha256:
            self.files.pop(name, None)
            self.files[name] = None
        while len(self.files) > REMEMBERED:
            del self.files[next(iter(self.files))]


def files_named(data: JsonObject) -> list[str]:
    """Return the SHA-256 of the files that an input names, in `files` or in the fields of a form.

    The data need not be valid. A hash that is not a string is returned as an empty string, which is
    the hash of no file.
    """
    files, fields = data.get("files"), data.get("fields")
    if not files and not fields:
        return []
    named: list[Json] = [*files] if isinstance(files, list) else []
    if isinstance(fields, dict):
        named += fields.values()
    hashes = [ref["sha256"] for ref in named if isinstance(ref, dict) and "sha256" in ref]
    return [sha256 if isinstance(sha256, str) else "" for sha256 in hashes]
