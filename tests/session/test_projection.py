"""Which messages show a fact (ledger.md 2), and that `seq` stands on the one that completes it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arp.ledger.fact_types import REQUIRED_IDS
from arp.protocol.errors import ErrorPayload
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import (
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    InputEcho,
    Patch,
    Permission,
    Render,
    ToolEnd,
    ToolEndPayload,
    ToolProgress,
    ToolProgressPayload,
    ToolStart,
    ToolStartPayload,
    TurnMessage,
)
from arp.protocol.patch import Remove
from arp.session.recording.projection import (
    At,
    commit_messages,
    project,
    restored,
    stored,
)
from arp.surface.change import Change, PatchChange, RenderChange
from tests.session.conversation import text

AT = At("s", 7, "t1")
IN_T1: dict[str, Any] = {"session_id": "s", "turn_id": "t1"}
HERE: dict[str, Any] = {**IN_T1, "seq": 7}
CALL = {"tool_call_id": "c1"}

SAID = {"input_type": "text", "data": {"text": "hi"}}
ECHO = InputEcho(**HERE, input_type="text", data={"text": "hi"})

NAMED = {**SAID, "surface": "side", "source_component": "q", "id": "i1"}
NAMED_ECHO = InputEcho(
    **HERE,
    input_type="text",
    data={"text": "hi"},
    surface="side",
    source_component="q",
    id="i1",
)


def turn(status: Any, turn_id: str = "t1", **more: Any) -> TurnMessage:
    return TurnMessage(session_id="s", turn_id=turn_id, status=status, **more)


SHOWN: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("turn.submitted", {"input": SAID}, [ECHO]),
    ("turn.submitted", {"input": NAMED}, [NAMED_ECHO]),
    (
        "queue.changed",
        {"queued": ["t2", "t3"]},
        [turn("queued", "t2", position=1), turn("queued", "t3", position=2, seq=7)],
    ),
    ("queue.changed", {"queued": []}, []),
    ("turn.started", {}, [turn("running", seq=7)]),
    ("model.delta", {"text": "a"}, [Delta(**HERE, payload=DeltaPayload("a"))]),
    ("model.delta", {}, [Delta(**HERE, payload=DeltaPayload(""))]),
    (
        "reasoning.delta",
        {"text": "hm"},
        [Delta(**HERE, payload=DeltaPayload("hm", kind="thinking"))],
    ),
    ("reasoning.delta", {}, [Delta(**HERE, payload=DeltaPayload("", kind="thinking"))]),
    (
        "tool.args",
        {"tool": "q", "args": "{}"},
        [ToolStart(**HERE, payload=ToolStartPayload("q", "{}", "c1"))],
    ),
    ("tool.started", {"tool": "q"}, []),
    (
        "tool.progress",
        {"text": "reading", "done": 1, "total": 3},
        [ToolProgress(**HERE, payload=ToolProgressPayload("c1", "reading", 1, 3))],
    ),
    (
        "tool.result",
        {"tool": "q"},
        [ToolEnd(**HERE, payload=ToolEndPayload("q", ok=True, call_id="c1"))],
    ),
    (
        "tool.result",
        {"tool": "q", "preview": "[1]", "characters": 3, "durationMs": 12},
        [ToolEnd(**HERE, payload=ToolEndPayload("q", True, "c1", None, "[1]", None, 12))],
    ),
    (
        "tool.failed",
        {"tool": "q", "error": "no"},
        [ToolEnd(**HERE, payload=ToolEndPayload("q", ok=False, call_id="c1", error="no"))],
    ),
    (
        "tool.failed",
        {"tool": "q"},
        [ToolEnd(**HERE, payload=ToolEndPayload("q", ok=False, call_id="c1", error="failed"))],
    ),
    (
        "artifact.changed",
        {
            "surface": "side",
            "changes": [
                {
                    "render": [{"id": "a", "type": "text", "props": {"content": "x"}}],
                    "tool": "q",
                    "replace": True,
                },
                {"patch": [{"op": "remove", "target": "a"}]},
            ],
        },
        [
            Render(**HERE, surface="side", components=[text("a")], tool_name="q", replace=True),
            Patch(**HERE, surface="side", ops=[Remove("a")]),
            Commit(**HERE, surface="side"),
        ],
    ),
    ("action.required", {"component": {"id": "q"}}, [turn("waiting", seq=7)]),
    (
        "action.required",
        {"component": {"id": "q"}, "surface": "main", "tool": "sh", "askedBy": "all"},
        [turn("waiting", seq=7, permission=Permission("q", "sh", "c1", scopes=["once"]))],
    ),
    (
        "action.required",
        {
            "component": {"id": "q"},
            "surface": "side",
            "tool": "sh",
            "askedBy": "all",
            "args": '{"command":"ls"}',
            "digest": "0" * 64,
            "sessionRule": "ls *",
            "editable": True,
            "expiresAt": "2026-01-02T03:04:05.000000Z",
        },
        [
            turn(
                "waiting",
                seq=7,
                permission=Permission(
                    component="q",
                    tool="sh",
                    call_id="c1",
                    surface="side",
                    scopes=["once", "session"],
                    digest="0" * 64,
                    input='{"command":"ls"}',
                    session_rule="ls *",
                    editable=True,
                    expires_at="2026-01-02T03:04:05.000000Z",
                ),
            )
        ],
    ),
    ("action.resolved", {"decision": "cancelled"}, []),
    ("action.resolved", {"decision": "answered", "resumes": True}, [turn("running", seq=7)]),
    (
        "action.resolved",
        {"decision": "answered", "resumes": True, "input": SAID},
        [turn("running"), ECHO],
    ),
    ("action.resolved", {"decision": "answered", "resumes": False, "input": SAID}, [ECHO]),
    (
        "turn.completed",
        {"status": "completed", "usage": {"tokens": 3}},
        [turn("completed"), Commit(**HERE, final=True, usage={"tokens": 3})],
    ),
    (
        "turn.failed",
        {"status": "cancelled"},
        [turn("cancelled"), Commit(**HERE, final=True)],
    ),
    (
        "runtime.error",
        {"error": "no", "code": 18, "retryable": True},
        [ErrorMessage(**HERE, payload=ErrorPayload("no", 18, retryable=True))],
    ),
]


@pytest.mark.parametrize(("type_name", "payload", "messages"), SHOWN)
def test_fact_is_shown_by_its_messages(
    type_name: str, payload: dict[str, Any], messages: list[Any]
) -> None:
    """ledger.md 2; protocol.md 2.1: every turn ends with exactly one final commit."""
    assert project(AT, type_name, payload, CALL) == messages


def test_other_facts_show_nothing() -> None:
    seen = {type_name for type_name, _, messages in SHOWN if messages}
    for type_name in REQUIRED_IDS.keys() - seen:
        assert project(AT, type_name, {}, {}) == []


def test_a_result_is_sent_up_to_two_kibibytes_of_utf_8() -> None:
    """A character that the cut divides goes; what is cut says so."""

    def result(preview: str, characters: int) -> str | None:
        payload: JsonObject = {"tool": "q", "preview": preview, "characters": characters}
        (message,) = project(AT, "tool.result", payload, CALL)
        assert isinstance(message, ToolEnd)
        return message.payload.result

    assert result("x" * 2000, 2000) == "x" * 2000
    assert result("x" * 2000, 2001) == "x" * 2000 + "…"
    cut = result("語" * 2000, 2000)
    assert cut == "語" * 681 + "…"
    assert len(cut.encode()) <= 2048


def test_file_is_on_no_surface() -> None:
    """It is an artifact too, but has no changes."""
    assert project(AT, "artifact.changed", {"name": "report.md"}, {}) == []


def test_seq_stands_on_what_completes_a_fact() -> None:
    """A renderer that is cut off before it is told the whole fact again."""
    for type_name, payload, messages in SHOWN:
        for message in messages[:-1]:
            shared = isinstance(message, Render | Patch)
            assert message.seq == (7 if shared else None), (type_name, payload)
        for message in messages[-1:]:
            assert message.seq == 7, (type_name, payload)


# -- commits ---------------------------------------------------------------------------------------

CHANGES: list[Change] = [
    RenderChange([text("a")], "query", replace=True),
    RenderChange([]),
    PatchChange([Remove("a")]),
    PatchChange([]),
]


def test_changes_come_back_from_the_form_of_the_ledger() -> None:
    kept = stored(CHANGES)
    assert msgspec.to_builtins(kept) == [
        {
            "render": [{"id": "a", "type": "text", "props": {"content": "x"}}],
            "tool": "query",
            "replace": True,
        },
        {"render": []},
        {"patch": [{"op": "remove", "target": "a"}]},
        {"patch": []},
    ]
    assert restored(kept) == CHANGES


def test_messages_of_a_commit_come_back_to_back() -> None:
    """protocol.md 2.1: with nothing between; the messages of one commit share one `seq`."""
    at = At("s", 7)
    assert commit_messages(at, "main", [RenderChange([text("a")]), PatchChange([Remove("b")])]) == [
        Render(session_id="s", seq=7, components=[text("a")]),
        Patch(session_id="s", seq=7, ops=[Remove("b")]),
        Commit(session_id="s", seq=7),
    ]
