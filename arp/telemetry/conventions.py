"""Names of attributes and metrics: those of OpenTelemetry, or `arp.…` if it defines none.

Source: OpenTelemetry semantic conventions for generative AI (development), and the general ones.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
REQUEST_MODEL: Final = "gen_ai.request.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"
TOOL: Final = "gen_ai.tool.name"
TOOL_CALL: Final = "gen_ai.tool.call.id"
ERROR: Final = "error.type"
EXECUTABLE: Final = "process.executable.name"
PID: Final = "process.pid"
EXIT_CODE: Final = "process.exit.code"

THREAD: Final = "arp.thread.id"
TURN: Final = "arp.turn.id"
TASK: Final = "arp.task.id"
RUN: Final = "arp.run.id"
STATUS: Final = "arp.turn.status"
SEQUENCE: Final = "arp.sequence"
"""Sequence number of the first fact of a span: its place in the ledger."""
QUEUE_WAIT: Final = "arp.queue_wait_s"
FIRST_TEXT: Final = "arp.time_to_first_text_s"
CURRENCY: Final = "arp.currency"
DECISION: Final = "arp.decision"
KIND: Final = "arp.export.kind"
STATE: Final = "arp.export.state"
EVIDENCE: Final = "arp.evidence.id"

UNKNOWN: Final = "unknown"

_SECONDS: Final = tuple(0.01 * 2**power for power in range(14))
"""Bucket boundaries that the conventions advise for durations of operations."""

_WAITS: Final = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400)
"""Bucket boundaries for waits, because people answer within seconds or hours."""

_TOKENS: Final = tuple(4**power for power in range(14))


class Metric(Struct, frozen=True):
    """Definition of a metric."""

    unit: str
    description: str
    boundaries: tuple[float, ...] = ()
    """Bucket boundaries of a histogram; empty for a counter."""


METRICS: Final[dict[str, Metric]] = {
    "gen_ai.invoke_agent.duration": Metric("s", "A turn, from start to end.", _SECONDS),
    "gen_ai.client.operation.duration": Metric("s", "A request to a model.", _SECONDS),
    "gen_ai.client.operation.time_to_first_chunk": Metric(
        "s", "From a request to a model to the first text.", _SECONDS
    ),
    "gen_ai.client.token.usage": Metric("{token}", "Tokens read and written.", _TOKENS),
    "gen_ai.execute_tool.duration": Metric("s", "A tool call.", _SECONDS),
    "arp.turn.queue_wait": Metric("s", "From the submission of a turn to its start.", _WAITS),
    "arp.turn.time_to_first_text": Metric("s", "From a turn's start to its first text.", _SECONDS),
    "arp.permission.wait": Metric("s", "From asking for permission to the decision.", _WAITS),
    "arp.question.wait": Metric("s", "From a question to its answer.", _WAITS),
    "arp.process.duration": Metric("s", "A process, from start to end.", _SECONDS),
    "arp.cost": Metric("1", "Money spent, in arp.currency."),
    "arp.exports": Metric("{export}", "Evidence, replays and reviews that were exported."),
}
"""Every metric by name."""
