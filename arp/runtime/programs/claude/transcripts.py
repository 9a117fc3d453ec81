"""The sessions that Claude Code stores: one file of JSON lines for each, below its directory.

Functions of claude-agent-sdk parse the files, because they know the format. They exist in two
variants. One searches for the files with the environment of this process, which may differ from
Claude Code's. So the other one is used, which reads from a store (`_TranscriptStore`).
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

import msgspec

from arp.runtime.contract.types import (
    ContentPart,
    PartType,
    PastToolCall,
    RuntimeMessage,
    RuntimeSession,
    SessionState,
)
from arp.runtime.programs.claude.messages import text_of

if TYPE_CHECKING:
    from claude_agent_sdk import SDKSessionInfo, SessionKey
    from claude_agent_sdk.types import (
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

HEAD_BYTES = 64 * 1024
"""Bytes at each end of a transcript that are read for lists; title and directory are there (as in
the SDK)."""


class Transcripts:
    """The transcripts below one directory of Claude Code; each call reads the files again.

    Args:
        environment: Environment of Claude Code, which determines the directory.
        is_inside: Returns whether a session may be reached. Claude Code writes a file for each
            directory that a session was resumed in, so each file is checked.
    """

    def __init__(
        self, environment: Mapping[str, str], is_inside: Callable[[RuntimeSession], bool]
    ) -> None:
        self._is_inside = is_inside
        home = Path(environment.get("HOME", "/"))
        configured = environment.get("CLAUDE_CONFIG_DIR")
        self.projects = (Path(configured) if configured else home / ".claude") / "projects"

    def path_of(self, session_id: str) -> Path | None:
        """Return the newest transcript of a session that may be reached, or `None`."""
        found = [path for path in self._paths(session_id) if self._is_inside(_brief_session(path))]
        return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)

    def _paths(self, session_id: str) -> list[Path]:
        """Return the transcripts of a session in all directories."""
        if not is_uuid(session_id):
            return []
        paths = self.projects.glob(f"*/{session_id}.jsonl")
        return [path for path in paths if path.is_file()]

    async def all(self) -> list[RuntimeSession]:
        """Return all sessions, newest first."""
        return await asyncio.to_thread(self._all)

    async def find(self, session_id: str) -> RuntimeSession | None:
        """Return a session, even if it may not be reached; its directory shows whether it may."""
        return await asyncio.to_thread(self._find, session_id)

    async def history(self, session_id: str, limit: int) -> tuple[RuntimeMessage, ...]:
        """Return the newest messages of a session, oldest first."""
        return await asyncio.to_thread(self._history, session_id, limit)

    async def delete(self, session_id: str) -> None:
        """Remove the transcripts of a session and the files beside them, if there are any."""
        await asyncio.to_thread(self._delete, session_id)

    # -- in a thread -----------------------------------------------------------------------------

    def _all(self) -> list[RuntimeSession]:
        from claude_agent_sdk import list_sessions_from_store

        infos = asyncio.run(list_sessions_from_store(_TranscriptStore(self, ends_only=True)))
        return [session_of(info) for info in infos]

    def _find(self, session_id: str) -> RuntimeSession | None:
        from claude_agent_sdk import get_session_info_from_store

        path = self.path_of(session_id)
        if path is None:
            return next(map(_brief_session, self._paths(session_id)), None)
        store = _TranscriptStore(self, ends_only=True)
        info = asyncio.run(get_session_info_from_store(store, session_id))
        return _brief_session(path) if info is None else session_of(info)

    def _history(self, session_id: str, limit: int) -> tuple[RuntimeMessage, ...]:
        from claude_agent_sdk import get_session_messages_from_store

        store = _TranscriptStore(self, ends_only=False)
        found = asyncio.run(get_session_messages_from_store(store, session_id))
        return history_of([(one.type, one.message) for one in found])[-limit:]

    def _delete(self, session_id: str) -> None:
        while (path := self.path_of(session_id)) is not None:
            path.unlink(missing_ok=True)
            shutil.rmtree(path.with_suffix(""), ignore_errors=True)


class _TranscriptStore:
    """Read-only store for the SDK; it finds a session in any project."""

    def __init__(self, transcripts: Transcripts, *, ends_only: bool) -> None:
        self._transcripts = transcripts
        self._ends_only = ends_only

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        raise NotImplementedError

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        path = self._transcripts.path_of(key["session_id"])
        if path is None:
            return None
        return entries_of(read_ends(path) if self._ends_only else path.read_bytes())

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        newest: dict[str, int] = {}
        for path in self._transcripts.projects.glob("*/*.jsonl"):
            if is_uuid(path.stem) and self._transcripts.path_of(path.stem) is not None:
                changed = path.stat().st_mtime_ns // 1_000_000
                newest[path.stem] = max(changed, newest.get(path.stem, 0))
        return [{"session_id": one, "mtime": changed} for one, changed in newest.items()]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        raise NotImplementedError

    async def delete(self, key: SessionKey) -> None:
        raise NotImplementedError

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        raise NotImplementedError


def is_uuid(text: str) -> bool:
    """Return whether a text is an id of Claude Code; such an id is safe in a path."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def read_ends(path: Path) -> bytes:
    """Return the beginning and the end of a file; a short file is returned completely."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        size = file.seek(0, 2)
        if size <= len(head):
            return head
        file.seek(max(len(head), size - HEAD_BYTES))
        return head + b"\n" + file.read()


def entries_of(data: bytes) -> list[SessionStoreEntry]:
    """Return the objects of a file of JSON lines; an incomplete line is left out."""
    entries = []
    for line in data.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries  # type: ignore[return-value]  # the SDK checks what it reads of them


def _brief_session(path: Path) -> RuntimeSession:
    """Return the session of a transcript, with its id and its directory, which may be empty."""
    found = (entry.get("cwd") for entry in entries_of(read_ends(path)))
    cwd = next((cwd for cwd in found if isinstance(cwd, str) and cwd), "")
    return RuntimeSession(path.stem, SessionState.CLOSED, "claude-code", cwd)


def session_of(info: SDKSessionInfo) -> RuntimeSession:
    """Return the session that the SDK describes."""
    return RuntimeSession(
        session_id=info.session_id,
        state=SessionState.CLOSED,
        runtime="claude-code",
        cwd=info.cwd or "",
        title=info.summary,
        created_at_ns=(info.created_at or 0) * 1_000_000,
        updated_at_ns=info.last_modified * 1_000_000,
    )


def history_of(messages: Sequence[tuple[str, object]]) -> tuple[RuntimeMessage, ...]:
    """Return a transcript's messages; each tool call has its result."""
    results = dict(_results(messages))
    history: list[RuntimeMessage] = []
    last_id = ""
    for role, raw in messages:
        content = raw.get("content") if isinstance(raw, dict) else raw
        message_id = str(raw.get("id") or "") if isinstance(raw, dict) else ""
        message = past_message(role, content, results)
        if not (message.content or message.tool_calls or message.parts or message.thinking):
            continue
        if message_id and message_id == last_id:
            history[-1] = joined(history[-1], message)
        else:
            history.append(message)
        last_id = message_id
    return tuple(history)


