"""Make a trajectory in the Agent Trajectory Interchange Format (ATIF) from facts.

Theory of operation. A step of the agent covers one request to a model: the text, the tool calls and
their results. If an agent does not record its requests, a step ends when text follows the result
of a tool. Unknown values are omitted, because most ATIF fields are optional and a reader would take
an invented value for a measurement.

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
"""Name of the part of a pack that holds the trajectory."""

_TOKENS: Final = {
    "inputTokens": "prompt_tokens",
    "outputTokens": "completion_tokens",
    "cachedInputTokens": "cached_tokens",
}
"""Field of a step's metrics for each field of `cost.recorded`."""


class Agent(msgspec.Struct, frozen=True):
    """The agent of a trajectory."""

    name: str
    version: str = "unknown"


class TrajectoryStep:
    """A step of the agent, still open."""

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
        """Return the step in ATIF, with its number."""
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
    """Makes the part `trajectory.json` of a pack, from facts in order.

    Args:
        trajectory_id: Id of the document.
        agent: Agent of the trajectory.
    """

    def __init__(self, trajectory_id: str, agent: Agent) -> None:
        self._id = trajectory_id
        self._agent = agent
        self._session_id: str | None = None
        self._model: str | None = None
        self._steps: list[JsonObject] = []
        self._open: TrajectoryStep | None = None
        self._totals: dict[str, float] = {}

    def add(self, fact: Fact) -> None:
        """Process the next fact. Facts that a trajectory does not contain are ignored."""
        self._session_id = self._session_id or fact.session_id
        payload = fact.payload
        match fact.type:
            case "turn.submitted":
                self._add_user_step(fact, input_text(part(payload, "input")))
            case "action.resolved" if payload.get("decision") == "answered":
                self._add_user_step(fact, _as_text(payload.get("answer")))
            case "model.requested":
                self._close()
                step = self._step(fact)
                step.requests += 1
                step.model = text(payload, "model")
                self._model = self._model or step.model
            case "model.delta":
                self._step_for_text(fact).said.append(_text_of(payload))
            case "reasoning.delta" | "reasoning.summary":
                self._step_for_text(fact).thought.append(_text_of(payload))
            case "tool.started" | "tool.args":
                self._add_call(fact)
            case "tool.result" | "tool.failed":
                self._add_result(fact)
            case "cost.recorded":
                self._add_cost(fact)
            case "turn.completed" | "turn.failed":
                self._close()
            case _:
                pass

    def _add_user_step(self, fact: Fact, message: str) -> None:
        self._close()
        entry: JsonObject = {"timestamp": fact.timestamp, "source": "user", "message": message}
        extra = {"sequence": fact.sequence, "turnId": fact.turn_id}
        self._steps.append({"step_id": len(self._steps) + 1, **entry, "extra": extra})

    def _step(self, fact: Fact) -> TrajectoryStep:
        if self._open is None:
            self._open = TrajectoryStep(fact)
        return self._open

    def _step_for_text(self, fact: Fact) -> TrajectoryStep:
        """Return the step that text belongs to.

        If requests are not recorded, text after the result of a tool starts a new step.
        """
        if self._open is not None and self._open.results and not self._open.requests:
            self._close()
        return self._step(fact)

    def _add_call(self, fact: Fact) -> None:
        calls = self._step(fact).calls
        name = fact.tool_call_id or "unknown"
        call = calls.setdefault(
            name,
            {"tool_call_id": name, "function_name": "unknown", "arguments": {}},
        )
        call["function_name"] = text(fact.payload, "tool") or call["function_name"]
        if "args" in fact.payload:
            call["arguments"] = _arguments(fact.payload["args"])

    def _add_result(self, fact: Fact) -> None:
        step, payload = self._step(fact), fact.payload
        is_error = fact.type == "tool.failed"
        content = payload.get("error") if is_error else payload.get("preview")
        extra: JsonObject = {"sequence": fact.sequence, "ok": not is_error}
        if fact.output_ref is not None:
            extra["outputRef"] = fact.output_ref
        known = {"source_call_id": fact.tool_call_id} if fact.tool_call_id in step.calls else {}
        step.results.append({**known, "content": _as_text(content), "extra": extra})

    def _add_cost(self, fact: Fact) -> None:
        """Add the cost of a request to the open step and to the totals."""
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
        """Return the trajectory; an open step becomes its last step.

        ATIF requires at least one step. So an empty trajectory has a single step of the system
        with the message "nothing happened".

        Args:
            extra: Additional data for `extra` of the root object.
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
    """Return whether a trajectory has each field that a benchmark requires, by the profile's names.

    A call without a result, such as an interrupted one, makes `steps[].observation` false. Without
    tool calls it is true.
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
    """Return an input as text: its text if it has nothing else, or its data as JSON."""
    data = part(given, "data")
    typed = data.get("text")
    return typed if isinstance(typed, str) and len(data) == 1 else _as_text(data)


def _text_of(payload: JsonObject) -> str:
    value = payload.get("text")
    return value if isinstance(value, str) else ""


def _as_text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _arguments(value: Json) -> JsonObject:
    """Return a tool's arguments as an object, as ATIF requires."""
    try:
        read = msgspec.json.decode(value) if isinstance(value, str) else value
    except msgspec.DecodeError:
        read = value
    return read if isinstance(read, dict) else {"value": read}


def _metrics(costs: dict[str, float]) -> JsonObject:
    """Return the metrics of a step; amounts in currencies other than USD are put into `extra`."""
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
