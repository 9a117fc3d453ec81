"""`AgentsStream`: applies the stream of an OpenAI Agents run to a turn: text, calls, usage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents import Agent, RunContextWrapper, RunHooks, RunResultStreaming, StreamEvent

from arp.protocol.json_value import JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.cut_off import CUT_OFF_WORDS, CutOffReason, cut_off_of, mark_of
from arp.runtime.contract.task_runtime import TaskTurn
from arp.runtime.frameworks.agents_finish import AnswerEnd
from arp.values.display import arguments_of, component_of, display_of, text_of

FAILED = "An error occurred while running the tool"
"""Beginning of the result that the SDK sends to a model if a tool raised. Nothing else shows the
failure."""
HOSTED = frozenset(
    f"{name}_call"
    for name in ("web_search", "file_search", "code_interpreter", "image_generation", "mcp")
)
"""Types of the calls that the model's provider carries out; these calls have no result."""


class RunRequests(RunHooks[Any]):
    """Reports the requests of a turn to models; a run makes one request after the other."""

    def __init__(self, turn: TaskTurn) -> None:
        self._turn = turn
        self._begun = 0
        self._ended = 0

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[Any],
    ) -> None:
        """Report the start of a request."""
        self._begun += 1
        tools = [tool.name for tool in await agent.get_all_tools(context)]
        model = agent.model
        self._turn.begin_request(
            str(self._begun),
            str(model if isinstance(model, str) else getattr(model, "model", "") or ""),
            parameters=agent.model_settings.to_json_dict(),
            tools=tools,
            messages=lambda: [{"role": "system", "content": system_prompt or ""}, *input_items],
        )

    def ended(self) -> str:
        """Mark the oldest open request as ended, and return its id."""
        self._ended += 1
        return str(self._ended)


class AgentsStream:
    """Applies the stream of a run to a turn."""

    def __init__(self, turn: TaskTurn, agent: Agent[Any]) -> None:
        self.turn = turn
        self.agent = agent
        """The agent that speaks."""
        self.requests = RunRequests(turn)
        self.end = AnswerEnd()
        self.part: list[str] = []
        """Text of the newest answer."""
        self.cut: CutOffReason | None = None
        """Reason why the newest answer is incomplete."""
        self._is_kept = True
        """Whether the SDK keeps the newest answer for later requests; it drops incomplete ones."""

    def marked(self) -> Sequence[JsonObject]:
        """Return a message that marks an incomplete answer for the model, or an empty sequence."""
        if self.cut is None:
            return ()
        mark = mark_of(CUT_OFF_WORDS[self.cut])
        text = mark if self._is_kept else "".join(self.part) + f"\n\n{mark}"
        return ({"role": "assistant", "content": text},)

    def receive(self, event: StreamEvent) -> None:
        """Apply one event."""
        match event.type:
            case "raw_response_event":
                self._raw(event.data)
            case "agent_updated_stream_event":
                if event.new_agent is not self.agent:
                    self.agent = event.new_agent
                    self.turn.tell(ari.Lifecycle.SPEAKER, self.agent.name)
            case "run_item_stream_event" if event.name == "tool_called":
                self._called(event.item)
            case "run_item_stream_event" if event.name == "tool_output":
                item = event.item
                made = component_of(item.output)
                result = "shown" if made is not None else text_of(item.output)
                failed = result.startswith(FAILED)
                self.turn.end_call(item.call_id or "", result, failed=failed, shown=made)

    def _called(self, item: Any) -> None:
        """Emit a call; a call that the model's provider carries out ends at once."""
        kind, call_id = _raw_field(item, "type"), item.call_id or ""
        name = item.tool_name or str(kind or "tool").removesuffix("_call")
        self.turn.start_call(call_id, name, input_of(item))
        if kind in HOSTED:
            error = _raw_field(item, "error")
            failed = bool(error) or _raw_field(item, "status") in ("failed", "incomplete")
            output = text_of(error or _raw_field(item, "output") or "")
            self.turn.end_call(call_id, output, failed=failed, no_output=True)

    def _raw(self, data: Any) -> None:
        if data.type == "response.output_text.delta":
            self.part.append(data.delta)
            if self.agent.output_type in (None, str):  # any other output is JSON, shown at the end
                self.turn.say(data.delta)
        elif data.type.endswith(("reasoning_summary_text.delta", "reasoning_text.delta")):
            self.turn.think(data.delta)
        elif data.type == "response.created":
            self.part, self.cut, self._is_kept = [], None, True
        elif data.type == "response.completed":
            self._completed(data.response)
        elif data.type == "response.incomplete":
            self._use(data.response)
            details = data.response.incomplete_details
            self.cut = cut_off_of(getattr(details, "reason", None)) or CutOffReason.UNFINISHED
            self._is_kept = False
            if self.part:
                self.turn.mark_cut_off(self.cut)

    def _completed(self, response: Any) -> None:
        self._use(response)
        kinds = {one.type for one in response.output}
        self.cut = None if "function_call" in kinds else self.end.cut_off()
        is_empty = not "".join(self.part).strip() and kinds <= {"message", "reasoning"}
        if is_empty and self.cut in (None, CutOffReason.UNFINISHED):
            self.cut = CutOffReason.EMPTY
        refused = any(
            part.type == "refusal"
            for one in response.output
            if one.type == "message"
            for part in one.content
        )
        if self.cut is not None and not refused:  # a refusal is the error of the turn
            self.turn.mark_cut_off(self.cut)

    def _use(self, response: Any) -> None:
        used, request_id = response.usage, self.requests.ended()
        if used is None:
            self.turn.use(None, None, request_id=request_id)
        else:
            # A number is 0 if the provider reports none, as is common with chat completions.
            self.turn.use(
                used.input_tokens or None,
                used.output_tokens or None,
                used.input_tokens_details.cached_tokens or None,
                used.output_tokens_details.reasoning_tokens or None,
                str(response.model),
                request_id=request_id,
            )

    def show_output(self, result: RunResultStreaming) -> None:
        """Show the output of a run, unless it is text."""
        made = display_of(result.final_output)
        if made is not None:
            self.turn.show(made)


def _raw_field(item: Any, name: str) -> Any:
    """Return a field of the provider's item inside an item of the SDK; `None` if it is missing."""
    raw = item.raw_item
    return raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)


def input_of(item: Any) -> JsonObject:
    """Return the arguments of a call as an object."""
    return arguments_of(
        getattr(item, "arguments", None) or getattr(item.raw_item, "arguments", None) or ""
    )
