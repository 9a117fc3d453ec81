"""Local tools for tests: what is in their files, and services that run them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from arp.tools.clock import SYSTEM_CLOCK, Clock
from arp.tools.registry.models import (
    ResourceLimits,
    RuntimeInfo,
    SchedulingMode,
    ToolMeta,
    ToolScheduling,
    ToolStatus,
)
from arp.tools.service import ToolService
from arp.tools.settings import LiveSettings, ToolSettings

SERVER = """
import http.server, json, os, socketserver, sys, time

class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        params = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "stream" in params:
            return self.stream(params["stream"])
        if "fail" in params:
            return self.send_error(params["fail"])
        if "die" in params:
            os._exit(params["die"])
        if "wait" in params:
            time.sleep(params["wait"])
        self.give({"name": sys.argv[1:], "double": params.get("n", 0) * 2, "pid": os.getpid()})

    def do_GET(self):
        self.give({"ok": True} if self.path == "/health" else {"path": self.path})

    def give(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, pieces):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for piece in pieces:
            event = json.dumps({"chunk": piece, "done": False})
            self.wfile.write(b"data: %b\\n\\n" % event.encode())
        self.wfile.write(b'data: {"chunk": "", "done": true, "result": {"pieces": 2}}\\n\\n')

    def log_message(self, *words):
        pass

class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def server_bind(self):  # that of HTTPServer asks for the name of the host
        socketserver.TCPServer.server_bind(self)

Server(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""
"""A server in the standard library: it doubles `n`, and fails, dies, waits or streams if asked."""

ONCE = """
import json, sys
params = json.load(sys.stdin)
for piece in params.get("stream", []):
    print(json.dumps({"chunk": piece, "done": False}), flush=True)
if "fail" in params:
    sys.exit("it cannot do that")
print(json.dumps({"double": params.get("n", 0) * 2}))
"""
"""The same as a process for each call."""


def settings_in(folder: Path, **settings: Any) -> LiveSettings:
    """Return settings with a data directory below `folder`; each worker has its own ports."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    settings.setdefault("docker_port_start", 21_000 + 2_000 * worker)
    return LiveSettings(ToolSettings(data_dir=folder / "data", **settings))


@asynccontextmanager
async def serving(
    settings: LiveSettings, clock: Clock = SYSTEM_CLOCK
) -> AsyncIterator[ToolService]:
    """A service with a project `demo` that has `server.py` and `once.py`."""
    service = ToolService(settings, clock=clock)
    if not any(project.name == "demo" for project in service.projects.projects()):
        await service.projects.create("demo")
    service.projects.write_file("demo/server.py", SERVER)
    service.projects.write_file("demo/once.py", ONCE)
    async with service:
        yield service


def local(
    service: ToolService,
    tool_id: str = "double",
    entry: str = "python -S server.py",
    mode: SchedulingMode = SchedulingMode.COLD,
    **changes: Any,
) -> ToolMeta:
    """A local tool of the project `demo`; a server if its entry says so."""
    host_dir = str(service.projects.root / "demo")
    port = 8000 if "server" in entry else 0
    runtime = RuntimeInfo(
        entry=entry,
        host_dir=host_dir,
        internal_port=port,
        # Small, so that twenty of them have room on any machine.
        resource_limits=ResourceLimits(cpu="0.05", memory_mb=256),
        env=changes.pop("env", {}),
    )
    idle_s = changes.pop("idle_timeout_s", 300)
    scheduling = ToolScheduling(mode=mode, idle_timeout_s=idle_s)
    return ToolMeta(tool_id, tool_id.title(), runtime=runtime, scheduling=scheduling, **changes)


def active(service: ToolService, tool: ToolMeta) -> ToolMeta:
    """Register a tool as active without starting it."""
    import msgspec

    return service.registry.add(msgspec.structs.replace(tool, status=ToolStatus.ACTIVE))


def processes_of(folder: Path) -> list[psutil.Process]:
    """Return the processes of tools below a directory: those that work there."""
    found = []
    for process in psutil.process_iter(["cwd", "cmdline"]):
        words: Sequence[str] = process.info["cmdline"] or ()
        is_there = str(process.info["cwd"] or "").startswith(str(folder))
        if process.pid != os.getpid() and (is_there or any(str(folder) in one for one in words)):
            found.append(process)
    return found
