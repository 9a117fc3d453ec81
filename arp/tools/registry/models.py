"""The objects of the Tool Agent, with the JSON field names of its interface document.

msgspec decodes and encodes each Struct as JSON, with the fields in the order of the document. Every
field is written, even if it has its default. Times are UTC: `…Z` and `…+00:00` are accepted, `…Z`
is written.

Source: internal_api.md 1 to 4 and 8.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, field

from arp.protocol.json_value import Json, JsonObject
from arp.tools.errors import InvalidToolMeta

TOOL_ID: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9_])?")
"""Pattern of a tool's id, which is part of URLs, file names and container names."""

Port: TypeAlias = Annotated[int, Meta(ge=0, le=65535)]
"""Port; 0 means none."""


class RuntimeType(StrEnum):
    """Kind of runtime of a tool."""

    LOCAL = "local"
    """A process of this machine, in a uv or venv project."""
    DOCKER = "docker"
    """A container."""
    API = "api"
    """A service on another server, called over HTTP."""
    BROWSER = "browser"
    """A web page that is driven in a browser."""


class SchedulingMode(StrEnum):
    """Rule for starting and ending a tool."""

    COLD = "cold"
    """Started by a call, put to sleep after `idle_timeout_s` without calls."""
    HOT = "hot"
    """Keeps running; above `hot_tool_max_containers` the least recently used one is put to
    sleep."""
    STATELESS = "stateless"
    """Started for each call and ended after it."""


class ToolState(StrEnum):
    """The running state of a tool; `states` has the table."""

    RUNNING = "running"
    SLEEPING = "sleeping"
    """Put to sleep by the scheduler; the next call wakes it."""
    STOPPED = "stopped"
    """Not started yet, or ended; the next call starts it."""
    DEGRADED = "degraded"
    """It failed a health check or ended by itself."""