def _results(messages: Sequence[tuple[str, object]]) -> list[tuple[str, tuple[str, bool]]]:
    return [
        (block["tool_use_id"], (text_of(block.get("content")), bool(block.get("is_error"))))
        for _, raw in messages
        if isinstance(raw, dict) and isinstance(raw.get("content"), list)
        for block in raw["content"]
        if isinstance(block, dict) and block.get("type") == "tool_result"
    ]


def joined(first: RuntimeMessage, second: RuntimeMessage) -> RuntimeMessage:
    """Return two parts of one answer as one message.

    A transcript has a separate line for each block of an answer.
    """
    return msgspec.structs.replace(
        first,
        content="\n".join(filter(None, (first.content, second.content))),
        thinking="\n".join(filter(None, (first.thinking, second.thinking))),
        tool_calls=first.tool_calls + second.tool_calls,
    )


def past_message(
    role: str, content: object, results: Mapping[str, tuple[str, bool]]
) -> RuntimeMessage:
    """Return a message of a transcript.

    Args:
        role: Role of the message.
        content: Text or blocks of the message.
        results: Text and error flag of each tool result, by call id.
    """
    known_role: Literal["user", "assistant"] = "assistant" if role == "assistant" else "user"
    if isinstance(content, str):
        return _past_text(known_role, content)
    blocks = [block for block in content if isinstance(block, dict)] if _is_list(content) else []
    return RuntimeMessage(
        role=known_role,
        content="\n".join(block["text"] for block in blocks if block.get("type") == "text"),
        parts=tuple(_parts(blocks)),
        tool_calls=tuple(
            PastToolCall(
                block["id"], block["name"], block["input"], *results.get(block["id"], ("", False))
            )
            for block in blocks
            if block.get("type") == "tool_use"
        ),
        thinking="\n".join(b["thinking"] for b in blocks if b.get("type") == "thinking"),
    )


def _past_text(role: Literal["user", "assistant"], content: str) -> RuntimeMessage:
    """Return a message of text; a stored command has tags around its parts, which are removed."""
    name = re.search(r"<command-name>(.*?)</command-name>", content)
    if name is None:
        return RuntimeMessage(role=role, content=content)
    arguments = re.search(r"<command-args>(.*?)</command-args>", content, re.DOTALL)
    command = f"{name[1]} {arguments[1] if arguments else ''}".strip()
    return RuntimeMessage(role=role, content=command)


def _is_list(content: object) -> TypeGuard[list[Any]]:
    return isinstance(content, list)


def _parts(blocks: Sequence[dict[str, Any]]) -> Iterator[ContentPart]:
    """Yield the attachments without their bytes, which remain in the transcript."""
    kinds: dict[str, PartType] = {"image": "image", "document": "file"}
    for block in blocks:
        kind = kinds.get(block.get("type", ""))
        if kind is not None:
            yield ContentPart(kind, mime_type=block.get("source", {}).get("media_type", ""))
