"""`ReadModel`: the current state of a session, computed from its facts.

Theory of operation. `fold` applies the facts in order, each once. Its cost does not grow with the
number of earlier facts. `encode` returns the whole state as bytes, and a model decoded from them
continues as if it had folded all facts itself. So a stored model together with the facts after it
replaces the whole log, and the same facts always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from arp.audit.models.document import snapshot_document, thread_document
from arp.audit.models.state import MODEL_VERSION, MOST_TRACES, RULES, State
from arp.ledger.fact import Fact
from arp.protocol.errors import LocalError
from arp.protocol.json_value import JsonObject

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(State)


class FactOutOfOrder(LocalError):
    """A fact is not the next fact of this session. The model has not changed."""


class UnreadableModel(LocalError):
    """The bytes are not a model of this version. Fold the facts from the first one instead."""


class ReadModel:
    """The read models of one session. Their size depends on what is open, not on the history."""

    __slots__ = ("_state",)

    def __init__(self, state: State | None = None) -> None:
        self._state = state if state is not None else State(MODEL_VERSION)

    @classmethod
    def behind(cls, session_id: str, sequence: int) -> ReadModel:
        """Return an empty model that folds only the facts after a sequence number.

        Args:
            session_id: Id of the session.
            sequence: Sequence number before the first fact to fold; 0 gives an empty model.
        """
        return cls(State(MODEL_VERSION, sequence, session_id)) if sequence else cls()

    @property
    def sequence(self) -> int:
        """Sequence number of the newest folded fact; 0 if there is none."""
        return self._state.sequence

    @property
    def state(self) -> State:
        """The whole state. Read-only."""
        return self._state

    def fold(self, fact: Fact) -> None:
        """Apply the next fact.

        Every payload is accepted; a field that cannot be understood counts as absent. A fact of a
        type that this version does not know is counted, and changes nothing else.

        Raises:
            FactOutOfOrder: It is not the next fact, or belongs to another session. Nothing has
                changed.

        Source: ledger.md 4.
        """
        self.fold_all((fact,))

    def fold_all(self, facts: Iterable[Fact]) -> None:
        """Apply the next facts, each as `fold` does; facts before an error stay applied."""
        state, last = self._state, None
        session_id, sequence = state.session_id, state.sequence
        counts, threads = state.facts, state.threads.threads
        try:
            for fact in facts:
                sequence += 1
                if fact.sequence != sequence or fact.session_id != session_id:
                    session_id = _next_session(fact, sequence, session_id)
                last, name, thread_id = fact, fact.type, fact.thread_id
                rules = RULES.get(name)
                if rules is None:
                    name, rules = "other", ()
                counts[name] = counts.get(name, 0) + 1
                if fact.trace_id is not None:
                    _trace(state, fact.trace_id)
                if thread_id is not None and thread_id not in threads:
                    state.threads.of(fact)
                for part, rule in rules:
                    rule(getattr(state, part), fact)
        finally:
            # The position is written once for all facts, because this loop is hot. It must also be
            # written after an error, or the facts before it would be folded a second time.
            if last is not None:
                state.sequence, state.session_id = last.sequence, last.session_id
                state.updated_at, state.runtime_id = last.timestamp, last.runtime_id

    def encode(self) -> bytes:
        """Return the model as JSON: the same bytes for the same facts, however they were folded."""
        return _encoder.encode(self._state)

    @classmethod
    def decode(cls, data: bytes) -> ReadModel:
        """Return the model of bytes that `encode` returned.

        Raises:
            UnreadableModel: The bytes are damaged, or another version wrote them.
        """
        try:
            state = _decoder.decode(data)
        except msgspec.DecodeError as error:
            raise UnreadableModel(f"no read model: {error}; fold the facts again") from error
        if state.version != MODEL_VERSION:
            raise UnreadableModel(
                f"a read model of version {state.version}, not of {MODEL_VERSION}; "
                "fold the facts again"
            )
        return cls(state)

    def snapshot(self, now: str | None = None) -> JsonObject:
        """Return the session's public document.

        Args:
            now: Current time (RFC 3339), to show a turn that was silent for long as `stale`. `None`
                shows no turn as stale.

        Source: ledger.md 4, `SessionSnapshot`.
        """
        return snapshot_document(self._state, now)

    def thread(self, thread_id: str | None = None, now: str | None = None) -> JsonObject | None:
        """Return the public document of a thread; `None` if there is no such thread.

        Args:
            thread_id: Id of the thread; `None` means the thread with the newest fact.
            now: Current time, as in `snapshot`.

        Source: ledger.md 4, `ThreadReadModel`.
        """
        return thread_document(self._state, thread_id, now)


def _next_session(fact: Fact, sequence: int, session_id: str) -> str:
    """Return the session of a fact that is the first of its session; refuse any other fact."""
    if fact.sequence != sequence:
        raise FactOutOfOrder(
            f"fact {fact.sequence} of session {fact.session_id!r:.80} does not follow "
            f"{sequence - 1}; fold the facts in order, each once"
        )
    if sequence > 1:
        raise FactOutOfOrder(
            f"a fact of session {fact.session_id!r:.80} in the model of "
            f"{session_id!r:.80}; each session has a model of its own"
        )
    return fact.session_id


def _trace(state: State, trace_id: str) -> None:
    if trace_id not in state.trace_ids:
        state.trace_ids.append(trace_id)
        del state.trace_ids[:-MOST_TRACES]
