"""The objects have the field names of the document, and each of its JSON texts round-trips."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from arp.tools.errors import InvalidToolMeta
from arp.tools.registry.models import (
    AgentBusMessage,
    ContainerInfo,
    ContainerStatus,
    MessageType,
    ResourceLimits,
    ResourceUsage,
    RuntimeInfo,
    RuntimeType,
    SchedulingMode,
    SystemInfo,
    ToolMeta,
    ToolState,
    ToolStats,
    ToolStatus,
    check_tool_id,
    runtime_type_of,
    tool_from_json,
)
from arp.tools.registry.registry import RegistryDocument
from arp.tools.run.containers import ContainersDocument

TOOL: dict[str, Any] = {
    "tool_id": "image_compress_api",
    "name": "图片压缩 API",
    "category": "cv",
    "description": "基于 PIL 的图片压缩服务",
    "input_schema": {
        "type": "object",
        "properties": {
            "image_path": {"type": "string"},
            "quality": {"type": "integer", "minimum": 1, "maximum": 100},
        },
        "required": ["image_path"],
    },
    "output_schema": {
        "type": "object",
        "properties": {
            "compressed_size": {"type": "integer"},
            "compression_ratio": {"type": "number"},
        },
    },
    "stream_support": False,
    "runtime": {
        "type": "docker",
        "entry": "",
        "container_id": "25e884ca6cec...",
        "host_dir": "C:/Users/user/staging/image_tool",
        "container_dir": "/app",
        "host_port": 9001,
        "internal_port": 8080,
        "endpoint_path": "/api/compress",
        "http_method": "POST",
        "env": {},
        "resource_limits": {"cpu": "1.0", "memory_mb": 512, "gpu": False},
    },
    "scheduling": {"mode": "hot", "idle_timeout_s": 300, "state": "running"},
    "stats": {
        "last_used_time": "2026-03-20T10:30:00Z",
        "call_count": 42,
        "avg_latency_ms": 125.5,
        "error_rate": 0.02,
    },
    "fallback_strategy": [],
    "status": "active",
}

CONTAINER: dict[str, Any] = {
    "container_id": "25e884ca6cecfa87e19ea737315a8773d...",
    "tool_id": "test_git_tool",
    "image": "ubuntu:22.04",
    "port_mapping": {"8080": 9001, "3306": 9002},
    "volumes": {"C:/staging/project": "/app"},
    "mem_limit": "1g",
    "nano_cpus": 1000000000,
    "use_gpu": False,
    "gpu_count": -1,
    "status": "running",
    "created_at": "2026-03-20T07:31:50.421101Z",
    "last_accessed": "2026-03-20T07:33:16.214642+00:00",
    "destroyed_at": None,
}

SYSTEM = {
    "cpu_count": 16,
    "cpu_percent": 11.1,
    "memory_total_mb": 15653,
    "memory_available_mb": 2606,
    "memory_percent": 83.4,
    "disk_total_gb": 924.3,
    "disk_free_gb": 327.3,
}
USAGE = {"cpu_cores": 1.0, "memory_mb": 512.0, "gpu_memory_mb": 0.0}
ALERT = {
    "type": "health_alert",
    "payload": {
        "tool_id": "image_compress_api",
        "container_id": "abc123...",
        "error": "HTTP 503",
        "last_healthy": "2026-03-20T10:00:00Z",
    },
}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (TOOL, ToolMeta),
        ({"tools": [TOOL], "version": "1.0"}, RegistryDocument),
        (TOOL["runtime"], RuntimeInfo),
        (SYSTEM, SystemInfo),
        (USAGE, ResourceUsage),
        (ALERT, AgentBusMessage),
    ],
    ids=["tool", "registry", "runtime", "system", "usage", "message"],
)
def test_json_of_the_document_round_trips_unchanged(value: Any, kind: type[Any]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    again = msgspec.json.encode(msgspec.json.decode(text, type=kind)).decode()
    assert again == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_a_container_round_trips_with_one_form_of_time() -> None:
    """Both forms are read, and `…Z` is written."""
    text = json.dumps({"containers": [CONTAINER]})
    again = json.loads(msgspec.json.encode(msgspec.json.decode(text, type=ContainersDocument)))
    written = {**CONTAINER, "last_accessed": "2026-03-20T07:33:16.214642Z"}
    assert again == {"containers": [written]}
    assert list(again["containers"][0]) == list(CONTAINER)


@pytest.mark.parametrize("text", ["2026-03-20T07:33:16Z", "2026-03-20T07:33:16.000000+00:00"])
def test_both_forms_of_time_are_the_same_time(text: str) -> None:
    read = msgspec.convert({**CONTAINER, "created_at": text}, ContainerInfo)
    assert read.created_at == datetime(2026, 3, 20, 7, 33, 16, tzinfo=UTC)


def test_enumerations_have_the_words_of_the_document() -> None:
    """Section 1.1."""
    assert [*RuntimeType] == ["local", "docker", "api", "browser"]
    assert [*SchedulingMode] == ["cold", "hot", "stateless"]
    assert [*ToolState] == ["running", "sleeping", "stopped", "degraded"]
    assert [*ToolStatus] == ["active", "inactive", "staging", "building"]
    assert [*MessageType] == ["tool_request", "tool_ready", "tool_error", "health_alert"]
    assert [*ContainerStatus] == ["running", "destroyed"]


def test_runtime_info_has_the_defaults_of_the_document() -> None:
    """Section 1.3."""
    assert msgspec.to_builtins(msgspec.convert({}, RuntimeInfo)) == {
        "type": "local",
        "entry": "",
        "container_id": "",
        "host_dir": "",
        "container_dir": "/app",
        "host_port": 0,
        "internal_port": 0,
        "endpoint_path": "/",
        "http_method": "POST",
        "env": {},
        "resource_limits": {"cpu": "1.0", "memory_mb": 512, "gpu": False},
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": "gone"}, r"\$\.status"),
        ({"runtime": {"type": "vm"}}, r"\$\.runtime\.type"),
        ({"runtime": {"host_port": 70000}}, r"\$\.runtime\.host_port"),
        ({"runtime": {"resource_limits": {"cpu": "many"}}}, "many"),
        ({"runtime": {"resource_limits": {"memory_mb": 0}}}, "memory_mb"),
        ({"tool_id": "../../etc/passwd"}, "tool_id"),
        ({"name": None}, r"\$\.name"),
    ],
)
def test_what_is_wrong_in_a_tool_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidToolMeta, match=message):
        tool_from_json({**TOOL, **change})


@pytest.mark.parametrize("text", [b"", b"[]", b"\xff", b'{"tool_id": "x"}', b"[" * 100_000])
def test_what_is_no_tool_is_an_error_not_a_crash(text: bytes) -> None:
    with pytest.raises(InvalidToolMeta):
        tool_from_json(text)


@pytest.mark.parametrize(
    "tool_id",
    ["", ".", "..", "a/b", "a b", "-x", "x.", "a..b", "é", "x" * 129, "a\n", "$(id)", "a;b", "%2e"],
)
def test_ids_that_could_be_something_else_are_refused(tool_id: str) -> None:
    with pytest.raises(InvalidToolMeta):
        check_tool_id(tool_id)


@pytest.mark.parametrize("tool_id", ["a", "image_compress_api", "x-1.2", "_x", "x" * 128])
def test_plain_ids_are_taken(tool_id: str) -> None:
    assert check_tool_id(tool_id) == tool_id


def test_uv_of_a_task_means_local() -> None:
    assert runtime_type_of("uv") is runtime_type_of("local") is RuntimeType.LOCAL
    with pytest.raises(InvalidToolMeta, match="use local"):
        runtime_type_of("vm")


def test_cores_are_a_number() -> None:
    assert ResourceLimits(cpu="1.5").cores == 1.5


def test_statistics_are_means_over_all_calls() -> None:
    at = datetime(2026, 3, 20, tzinfo=UTC)
    stats = ToolStats().after(at, 100, failed=False).after(at, 200, failed=True)
    stats = stats.after(at, 300, failed=False).after(at, 400, failed=False)
    assert stats == ToolStats(at, 4, 250.0, 0.25)