class ToolStatus(StrEnum):
    """The life cycle status of a tool; `states` has the table."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    """Disabled by a person; only a person enables it again."""
    STAGING = "staging"
    """Cannot be called until a task has registered it, for the first time or after a change."""
    BUILDING = "building"
    """A task is registering it: the tool is started and checked."""


class MessageType(StrEnum):
    """Types of messages between router and coding agent; `build.messages` has the payloads."""

    TOOL_REQUEST = "tool_request"
    TOOL_READY = "tool_ready"
    TOOL_ERROR = "tool_error"
    HEALTH_ALERT = "health_alert"


class ContainerStatus(StrEnum):
    """Existence of a container."""

    RUNNING = "running"
    DESTROYED = "destroyed"


class ResourceLimits(msgspec.Struct, frozen=True):
    """Resource limits of a tool."""

    cpu: str = "1.0"
    """Number of cores, as a decimal number."""
    memory_mb: Annotated[int, Meta(ge=1)] = 512
    gpu: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d{1,4}(\.\d{1,3})?", self.cpu) or float(self.cpu) <= 0:
            raise ValueError(f"cpu is {self.cpu!r:.40}; it is a number of cores, such as '1.5'")

    @property
    def cores(self) -> float:
        """`cpu` as a number."""
        return float(self.cpu)


class RuntimeInfo(msgspec.Struct, frozen=True):
    """Location and invocation of a tool.

    A local tool with a `host_port` other than 0 is called over HTTP, on the port that its entry
    point listens on. Otherwise its entry point is started as a process that reads one JSON object
    from standard input and writes one to standard output.
    """

    type: RuntimeType = RuntimeType.LOCAL
    entry: str = ""
    """Start of the tool. local: command that starts it in `host_dir`, such as `python main.py`.
    docker: the same in the container; empty for the image's own command. api: URL before
    `endpoint_path`. browser: URL of the first page."""
    container_id: str = ""
    host_dir: str = ""
    """Directory of its files on this machine."""
    container_dir: str = "/app"
    """Directory of its files in the container."""
    host_port: Port = 0
    """Port of this machine on which it is called."""
    internal_port: Port = 0
    """Port that it listens on, in its container or as a process (as `PORT` in its environment)."""
    endpoint_path: str = "/"
    http_method: str = "POST"
    env: dict[str, str] = field(default_factory=dict)
    """Further environment variables, without those that change how programs are loaded."""
    resource_limits: ResourceLimits = field(default_factory=ResourceLimits)


class ToolScheduling(msgspec.Struct, frozen=True):
    """Scheduling rule of a tool, and its running state."""

    mode: SchedulingMode = SchedulingMode.COLD
    idle_timeout_s: Annotated[int, Meta(ge=0)] = 300
    """Idle time before sleep in seconds; 0 means the setting `cold_tool_idle_timeout_s`, as for
    every built tool."""
    state: ToolState = ToolState.STOPPED


class ToolStats(msgspec.Struct, frozen=True):
    """Statistics of the calls of a tool."""

    last_used_time: datetime | None = None
    call_count: Annotated[int, Meta(ge=0)] = 0
    avg_latency_ms: float = 0.0
    """Average over all calls, including failed ones."""
    error_rate: float = 0.0
    """Share of failed calls, 0 to 1."""

    def after(self, at: datetime, latency_ms: float, failed: bool) -> ToolStats:
        """Return the statistics after one more call."""
        count = self.call_count + 1
        return ToolStats(
            last_used_time=at,
            call_count=count,
            avg_latency_ms=self.avg_latency_ms + (latency_ms - self.avg_latency_ms) / count,
            error_rate=self.error_rate + (float(failed) - self.error_rate) / count,
        )


def _any_object() -> JsonObject:
    return {"type": "object"}


class ToolMeta(msgspec.Struct, frozen=True):
    """Tool: its function, its parameters and its location."""

    tool_id: str
    name: str
    category: str = "general"
    description: str = ""
    input_schema: JsonObject = field(default_factory=_any_object)
    output_schema: JsonObject = field(default_factory=dict)
    """JSON Schema of the result; empty means any JSON value."""
    stream_support: bool = False
    """Whether the result can be sent in pieces. An api tool is asked for pieces only if this is
    set; a local or docker tool is always asked, and may answer without."""
    runtime: RuntimeInfo = field(default_factory=RuntimeInfo)
    scheduling: ToolScheduling = field(default_factory=ToolScheduling)
    stats: ToolStats = field(default_factory=ToolStats)
    fallback_strategy: list[str] = field(default_factory=list)
    """Steps after a failed call, in order: `retry`, `restart`, or the id of another tool with the
    same parameters."""
    status: ToolStatus = ToolStatus.STAGING

    def __post_init__(self) -> None:
        check_tool_id(self.tool_id)


class ContainerInfo(msgspec.Struct, frozen=True):
    """Container that we created."""

    container_id: str
    tool_id: str = ""
    image: str = ""
    port_mapping: dict[str, int] = field(default_factory=dict)
    """Published ports: port in the container → port of this machine."""
    volumes: dict[str, str] = field(default_factory=dict)
    """Mounts: directory of this machine → directory in the container."""
    mem_limit: str = "1g"
    nano_cpus: int = 1_000_000_000
    use_gpu: bool = False
    gpu_count: int = -1
    """Number of GPUs; -1 means all."""
    status: ContainerStatus = ContainerStatus.RUNNING
    created_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    last_accessed: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    destroyed_at: datetime | None = None


class AgentBusMessage(msgspec.Struct, frozen=True):
    """Message between router and coding agent in its JSON form, such as the body of a callback."""

    type: MessageType
    payload: JsonObject = field(default_factory=dict)


class SystemInfo(msgspec.Struct, frozen=True):
    """Resources of the machine, and how much of them is in use."""

    cpu_count: int
    cpu_percent: float
    memory_total_mb: int
    memory_available_mb: int
    memory_percent: float
    disk_total_gb: float
    disk_free_gb: float


class ResourceUsage(msgspec.Struct, frozen=True):
    """Resources allocated to one tool."""

    cpu_cores: float = 0.0
    memory_mb: float = 0.0
    gpu_memory_mb: float = 0.0


def check_tool_id(tool_id: str) -> str:
    """Return a tool's id if it is valid.

    Raises:
        InvalidToolMeta: It is invalid.
    """
    if not TOOL_ID.fullmatch(tool_id) or ".." in tool_id:
        raise InvalidToolMeta(
            f"tool_id {tool_id!r:.80} cannot be used; an id has 1 to 128 letters, digits, "
            "'_', '-' and '.', and neither begins nor ends with one of the last two"
        )
    return tool_id


def runtime_type_of(word: str) -> RuntimeType:
    """Return the runtime that a task names; `uv` and `venv` mean `local`.

    Raises:
        InvalidToolMeta: There is no such runtime.
    """
    if word in ("uv", "venv"):
        return RuntimeType.LOCAL
    try:
        return RuntimeType(word)
    except ValueError:
        raise InvalidToolMeta(
            f"runtime {word!r:.40} is not known; use local (or uv), docker, api or browser"
        ) from None


def tool_from_json(value: bytes | str | Mapping[str, Json]) -> ToolMeta:
    """Return a tool from JSON, as text or decoded.

    Raises:
        InvalidToolMeta: The JSON does not fit; the message names the path.
    """
    try:
        if isinstance(value, bytes | str):
            return msgspec.json.decode(value, type=ToolMeta)
        return msgspec.convert(value, ToolMeta)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidToolMeta(f"the description of a tool is wrong: {error}"[:500]) from error


def utc(at: datetime) -> datetime:
    """Return a time as UTC; a time without a zone counts as UTC."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
