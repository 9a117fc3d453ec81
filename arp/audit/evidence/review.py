"""Write a review template in Markdown, filled in from the facts of a session.

Text of the session is quoted as code, so that it cannot become Markdown of the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from arp.audit.evidence.derived import Evidence
from arp.audit.evidence.trajectory import input_text
from arp.audit.models.reading import part, text
from arp.ledger.fact import Fact
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.safe_text import sanitise, sanitise_line

REVIEW: Final = "review.md"
"""File name of a review."""

MOST_ROWS: Final = 200
"""Maximum number of rows in a table; a pack contains all of them."""

QUESTIONS: Final = (
    "Did the session do what was asked?",
    "Are the failures above explained, and was each dealt with?",
    "Was each permission decided by whom it should be?",
    "Is what is missing above acceptable?",
)
"""Questions that only a person can answer."""

_TITLES: Final = {
    "tasks.json": "Tasks",
    "tool_calls.json": "Tools",
    "processes.json": "Processes",
    "permissions.json": "Permissions",
    "actions.json": "Questions",
    "sandbox.json": "Sandbox",
    "hooks.json": "Hooks",
    "jobs.json": "Jobs",
    "subagents.json": "Subagents",
    "artifacts.json": "Artifacts",
    "routing.json": "Routing",
    "limits.json": "Limits",
    "cost.json": "Cost",
    "verification.json": "Exports and checks",
}


MOST_TEXT: Final = 4000
"""Maximum number of characters of an input or an answer; a pack contains all of them."""


class Words:
    """Collects the input, the answer and the shown components of each turn, from facts in order.

    It is passed to `Evidence` as a maker of parts, but makes no parts.
    """

    def __init__(self) -> None:
        self._inputs: dict[str, str] = {}
        self._answers: dict[str, list[str]] = {}
        self._sizes: dict[str, int] = {}
        """Length of each answer in characters, including text that was not kept."""
        self._shown: dict[str, dict[str, None]] = {}
        """Types of the components that each turn showed, in order."""

    def add(self, fact: Fact) -> None:
        """Process the next fact."""
        turn_id, payload = fact.turn_id, fact.payload
        if turn_id is None:
            return
        if fact.type in ("turn.submitted", "queue.changed") and "input" in payload:
            self._inputs[turn_id] = input_text(part(payload, "input"))
        elif fact.type == "model.delta":
            self._append_answer(turn_id, payload.get("text"))
        elif fact.type == "artifact.changed":
            for component in _added_components(payload.get("changes")):
                if component.get("type") == "text":
                    self._append_answer(turn_id, part(component, "props").get("content"), "\n")
                else:
                    name = text(component, "type") or "unknown"
                    self._shown.setdefault(turn_id, {})[name] = None

    def _append_answer(self, turn_id: str, value: Json, before: str = "") -> None:
        if not isinstance(value, str):
            return
        size = self._sizes.get(turn_id, 0)
        value = before + value if size else value
        self._answers.setdefault(turn_id, []).append(value[: max(MOST_TEXT - size, 0)])
        self._sizes[turn_id] = size + len(value)

    def documents(self) -> dict[str, bytes]:
        """Return an empty mapping."""
        return {}

    @property
    def turns(self) -> list[str]:
        """Ids of the turns that have content, in the order of their inputs."""
        return list(self._inputs | self._answers | self._shown)

    def lines_of(self, turn_id: str) -> Iterator[str]:
        """Yield the content of a turn as lines of Markdown."""
        if turn_id in self._inputs:
            content = self._inputs[turn_id]
            yield from ("Input:", "", *_block(content, len(content)), "")
        if turn_id in self._answers:
            answer = "".join(self._answers[turn_id])
            yield from ("Answer:", "", *_block(answer, self._sizes[turn_id]), "")
        else:
            yield from ("No text was answered.", "")
        if self._shown.get(turn_id):
            shown = ", ".join(quoted(name) for name in self._shown[turn_id])
            yield from (f"It showed: {shown}", "")


def _added_components(changes: Json) -> Iterator[JsonObject]:
    """Yield the components that are added by changes of a surface."""
    for change in _objects(changes):
        yield from _objects(change.get("render"))
        for op in _objects(change.get("patch")):
            yield from _objects([op.get("component")])


def _objects(value: Json) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _block(content: str, size: int) -> Iterator[str]:
    """Yield a text as a code block. Its fence is longer than any run of backticks in the text."""
    shown = sanitise(content[:MOST_TEXT])
    fence = "`" * max(3, _longest_run(shown) + 1)
    yield f"{fence}text"
    yield from shown.split("\n")
    yield fence
    if size > MOST_TEXT:
        yield from ("", f"{size - MOST_TEXT} more characters are in the pack.")


def review(
    evidence: Evidence, evidence_id: str, created_at: str, words: Words | None = None
) -> str:
    """Return the review as Markdown.

    Args:
        evidence: Evidence of the reviewed facts.
        evidence_id: Id of the review.
        created_at: Time of the review, in RFC 3339.
        words: Content of the turns; `None` omits that section.
    """
    lines = [*_head(evidence, evidence_id, created_at), *_turns(evidence)]
    lines += ["", "## What was said", "", *_words(words)] if words is not None else []
    for section_part, document in evidence.sections().items():
        title = _TITLES[section_part]
        lines += ["", f"## {title}", "", *_table(document)]
    lines += ["", "## Known gaps", "", *_gaps(evidence)]
    lines += ["", "## Review", ""]
    for question in QUESTIONS:
        lines += [f"- [ ] {question}", ""]
    lines += ["Decision: accept / change / reject", "", "Reviewer:", ""]
    return "\n".join(lines)


def _head(evidence: Evidence, evidence_id: str, created_at: str) -> Iterator[str]:
    chain = evidence.chain
    yield f"# Review of session {quoted(chain.session_id)}"
    yield ""
    yield f"{quoted(evidence_id)}, made {quoted(created_at)} from facts {chain.first} to"
    yield f"{chain.through}. Chain head: {quoted(chain.head)}."
    yield ""
    for name, value in evidence.spine.document().items():
        shown = ", ".join(map(str, value[:20])) if isinstance(value, list) else str(value)
        yield f"- {name}: {quoted(shown)}"


def _turns(evidence: Evidence) -> Iterator[str]:
    thread = evidence.model.thread(evidence.scope.thread_id) or {}
    yield ""
    yield "## Turns"
    yield ""
    if thread:
        yield f"Thread {quoted(thread['threadId'])} is {quoted(thread['status'])}."
    else:
        yield "There is no such thread."
    yield ""
    yield "| turn | status | why | first fact | last fact |"
    yield "| --- | --- | --- | --- | --- |"

    def is_in_scope(entry: JsonObject) -> bool:
        return evidence.scope.turn_id in (None, entry.get("turnId"))

    for turn in filter(is_in_scope, thread.get("turns", [])):
        names = ("turnId", "status", "statusReason", "firstSequence", "lastSequence")
        yield _row(turn.get(name) for name in names)
    incidents = [one for one in thread.get("incidents", []) if is_in_scope(one)]
    if incidents:
        yield from ("", "Incidents:", "")
    for incident in incidents[:MOST_ROWS]:
        message = text(incident, "message") or ""
        yield f"- fact {incident['firstSequence']}, {quoted(incident['type'])}: {quoted(message)}"


def _words(words: Words) -> Iterator[str]:
    turns = words.turns
    if not turns:
        yield "Nothing."
    for turn_id in turns[:MOST_ROWS]:
        yield f"### Turn {quoted(turn_id)}"
        yield ""
        yield from words.lines_of(turn_id)
    if len(turns) > MOST_ROWS:
        yield f"{len(turns) - MOST_ROWS} more turns are in the pack."


def _table(document: JsonObject) -> Iterator[str]:
    items = document["items"]
    yield "| id | came to | said | facts |"
    yield "| --- | --- | --- | --- |"
    for item in items[:MOST_ROWS]:
        name = next(iter(item))
        span = f"{item['firstSequence']} to {item['lastSequence']}"
        yield _row((item[name], item["outcome"], _summary(item), span))
    if len(items) > MOST_ROWS:
        yield ""
        yield f"{len(items) - MOST_ROWS} more are in the pack."
    unjoined = document.get("unjoined", [])
    if unjoined:
        yield ""
        yield f"{len(unjoined)} facts cannot be joined to any id."
    if "totals" in document:
        amounts = part(document["totals"], "amounts")
        yield ""
        yield f"In all: {', '.join(f'{amount:g} {name}' for name, amount in amounts.items())}"


_GIST: Final = ("error", "reason", "objective", "decision", "message", "model", "name", "tool")


def _summary(item: JsonObject) -> str:
    """Return a short summary of an item, from its last fact that has one."""
    for fact in reversed(item["facts"]):
        payload = fact["payload"]
        denied = part(payload, "deniedBy")
        if denied:
            return f"denied by {denied.get('kind')} {denied.get('name')}"
        value = text(payload, *_GIST)
        if value is not None:
            return value
    return ""


def _gaps(evidence: Evidence) -> Iterator[str]:
    gaps = evidence.gaps()
    if not gaps:
        yield "None that the facts show."
    for gap in gaps:
        sequences = ", ".join(map(str, gap.sequences))
        yield f"- {gap.part}: {gap.reason} ({gap.state}; facts {sequences})"


def _row(values: Iterable[Json]) -> str:
    return f"| {' | '.join(quoted(value) for value in values)} |"


def quoted(value: Json) -> str:
    """Return a value as inline Markdown code on one line; empty for `None` or an empty string."""
    if value is None or value == "":
        return ""
    shown = sanitise_line(str(value).replace("\n", " "))[:200]
    if shown.isascii() and shown.replace("_", "").replace(".", "").isalnum():
        return f"`{shown}`"
    fence = "`" * (_longest_run(shown) + 1)
    space = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{space}{shown}{space}{fence}".replace("|", "\\|")


def _longest_run(shown: str) -> int:
    longest = run = 0
    for one in shown:
        run = run + 1 if one == "`" else 0
        longest = max(longest, run)
    return longest
