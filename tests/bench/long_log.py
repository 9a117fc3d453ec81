"""The log of a session of any length, written directly to the store."""

from __future__ import annotations

from collections.abc import Iterator

from arp.ledger.fact_writer import FactWriter, TextFact
from arp.protocol.json_value import JsonObject
from arp.store.session_list import SessionMeta
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite

AT = "2026-01-01T00:00:00.000000Z"
RESULT = "x" * 200
TEXT = '"Twelve rows in all. "'
EPOCH = "e"
BATCH = 5_000
"""Facts in one write."""


def log_of(count: int, session_id: str) -> Iterator[bytes]:
    """Yield the facts of a session: turns of 8 texts, a tool and a surface each."""
    writer = FactWriter("arp", session_id, "main")
    sequence, turn = 0, 0

    def add(type_name: str, payload: JsonObject, **ids: str) -> bytes:
        nonlocal sequence
        sequence += 1
        ids |= {"thread_id": "main", "turn_id": f"t{turn}"}
        return writer.fact(AT, sequence, type_name, payload, ids)

    yield add("session.created", {"epoch": EPOCH, "workflow": "agent"})
    while True:
        turn += 1
        text = {"text": "Show the sales"}
        submitted = {"input_type": "text", "data": text, "id": f"input-{turn}"}
        yield add("turn.submitted", {"input": submitted})
        yield add("turn.started", {})
        call = {"step_id": f"t{turn}.1", "tool_call_id": f"t{turn}.1"}
        yield add("tool.started", {"tool": "query"}, **call)
        yield add("tool.args", {"tool": "query", "args": '{"sql":"SELECT 1"}'}, **call)
        yield add("tool.result", {"tool": "query", "preview": RESULT}, **call)
        for _ in range(8):
            sequence += 1
            text_fact = TextFact(sequence, "model.delta", f"t{turn}", None, TEXT)
            yield writer.text(AT, text_fact)
        table = {"id": f"t{turn}-1", "type": "text", "props": {"content": RESULT}}
        changed = {"surface": "main", "changes": [{"render": [table]}]}
        yield add("artifact.changed", changed, artifact_id="main")
        yield add("turn.completed", {"status": "completed"}, status="completed")
        if sequence >= count:
            return


async def written(store: SqliteStore, count: int, session_id: str) -> int:
    """Write a session of about `count` facts; return the exact number."""
    batch: list[bytes] = []
    sequence = 0
    for fact in log_of(count, session_id):
        batch.append(fact)
        if len(batch) == BATCH:
            await store.append([SessionWrite(session_id, sequence, batch)])
            sequence, batch = sequence + len(batch), []
    meta = SessionMeta(session_id, EPOCH, "", "agent", "Show the sales", AT, AT)
    await store.append([SessionWrite(session_id, sequence, batch, meta)])
    return sequence + len(batch)
