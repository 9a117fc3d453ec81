"""Facts of tools, processes and large outputs."""

from __future__ import annotations

from typing import Final

from arp.ledger.fact_family import FactFamily, FactType
from arp.ledger.payload_fields import (
    ARGS,
    BYTES,
    DONE,
    DURATION_MS,
    ERROR,
    MESSAGE,
    MIME,
    REASON,
    SHA256,
    TEXT,
    TOOL,
    TOOLS,
    TOTAL,
    Count,
    Finding,
    Ordinal,
    PayloadField,
    Stream,
    optional,
)
from arp.ledger.record_steps import (
    AddRecord,
    AddTo,
    ChangeRecord,
    Copy,
    CopyFactField,
    CustomRule,
    End,
    SetTime,
    copies,
)
from arp.protocol.json_value import JsonObject

CHARACTERS: Final = PayloadField("characters", Count, "Length of the whole text, in characters.")
COMMAND: Final = PayloadField(
    "command", list[str] | str, "A program with its arguments, or one line for a shell."
)
CWD: Final = PayloadField("cwd", str, "Working directory of a process.")
EXIT_CODE: Final = PayloadField("exitCode", int, "Exit code of a process.")
FILE: Final = PayloadField(
    "file", JsonObject, "A file that the agent saved: `id`, `name`, `size`, `mime`, `sha256`."
)
FINDINGS: Final = PayloadField(
    "findings", list[Finding], "Secrets that were removed: the rules and how often each matched."
)
KEPT_BYTES: Final = PayloadField("keptBytes", Count, "Bytes that are stored.")
PID: Final = PayloadField("pid", Ordinal, "Process id of the operating system.")
PREVIEW: Final = PayloadField("preview", str, "Beginning of the whole content.")
SIGNAL: Final = PayloadField("signal", str, "Signal that ended a process.")
STREAM: Final = PayloadField("stream", Stream, "Output stream of a process.")

_PROCESS_ENDED: Final = ChangeRecord(
    "processes", *copies(SIGNAL, REASON), End(), Copy(EXIT_CODE), SetTime("endedAt")
)

TOOL_FACTS: Final = FactFamily(
    "tool",
    "A use of a tool: its arguments, its progress, and its result or error.",
    required_ids=["thread_id", "turn_id", "step_id", "tool_call_id"],
    types=[
        FactType("tool.catalog.resolved", TOOLS, effects=[CustomRule("tools")]),
        FactType(
            "tool.started",
            TOOL,
            effects=[
                CustomRule("threads"),
                ChangeRecord("toolCalls", Copy(TOOL, keep_old="if_empty"), SetTime("startedAt")),
            ],
        ),
        FactType(
            "tool.args",
            TOOL,
            ARGS,
            effects=[ChangeRecord("toolCalls", Copy(TOOL, keep_old="if_empty"), Copy(ARGS))],
        ),
        FactType(
            "tool.progress",
            TEXT,
            *optional(DONE, TOTAL),
            effects=[
                ChangeRecord(
                    "toolCalls",
                    Copy(TOOL, keep_old="if_empty"),
                    Copy(TEXT, to="progress", or_else=(MESSAGE,), keep_old="if_empty"),
                )
            ],
        ),
        FactType(
            "tool.result",
            TOOL,
            *optional(PREVIEW, CHARACTERS, DURATION_MS),
            effects=[CustomRule("tools")],
        ),
        FactType(
            "tool.failed",
            TOOL,
            ERROR,
            DURATION_MS.optional(),
            effects=[CustomRule("tools"), AddRecord("incidents")],
        ),
    ],
)

PROCESS_FACTS: Final = FactFamily(
    "process",
    "A process that an agent runs: its input, its output, and its end.",
    types=[
        FactType(
            "process.started",
            COMMAND,
            *optional(CWD, PID),
            written_ids=["process_id"],
            effects=[
                ChangeRecord(
                    "processes",
                    Copy(CWD),
                    Copy(COMMAND, read="json"),
                    Copy(PID),
                    SetTime("startedAt"),
                )
            ],
        ),
        FactType(
            "process.output",
            STREAM,
            PREVIEW,
            BYTES,
            written_ids=["process_id"],
            effects=[
                ChangeRecord(
                    "processes",
                    AddTo("outputBytes", BYTES),
                    CopyFactField("output_ref", keep_old="if_empty"),
                )
            ],
        ),
        FactType(
            "process.input",
            BYTES,
            PREVIEW.optional(),
            written_ids=["process_id"],
            effects=[ChangeRecord("processes", AddTo("inputBytes", BYTES))],
        ),
        FactType(
            "process.completed",
            EXIT_CODE,
            DURATION_MS.optional(),
            written_ids=["process_id"],
            effects=[_PROCESS_ENDED],
        ),
        FactType(
            "process.failed",
            REASON,
            *optional(EXIT_CODE, DURATION_MS),
            written_ids=["process_id"],
            effects=[_PROCESS_ENDED, AddRecord("incidents")],
        ),
        FactType(
            "process.terminated",
            SIGNAL,
            *optional(REASON, DURATION_MS),
            written_ids=["process_id"],
            effects=[_PROCESS_ENDED, AddRecord("diagnostics")],
        ),
    ],
)

OUTPUT_FACTS: Final = FactFamily(
    "output",
    (
        "A large output or a file is stored, cut off or deleted; secrets were removed from "
        "the previous fact."
    ),
    types=[
        FactType(
            "output.spilled",
            BYTES,
            SHA256,
            *optional(PREVIEW, MIME, FILE),
            written_ids=["output_ref"],
            effects=[CustomRule("tools")],
        ),
        FactType(
            "output.truncated",
            BYTES,
            KEPT_BYTES,
            REASON,
            effects=[CustomRule("tools"), AddRecord("diagnostics")],
        ),
        FactType(
            "output.redacted", FINDINGS, effects=[CustomRule("tools"), AddRecord("diagnostics")]
        ),
        FactType(
            "output.expired",
            REASON,
            written_ids=["output_ref"],
            effects=[CustomRule("tools"), AddRecord("diagnostics")],
        ),
    ],
)

FAMILIES: Final = (TOOL_FACTS, PROCESS_FACTS, OUTPUT_FACTS)
