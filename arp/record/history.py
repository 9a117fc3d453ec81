"""What a model is given to read, and what became of what was said before."""

from __future__ import annotations

from collections.abc import Sequence

from arp.protocol.json_value import Json
from arp.record.scope import FactScope


class Context:
    """What a model is given to read."""

    __slots__ = ("_scope",)

    def __init__(self, scope: FactScope) -> None:
        self._scope = scope

    def resolved(
        self,
        tokens: int | None = None,
        max_tokens: int | None = None,
        sources: Sequence[Json] = (),
    ) -> None:
        """Notes how large the context is, how large it may be, and what it was made of."""
        payload = {"tokens": tokens, "maxTokens": max_tokens, "sources": list(sources) or None}
        self._scope.record("context.resolved", payload)

    def compaction(self, reason: str | None = None, tokens: int | None = None) -> Compaction:
        """Begins to make the context smaller; `tokens` is its size before."""
        return Compaction(self._scope, reason, tokens)


class Compaction:
    """A compaction under way."""

    __slots__ = ("_scope",)

    def __init__(self, scope: FactScope, reason: str | None, tokens: int | None) -> None:
        self._scope = scope.within(request_id=scope.new_id("compaction"))
        payload = {"reason": reason, "tokensBefore": tokens}
        self._scope.record("context.compaction.started", payload)

    def completed(
        self,
        *,
        tokens_before: int | None = None,
        tokens_after: int | None = None,
        through_sequence: int | None = None,
        summary: str | None = None,
    ) -> None:
        """Notes how small the context is now.

        Args:
            tokens_before: Its size before.
            tokens_after: Its size now.
            through_sequence: The last fact that the summary covers.
            summary: What takes the place of what was left out.
        """
        payload = {
            "tokensBefore": tokens_before,
            "tokensAfter": tokens_after,
            "throughSequence": through_sequence,
            "summary": summary,
        }
        self._scope.record("context.compaction.completed", payload)

    def failed(self, reason: str) -> None:
        """Notes that the context is as large as before."""
        self._scope.record("context.compaction.failed", {"reason": reason})


class History:
    """What of a session's past is loaded, rebuilt, or no longer counts."""

    __slots__ = ("_scope",)

    def __init__(self, scope: FactScope) -> None:
        self._scope = scope

    def loaded(self, from_sequence: int, through_sequence: int, reason: str | None = None) -> None:
        """Notes which facts are at hand."""
        payload = {"fromSequence": from_sequence, "throughSequence": through_sequence}
        self._scope.record("history.window.loaded", {**payload, "reason": reason})

    def reconstructed(self, through_sequence: int, source: str) -> None:
        """Notes that the past up to a fact was rebuilt, and from what."""
        payload = {"throughSequence": through_sequence, "source": source}
        self._scope.record("history.reconstructed", payload)

    def rollback(self, to_sequence: int, reason: str | None = None) -> Rollback:
        """Begins to take back what came after a fact. The facts stay: they no longer count."""
        return Rollback(self._scope, to_sequence, reason)


class Rollback:
    """A rollback under way."""

    __slots__ = ("_scope", "_to")

    def __init__(self, scope: FactScope, to_sequence: int, reason: str | None) -> None:
        self._to = to_sequence
        self._scope = scope.within(request_id=scope.new_id("rollback"))
        payload = {"toSequence": to_sequence, "reason": reason}
        self._scope.record("history.rollback.started", payload)

    def completed(self, removed_turns: Sequence[str]) -> None:
        """Notes the ids of the turns that no longer count."""
        payload = {"toSequence": self._to, "removedTurns": list(removed_turns)}
        self._scope.record("history.rollback.completed", payload)
