"""The objects of the Tool Agent, with the JSON field names of its interface document.

Each Struct is read from JSON and written as JSON by msgspec, in the order of the document. Every
field is written, also where it has its default. Times are UTC: both `…Z` and `…+00:00` are read,
`…Z` is written.

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
"""A tool's id is part of addresses, files and containers, so it has no other character."""

Port: TypeAlias = Annotated[int, Meta(ge=0, le=65535)]
"""0: none."""


class RuntimeType(StrEnum):
    """Where a tool runs."""

    LOCAL = "local"
    """A process of this machine, in a uv or venv project."""
    DOCKER = "docker"
    """A container."""
    API = "api"
    """A service that somebody else runs, called over HTTP."""
    BROWSER = "browser"
    """A page that is driven in a browser."""


class SchedulingMode(StrEnum):
    """When a tool is started and ended."""

    COLD = "cold"
    """Started by a call, put to sleep when it was idle for `idle_timeout_s`."""
    HOT = "hot"
    """Stays running; of more than `hot_tool_max_containers` the least recently used is put away."""
    STATELESS = "stateless"
    """Started for each call and ended after it."""


class ToolState(StrEnum):
    """The running state of a tool; `states` has the table."""

    RUNNING = "running"
    SLEEPING = "sleeping"
    """Put away by the scheduler; the next call wakes it."""
    STOPPED = "stopped"
    """Not started yet, or ended; the next call starts it."""
    DEGRADED = "degraded"
    """It failed a health check or ended by itself."""


class ToolStatus(StrEnum):
    """The life cycle status of a tool; `states` has the table."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    """A person disabled it; only a person enables it again."""
    STAGING = "staging"
    """Not called until a task has registered it, for the first time or after a change."""
    BUILDING = "building"
    """A task registers it: it is started and checked."""


class MessageType(StrEnum):
    """The messages between router and coding agent."""

    TOOL_REQUEST = "tool_request"
    TOOL_READY = "tool_ready"
    TOOL_ERROR = "tool_error"
    HEALTH_ALERT = "health_alert"


class ContainerStatus(StrEnum):
    """Whether a container exists."""

    RUNNING = "running"
    DESTROYED = "destroyed"


class ResourceLimits(msgspec.Struct, frozen=True):
    """What a tool may use at most."""

    cpu: str = "1.0"
    """Cores, as a decimal number."""
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
    """Where and how a tool runs.

    How a local tool is called: if `host_port` is not 0, over HTTP, on the port that its entry point
    listens on. Otherwise its entry point is started as a process that reads one JSON object from
    standard input and writes one to standard output.
    """

    type: RuntimeType = RuntimeType.LOCAL
    entry: str = ""
    """local: the command that starts it in `host_dir`, `python main.py`. docker: the same in the
    container; empty: what the image starts. api: the address before `endpoint_path`. browser: the
    address of the first page."""
    container_id: str = ""
    host_dir: str = ""
    """Where its files are on this machine."""
    container_dir: str = "/app"
    """Where they are in the container."""
    host_port: Port = 0
    """The port of this machine under which it is called."""
    internal_port: Port = 0
    """The port that it listens on, in its container or as a process (as `PORT` in its
    environment)."""
    endpoint_path: str = "/"
    http_method: str = "POST"
    env: dict[str, str] = field(default_factory=dict)
    """Further variables of its environment, without those that change how programs are loaded."""
    resource_limits: ResourceLimits = field(default_factory=ResourceLimits)


class ToolScheduling(msgspec.Struct, frozen=True):
    """When a tool is started and ended, and its running state."""

    mode: SchedulingMode = SchedulingMode.COLD
    idle_timeout_s: Annotated[int, Meta(ge=0)] = 300
    """0: that of the settings (`cold_tool_idle_timeout_s`), as of every tool that was built."""
    state: ToolState = ToolState.STOPPED


class ToolStats(msgspec.Struct, frozen=True):
    """Statistics of the calls of a tool."""

    last_used_time: datetime | None = None
    call_count: Annotated[int, Meta(ge=0)] = 0
    avg_latency_ms: float = 0.0
    """Over all calls, failed ones too."""
    error_rate: float = 0.0
    """Share of the calls that failed, 0 to 1."""

    def after(self, at: datetime, latency_ms: float, failed: bool) -> ToolStats:
        """Return the statistics with one more call in them."""
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
    """A tool: what it does, how it is called, where it runs."""

    tool_id: str
    name: str
    category: str = "general"
    description: str = ""
    input_schema: JsonObject = field(default_factory=_any_object)
    output_schema: JsonObject = field(default_factory=dict)
    """Empty: any JSON value."""
    stream_support: bool = False
    """Whether it sends its result in pieces. An api tool is asked for them only if it does; a local
    or docker tool is asked in any case, and may answer without."""
    runtime: RuntimeInfo = field(default_factory=RuntimeInfo)
    scheduling: ToolScheduling = field(default_factory=ToolScheduling)
    stats: ToolStats = field(default_factory=ToolStats)
    fallback_strategy: list[str] = field(default_factory=list)
    """What is tried, in this order, when a call fails: `retry`, `restart`, or the id of another
    tool that takes the same parameters."""
    status: ToolStatus = ToolStatus.STAGING

    def __post_init__(self) -> None:
        check_tool_id(self.tool_id)


class ContainerInfo(msgspec.Struct, frozen=True):
    """A container that we made."""

    container_id: str
    tool_id: str = ""
    image: str = ""
    port_mapping: dict[str, int] = field(default_factory=dict)
    """Port in the container → port of this machine."""
    volumes: dict[str, str] = field(default_factory=dict)
    """Directory of this machine → directory in the container."""
    mem_limit: str = "1g"
    nano_cpus: int = 1_000_000_000
    use_gpu: bool = False
    gpu_count: int = -1
    """-1: all of them."""
    status: ContainerStatus = ContainerStatus.RUNNING
    created_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    last_accessed: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    destroyed_at: datetime | None = None


class AgentBusMessage(msgspec.Struct, frozen=True):
    """What router and coding agent send each other; `bus` has what the payloads hold."""

    type: MessageType
    payload: JsonObject = field(default_factory=dict)


class SystemInfo(msgspec.Struct, frozen=True):
    """What the machine has, and how much of it is in use."""

    cpu_count: int
    cpu_percent: float
    memory_total_mb: int
    memory_available_mb: int
    memory_percent: float
    disk_total_gb: float
    disk_free_gb: float


class ResourceUsage(msgspec.Struct, frozen=True):
    """What one tool has been allocated."""

    cpu_cores: float = 0.0
    memory_mb: float = 0.0
    gpu_memory_mb: float = 0.0


def check_tool_id(tool_id: str) -> str:
    """Return a tool's id if it is valid.

    Raises:
        InvalidToolMeta: It cannot.
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
    """Return a tool from JSON, text or already decoded.

    Raises:
        InvalidToolMeta: It does not fit; the message names the path.
    """
    try:
        if isinstance(value, bytes | str):
            return msgspec.json.decode(value, type=ToolMeta)
        return msgspec.convert(value, ToolMeta)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidToolMeta(f"the description of a tool is wrong: {error}"[:500]) from error


def utc(at: datetime) -> datetime:
    """Return a time as UTC; one without a zone is UTC already."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
