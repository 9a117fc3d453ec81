"""A trajectory in the Agent Trajectory Interchange Format (ATIF), made of facts.

Theory of operation. A step of the agent is what came of one request to a model: what it said,
which tools it called, what they gave. Where an agent does not note its requests, a step ends when
text follows the result of a tool. What is not known is left out: ATIF has every field but a few
optional, and an invented one would be read as measured.

Source: Harbor, RFC 0001 (ATIF), version 1.8.
"""

from __future__ import annotations

from typing import Final

import msgspec

from arp.audit.models.reading import number, part, text, whole
from arp.ledger.fact import Fact
from arp.protocol.json_value import Json, JsonObject

VERSION: Final = "ATIF-v1.8"

TRAJECTORY: Final = "trajectory.json"
"""Its part in a pack."""

_TOKENS: Final = {
    "inputTokens": "prompt_tokens",
    "outputTokens": "completion_tokens",
    "cachedInputTokens": "cached_tokens",
}
"""Field of `cost.recorded` → field of a step's metrics."""


class Agent(msgspec.Struct, frozen=True):
    """Who acted."""

    name: str
    version: str = "unknown"


class TrajectoryStep:
    """A step of the agent that is still open."""

    def __init__(self, fact: Fact) -> None:
        self.timestamp = fact.timestamp
        self.sequence = fact.sequence
        self.turn_id = fact.turn_id
        self.model: str | None = None
        self.requests = 0
        self.said: list[str] = []
        self.thought: list[str] = []
        self.calls: dict[str, JsonObject] = {}
        self.results: list[JsonObject] = []
        self.costs: dict[str, float] = {}

    def document(self, number_of: int) -> JsonObject:
        """Return the step as ATIF has it."""
        entry: JsonObject = {
            "step_id": number_of,
            "timestamp": self.timestamp,
            "source": "agent",
            "message": "".join(self.said),
        }
        more: JsonObject = {
            "model_name": self.model,
            "reasoning_content": "".join(self.thought) or None,
            "tool_calls": list(self.calls.values()) or None,
            "observation": {"results": self.results} if self.results else None,
            "metrics": _metrics(self.costs) or None,
            "llm_call_count": self.requests or None,
        }
        entry |= {name: value for name, value in more.items() if value is not None}
        return {**entry, "extra": {"sequence": self.sequence, "turnId": self.turn_id}}


class Trajectory:
    """Makes `trajectory.json`, from facts in order; a maker of further parts of a pack.

    Args:
        trajectory_id: Of the document.
        agent: Who acted.
    """

    def __init__(self, trajectory_id: str, agent: Agent) -> None:
        self._id = trajectory_id
        self._agent = agent
        self._session_id: str | None = None
        self._model: str | None = None
        self._steps: list[JsonObject] = []
        self._open: TrajectoryStep | None = None
        self._totals: dict[str, float] = {}

    def take(self, fact: Fact) -> None:
        """Take a fact; one that is no part of a trajectory is passed over."""
        self._session_id = self._session_id or fact.session_id
        payload = fact.payload
        match fact.type:
            case "turn.submitted":
                self._person(fact, input_text(part(payload, "input")))
            case "action.resolved" if payload.get("decision") == "answered":
                self._person(fact, _plain(payload.get("answer")))
            case "model.requested":
                self._close()
                step = self._step(fact)
                step.requests += 1
                step.model = text(payload, "model")
                self._model = self._model or step.model
            case "model.delta":
                self._speaking(fact).said.append(_said(payload))
            case "reasoning.delta" | "reasoning.summary":
                self._speaking(fact).thought.append(_said(payload))
            case "tool.started" | "tool.args":
                self._called(fact)
            case "tool.result" | "tool.failed":
                self._resulted(fact)
            case "cost.recorded":
                self._cost(fact)
            case "turn.completed" | "turn.failed":
                self._close()
            case _:
                pass

    def _person(self, fact: Fact, message: str) -> None:
        self._close()
        entry: JsonObject = {"timestamp": fact.timestamp, "source": "user", "message": message}
        extra = {"sequence": fact.sequence, "turnId": fact.turn_id}
        self._steps.append({"step_id": len(self._steps) + 1, **entry, "extra": extra})

    def _step(self, fact: Fact) -> TrajectoryStep:
        if self._open is None:
            self._open = TrajectoryStep(fact)
        return self._open

    def _speaking(self, fact: Fact) -> TrajectoryStep:
        """Return the step that text belongs to: a new one behind the result of a tool."""
        if self._open is not None and self._open.results and not self._open.requests:
            self._close()
        return self._step(fact)

    def _called(self, fact: Fact) -> None:
        calls = self._step(fact).calls
        name = fact.tool_call_id or "unknown"
        call = calls.setdefault(
            name,
            {"tool_call_id": name, "function_name": "unknown", "arguments": {}},
        )
        call["function_name"] = text(fact.payload, "tool") or call["function_name"]
        if "args" in fact.payload:
            call["arguments"] = _arguments(fact.payload["args"])

    def _resulted(self, fact: Fact) -> None:
        step, payload = self._step(fact), fact.payload
        is_error = fact.type == "tool.failed"
        content = payload.get("error") if is_error else payload.get("preview")
        extra: JsonObject = {"sequence": fact.sequence, "ok": not is_error}
        if fact.output_ref is not None:
            extra["outputRef"] = fact.output_ref
        known = {"source_call_id": fact.tool_call_id} if fact.tool_call_id in step.calls else {}
        step.results.append({**known, "content": _plain(content), "extra": extra})

    def _cost(self, fact: Fact) -> None:
        """Add what a request took to the step that is open, and to the totals."""
        costs: dict[str, float] = {}
        for name in _TOKENS:
            if (count := whole(fact.payload, name)) is not None:
                costs[name] = count
        currency, amount = text(fact.payload, "currency"), number(fact.payload, "amount")
        if currency is not None and amount is not None:
            costs[currency] = amount
        steps = [self._open.costs] if self._open is not None else []
        for into in (*steps, self._totals):
            for name, value in costs.items():
                into[name] = into.get(name, 0) + value

    def _close(self) -> None:
        if self._open is not None:
            self._steps.append(self._open.document(len(self._steps) + 1))
            self._open = None

    def document(self, extra: JsonObject | None = None) -> JsonObject:
        """Return the trajectory, with what is still open as its last step.

        One in which nothing happened has a single step of the system that says so, since ATIF wants
        one at least.

        Args:
            extra: What the root tells besides.
        """
        self._close()
        steps = self._steps or [{"step_id": 1, "source": "system", "message": "nothing happened"}]
        agent: JsonObject = {"name": self._agent.name, "version": self._agent.version}
        if self._model is not None:
            agent["model_name"] = self._model
        document: JsonObject = {
            "schema_version": VERSION,
            "session_id": self._session_id or "unknown",
            "trajectory_id": self._id,
            "agent": agent,
            "steps": steps,
            "final_metrics": {**_totals(self._totals), "total_steps": len(steps)},
        }
        return {**document, "extra": extra} if extra else document


