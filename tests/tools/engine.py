"""A real container engine for tests, Docker's or Podman's, in a network namespace of its own.

No rule of the machine's firewall is touched, and containers reach nothing outside. What is
published is published in that namespace, so the thread of a test goes there (`in_its_network`); the
engine is spoken to over a Unix socket, which has no network.
"""

from __future__ import annotations

import ctypes
import io
import os
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CLONE_NEWNET = 0x40000000
START_S = 60.0
DOCKER = (
    "exec {program} --data-root {folder}/data --exec-root {folder}/run --pidfile {folder}/pid "
    "-H unix://{folder}/engine.sock --exec-opt native.cgroupdriver=cgroupfs"
)
PODMAN = "exec {program} system service --time=0 unix://{folder}/engine.sock"
PODMAN_FILES = {
    "containers.conf": """[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
""",
    "storage.conf": """[storage]
driver = "overlay"
graphroot = "{folder}/data"
runroot = "{folder}/run"
""",
}
"""What Podman 4 needs without the right to raise limits, and on a machine with both cgroups."""
APPLETS = (
    *("cat", "chmod", "dd", "echo", "env", "false", "grep", "head", "httpd", "id", "kill", "ls"),
    *(
        "mkdir",
        "mkfifo",
        "nc",
        "ps",
        "rm",
        "sh",
        "sleep",
        "tail",
        "test",
        "touch",
        "true",
        "wc",
        "yes",
    ),
)


class Engine:
    """A running engine; `start` makes one."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, image: str) -> None:
        self._process = process
        self._folder = folder
        self.host = f"unix://{folder}/engine.sock"
        self.image = image
        """The name of an image of busybox."""

    @classmethod
    def start(cls, program: str, folder: Path) -> Engine:
        """Start an engine and wait until it answers.

        Args:
            program: The path of `dockerd` or `podman`.
            folder: Where everything of it is.

        Raises:
            AssertionError: It does not; the message has the end of its log.
        """
        is_podman = Path(program).name == "podman"
        for name, text in PODMAN_FILES.items() if is_podman else ():
            (folder / name).write_text(text.replace("{folder}", str(folder)))
        command = (PODMAN if is_podman else DOCKER).format(program=program, folder=folder)
        script = f"ip link set lo up; {command}"
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                ["unshare", "-n", "sh", "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    "CONTAINERS_CONF": str(folder / "containers.conf"),
                    "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
                },
            )
        # Podman's service forgets the tag of what is imported.
        image = "docker.io/arp/busybox:latest" if is_podman else "arp/busybox:latest"
        engine = cls(process, folder, image)
        deadline = time.monotonic() + START_S
        while not engine._answers():
            if process.poll() is not None or time.monotonic() > deadline:
                engine.stop()
                raise AssertionError((folder / "log").read_text()[-2000:])
            time.sleep(0.05)
        return engine

    def stop(self) -> None:
        """End it and its containers."""
        if self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(30)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)
        mounted = self._folder / "run" / "netns" / "default"
        if mounted.exists():
            subprocess.run(["umount", str(mounted)], check=False, capture_output=True)

    def make_image(self) -> None:
        """Make the image, of the machine's busybox."""
        import docker

        client = docker.DockerClient(base_url=self.host)
        try:
            client.api.import_image_from_data(busybox(), repository="arp/busybox", tag="latest")
        finally:
            client.close()

    @contextmanager
    def in_its_network(self) -> Iterator[None]:
        """Let sockets of this thread be in the engine's network."""
        libc = ctypes.CDLL(None, use_errno=True)
        ours = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        theirs = os.open(f"/proc/{self._process.pid}/ns/net", os.O_RDONLY)
        try:
            assert libc.setns(theirs, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            yield
        finally:
            assert libc.setns(ours, CLONE_NEWNET) == 0
            os.close(ours)
            os.close(theirs)

    def _answers(self) -> bool:
        import socket

        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(f"{self._folder}/engine.sock")
                probe.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
                return b"200 OK" in probe.recv(100)
            except OSError:
                return False


def busybox() -> bytes:
    """Return the files of an image, as tar: busybox under many names."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, mode in (("bin", 0o755), ("tmp", 0o1777), ("root", 0o700), ("app", 0o755)):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            tar.addfile(folder)
        program = Path("/bin/busybox").read_bytes()
        file = tarfile.TarInfo("bin/busybox")
        file.size, file.mode = len(program), 0o755
        tar.addfile(file, io.BytesIO(program))
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return data.getvalue()
