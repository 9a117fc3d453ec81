"""Which inputs took effect before: a window over the newest, so that the memory has a bound.

Theory of operation. An id says nothing about its age, so an old one that was forgotten cannot be
told from a new one. What is remembered must therefore reach further back than anyone sends again:
a client sends again what was not acknowledged when its connection was lost, and the window holds
thousands that came in between. Ids enter in the order of their facts, so that replaying the log
gives the same window.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import RendererInfo

REMEMBERED = 4096
"""Ids of inputs, and files, that a session remembers: about half a megabyte at most, and more than
all renderers of a session send while one of them looks for a lost connection."""


class GivenAnswer(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The answer that began a turn, since the turn that had asked was over."""

    action_id: str
    """Of the question."""
    name: str = ""
    """Of the question; empty: it has none."""
    value: Json = None
    """As every renderer may see it."""
    declined: bool = False
    """There is no answer: somebody does not want to give one."""


class InputLog(dict[str, str | None]):
    """What came in before: the turn of each of the newest inputs that had an id."""

    __slots__ = ("answers", "files", "given", "renderers", "traceparents", "typed")

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, None] = {}
        """SHA-256 of the session's newest files, uploaded or saved by its agent: an input may name
        no others, and nobody gets others from it."""
        self.renderers: dict[str, RendererInfo] = {}
        """Of turns that are not over: what the renderer that began each said of itself."""
        self.traceparents: dict[str, str] = {}
        """Of turns that are not over: the span outside that asked for each, where there is one."""
        self.typed: dict[str, JsonObject] = {}
        """Of turns that are not over: the data of the input that began each. The ledger has the
        same, or less of it: no secrets. The agent gets what was typed; a restart forgets it."""
        self.answers: dict[str, GivenAnswer] = {}
        """Of turns that are not over: the answer that began each, where it was one to a question of
        a turn that was over."""
        self.given: dict[str, Json] = {}
        """The values of these answers as they were given; a restart forgets them."""

    def remember(self, input_id: str, turn_id: str | None) -> None:
        """Record an input that took effect; of too many the oldest is forgotten."""
        self[input_id] = turn_id
        while len(self) > REMEMBERED:
            del self[next(iter(self))]

    def remember_input(self, payload: JsonObject, turn_id: str | None) -> None:
        """Record what a fact has of an input: all of it, or its id."""
        submitted = payload.get("input")
        if submitted is not None and (named := files_named(submitted["data"])):
            self.remember_files(named)
        input_id = submitted.get("id") if submitted is not None else payload.get("inputId")
        if input_id is not None:
            self.remember(input_id, turn_id)

    def forget_turn(self, turn_id: str) -> None:
        """Forget what was kept for a turn until it is over."""
        self.renderers.pop(turn_id, None)
        self.traceparents.pop(turn_id, None)
        self.typed.pop(turn_id, None)
        self.answers.pop(turn_id, None)
        self.given.pop(turn_id, None)

    def answer_of(self, turn_id: str) -> GivenAnswer | None:
        """Return the answer that began a turn, as it was given as far as that is known."""
        answer = self.answers.get(turn_id)
        if answer is None or turn_id not in self.given:
            return answer
        return replace(answer, value=self.given[turn_id])

    def remember_files(self, sha256: Iterable[str]) -> None:
        """Record files; one that comes again counts as the newest."""
        for name in sha256:
            self.files.pop(name, None)
            self.files[name] = None
        while len(self.files) > REMEMBERED:
            del self.files[next(iter(self.files))]


def files_named(data: JsonObject) -> list[str]:
    """Return the SHA-256 of the files that an input names, in `files` or in the fields of a form.

    Whatever stands there: a file whose hash is no text gives the empty one, which no file has.
    """
    files, fields = data.get("files"), data.get("fields")
    if not files and not fields:
        return []
    named: list[Json] = [*files] if isinstance(files, list) else []
    if isinstance(fields, dict):
        named += fields.values()
    hashes = [ref["sha256"] for ref in named if isinstance(ref, dict) and "sha256" in ref]
    return [sha256 if isinstance(sha256, str) else "" for sha256 in hashes]