def required_field_status(document: JsonObject) -> JsonObject:
    """Return which fields a trajectory has that a benchmark needs, in the profile's names.

    A call without a result, as one that was interrupted, makes `observation` false; where no tool
    was called, nothing is missing.
    """
    steps: list[JsonObject] = document["steps"]
    calls = [{call["tool_call_id"] for call in step.get("tool_calls", ())} for step in steps]
    results = [
        [result.get("source_call_id") for result in part(step, "observation").get("results", ())]
        for step in steps
    ]
    pairs = list(zip(calls, results, strict=True))
    return {
        "schema_version": bool(document.get("schema_version")),
        "session_id": document.get("session_id") not in (None, "unknown"),
        "agent": bool(part(document, "agent").get("name")),
        "steps[].step_id": [step["step_id"] for step in steps] == [*range(1, len(steps) + 1)],
        "steps[].tool_calls": all(set(came) <= known for known, came in pairs),
        "steps[].observation": all(known <= set(came) for known, came in pairs),
        "final_metrics": "final_metrics" in document,
    }


def input_text(given: JsonObject) -> str:
    """Return what a person asked: the text, or all of it as JSON."""
    data = part(given, "data")
    typed = data.get("text")
    return typed if isinstance(typed, str) and len(data) == 1 else _plain(data)


def _said(payload: JsonObject) -> str:
    value = payload.get("text")
    return value if isinstance(value, str) else ""


def _plain(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _arguments(value: Json) -> JsonObject:
    """Return a tool's arguments as the object that ATIF wants."""
    try:
        read = msgspec.json.decode(value) if isinstance(value, str) else value
    except msgspec.DecodeError:
        read = value
    return read if isinstance(read, dict) else {"value": read}


def _metrics(costs: dict[str, float]) -> JsonObject:
    """Return what a step cost; amounts in other currencies than dollars are in `extra`."""
    metrics: JsonObject = {_TOKENS[name]: costs[name] for name in _TOKENS if name in costs}
    if "USD" in costs:
        metrics["cost_usd"] = costs["USD"]
    other = {name: costs[name] for name in costs if name not in _TOKENS and name != "USD"}
    return {**metrics, "extra": {"amounts": other}} if other else metrics


def _totals(costs: dict[str, float]) -> JsonObject:
    return {
        name if name == "extra" else f"total_{name}": value
        for name, value in _metrics(costs).items()
    }
