"""`ReadModel`: what a session is now, from its facts, one after the other.

Theory of operation. `fold` takes the facts in order, each once, at a cost that does not grow with
what came before. `encode` gives all of it as bytes; a model read from them goes on as if it had
folded everything itself. So a stored model and the facts behind it equal the whole log, and the
same facts always give the same bytes.
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
    """A fact that is not the next one of this session. The model is as it was."""


class UnreadableModel(LocalError):
    """Bytes that are no model of this version. Fold the facts from the first instead."""


class ReadModel:
    """The read models of one session: as large as what is going on, not as its history."""

    __slots__ = ("_state",)

    def __init__(self, state: State | None = None) -> None:
        self._state = state if state is not None else State(MODEL_VERSION)

    @classmethod
    def behind(cls, session_id: str, sequence: int) -> ReadModel:
        """Return a model of the facts behind a sequence alone, as if there were none before.

        Args:
            session_id: Of the session.
            sequence: The next fact is the one after this; 0 is the same as an empty model.
        """
        return cls(State(MODEL_VERSION, sequence, session_id)) if sequence else cls()

    @property
    def sequence(self) -> int:
        """The sequence of the newest fact that was folded; 0 if none was."""
        return self._state.sequence

    @property
    def state(self) -> State:
        """Everything that is remembered, to be read."""
        return self._state

    def fold(self, fact: Fact) -> None:
        """Take the next fact.

        Whatever its payload says, it is taken: what cannot be understood counts as not said. A type
        that a newer version added is counted, and changes nothing else.

        Raises:
            FactOutOfOrder: It is not the next fact, or of another session. Nothing has changed.

        Source: ledger.md 4.
        """
        self.fold_all((fact,))

    def fold_all(self, facts: Iterable[Fact]) -> None:
        """Take the next facts, as `fold` each: what was taken before an error stays."""
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
            if last is not None:
                state.sequence, state.session_id = last.sequence, last.session_id
                state.updated_at, state.runtime_id = last.timestamp, last.runtime_id

    def encode(self) -> bytes:
        """Return the model as JSON: the same bytes for the same facts, however they were folded."""
        return _encoder.encode(self._state)

    @classmethod
    def decode(cls, data: bytes) -> ReadModel:
        """Read a model that `encode` gave.

        Raises:
            UnreadableModel: It is damaged, or another version wrote it.
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
            now: RFC 3339; a turn that was long silent by then is `stale`. `None`: nothing is.

        Source: ledger.md 4, `SessionSnapshot`.
        """
        return snapshot_document(self._state, now)

    def thread(self, thread_id: str | None = None, now: str | None = None) -> JsonObject | None:
        """Return a thread's public document; `None` if there is no such thread.

        Args:
            thread_id: `None` = the one that was heard of last.
            now: As for `snapshot`.

        Source: ledger.md 4, `ThreadReadModel`.
        """
        return thread_document(self._state, thread_id, now)


def _next_session(fact: Fact, sequence: int, session_id: str) -> str:
    """Return whose fact this is, if it is the first of a session; refuse it otherwise."""
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
