"""The errors of the Tool Agent: one class per code, each with its HTTP status.

ToolAgentError(code, http_status, retryable)
├── UnknownTool        404  no tool, task or container of this id
├── InvalidToolCall    422  parameters do not fit the tool's JSON Schema; names the path
├── InvalidToolMeta    400  the description of a tool or container is wrong; names the field
├── ToolConflict       409  the tool's status or state does not permit it, or the id is taken
├── ToolRefused        403  a rule forbids a path, an address, a volume or another input
├── ToolCallFailed     502  the tool did not start, or answered with an error or unreadable data
├── ToolTimeout        504  the call took too long and was ended
├── RuntimeMissing     503  Docker, Chromium, uv or an extra is missing on this machine
├── CapacityExceeded   503  no CPU, memory, port or slot for a hot tool is free
├── BudgetRefused      402  the amount is above a limit, or a person declined the payment
├── ApprovalNeeded     402  a person must approve the amount first
└── DataFileDamaged    500  a data file cannot be read, or is missing; see the message
"""

from __future__ import annotations

from typing import ClassVar

from arp.protocol.safe_text import well_formed


class ToolAgentError(Exception):
    """Any refusal or failure of the Tool Agent."""

    code: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = well_formed(message)
        """Problem, its location and its remedy; safe to show to a caller."""


class UnknownTool(ToolAgentError):
    """There is no tool, task or container of this id."""

    code, http_status = "not_found", 404


class InvalidToolCall(ToolAgentError):
    """Parameters do not fit the tool's JSON Schema; the message names the path."""

    code, http_status = "invalid_params", 422


class InvalidToolMeta(ToolAgentError):
    """The description of a tool, a container or a task is wrong; the message names the field."""

    code, http_status = "invalid", 400


class ToolConflict(ToolAgentError):
    """The status or state of a tool or task does not permit the operation, or the id is taken."""

    code, http_status = "conflict", 409


class ToolRefused(ToolAgentError):
    """A rule forbids a path, an address, a volume, an environment variable or another input."""

    code, http_status = "refused", 403


class ToolCallFailed(ToolAgentError):
    """The tool did not start, or answered with an error or with unreadable data."""

    code, http_status = "tool_failed", 502
    retryable = True


class ToolTimeout(ToolAgentError):
    """The call took too long and was ended."""

    code, http_status = "timeout", 504
    retryable = True


class RuntimeMissing(ToolAgentError):
    """A requirement of a runtime is missing on this machine; the message says how to install it."""

    code, http_status = "runtime_missing", 503


class CapacityExceeded(ToolAgentError):
    """No CPU, memory, port or slot for a hot tool is free."""

    code, http_status = "no_capacity", 503
    retryable = True


class BudgetRefused(ToolAgentError):
    """The amount is above a limit, or a person declined the payment."""

    code, http_status = "budget", 402


class ApprovalNeeded(ToolAgentError):
    """A person must approve the amount first."""

    code, http_status = "approval_needed", 402


class DataFileDamaged(ToolAgentError):
    """A data file cannot be read, or is missing; the message says what to do."""

    code = "damaged"


def extra_missing(module: str) -> RuntimeMissing:
    """Return the error for a missing library that the extra `tools` would install."""
    return RuntimeMissing(
        f"{module} is not installed; run: pip install 'agent-rendering-protocol[tools]'"
    )
