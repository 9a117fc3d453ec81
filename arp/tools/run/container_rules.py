"""Checks of requests for containers: image, memory, cores, ports and mounted directories."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec
from msgspec import field

from arp.process.sandbox import check_environment
from arp.tools.errors import InvalidToolMeta, ToolRefused
from arp.tools.projects.project_table import PROJECTS
from arp.tools.settings import LiveSettings

MAX_PORTS: Final = 20
MAX_VOLUMES: Final = 10
MIN_MEMORY: Final = 6 * 2**20
"""Smallest memory limit that the container engine accepts, in bytes."""

_IMAGE: Final = re.compile(r"[a-z0-9](?:[a-z0-9._/:@-]{0,254}[A-Za-z0-9])?", re.IGNORECASE)
_SIZE: Final = re.compile(r"(\d{1,12})([bkmg]?)", re.IGNORECASE | re.ASCII)
_UNITS: Final = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_SYSTEM: Final = frozenset(("/", "/proc", "/sys", "/dev", "/etc", "/run", "/var/run", "/boot"))


class EnvRequest(msgspec.Struct, frozen=True):
    """A request for a container (`create_docker_env`)."""

    image: str = ""
    """Name of the image; empty means the setting `docker_base_image`."""
    mem_limit: str | None = None
    """Memory limit, such as `512m`; `None` means the setting `docker_mem_limit`."""
    nano_cpus: int | None = None
    """Processor limit in billionths of a core; `None` means the setting `docker_nano_cpus`."""
    ports: Sequence[int] = ()
    """Ports of the container to publish."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Mounts: directory of this machine → directory in the container."""
    use_gpu: bool = False
    gpu_count: int = -1
    """Number of GPUs; -1 means all."""
    env: Mapping[str, str] = field(default_factory=dict)
    tool_id: str = ""


def container_options(request: EnvRequest, settings: LiveSettings) -> dict[str, Any]:
    """Return the arguments of the Docker SDK for a container, without its ports.

    Raises:
        InvalidToolMeta: The request is invalid; the message names the field.
        ToolRefused: A volume or a variable is refused.
    """
    now = settings.current
    image = request.image or now.docker_base_image
    if not _IMAGE.fullmatch(image):
        raise InvalidToolMeta(f"image {image!r:.80} is no reference of an image")
    _check_ports(request.ports)
    if refused := check_environment(request.env):
        raise ToolRefused(f"env: {refused}")
    cores = os.cpu_count() or 1
    nano_cpus = request.nano_cpus or now.docker_nano_cpus
    if not 10_000_000 <= nano_cpus <= cores * 1_000_000_000:
        raise InvalidToolMeta(f"nano_cpus is {nano_cpus}; this machine has {cores} cores")
    if len(request.volumes) > MAX_VOLUMES:
        raise InvalidToolMeta(f"volumes: at most {MAX_VOLUMES}")
    options: dict[str, Any] = {
        "image": image,
        "mem_limit": memory_of(request.mem_limit or now.docker_mem_limit),
        "nano_cpus": nano_cpus,
        "environment": dict(request.env),
        "volumes": {
            volume_of(host, settings): {"bind": target_of(inside), "mode": "rw"}
            for host, inside in request.volumes.items()
        },
    }
    if request.use_gpu:
        options["device_requests"] = [_gpus(request.gpu_count)]
    return options


def volume_of(host_dir: str, settings: LiveSettings) -> str:
    """Return the real path of a directory that may be mounted.

    Below the projects directory only whole projects may be mounted: the programs of a project can
    replace its content while the engine resolves the path.

    Raises:
        ToolRefused: The directory may not be mounted.
    """
    given = Path(host_dir)
    is_plain = given.is_absolute() and not {"\0", ":"} & set(host_dir) and ".." not in given.parts
    if is_plain:
        projects = Path(os.path.realpath(settings.data_dir)) / PROJECTS
        real = Path(os.path.realpath(given))
        is_project = real.parent == projects and given.name == real.name
        allowed = [Path(os.path.realpath(one)) for one in settings.current.volume_directories]
        is_allowed = any(real.is_relative_to(one) for one in allowed)
        # A directory that contains our own files, or that is inside a project, is never mounted,
        # even if the settings allow it.
        is_ours = projects.is_relative_to(real) or real.is_relative_to(projects.parent)
        is_right = is_project or (is_allowed and not is_ours and str(real) not in _SYSTEM)
        if is_right and real.is_dir():
            return str(real)
    raise ToolRefused(
        f"volume {host_dir!r:.200} is refused: it is no project of ours, and in no directory of "
        "TOOL_AGENT_VOLUME_DIRECTORIES"
    )


def memory_of(text: str) -> int:
    """Return a size in bytes, from a text such as `512m`.

    Raises:
        InvalidToolMeta: The text is not a size, or the size is below `MIN_MEMORY`.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise InvalidToolMeta(f"mem_limit {text!r:.40} is no size; write 512m or 1g")
    size = int(match[1]) * _UNITS[match[2].lower()]
    if not MIN_MEMORY <= size <= 2**40:
        raise InvalidToolMeta(f"mem_limit {text!r:.40} is out of range; it is 6m to 1024g")
    return size


def target_of(inside: str) -> str:
    """Return a path in a container if a directory may be mounted there.

    Raises:
        ToolRefused: The path may not be a mount point.
    """
    path = PurePosixPath(inside)
    first = f"/{path.parts[1]}" if len(path.parts) > 1 else "/"
    is_system = str(path) in _SYSTEM or first in ("/proc", "/sys", "/dev")
    if not path.is_absolute() or ".." in path.parts or ":" in inside or is_system:
        raise ToolRefused(f"volume at {inside!r:.120} of the container is refused")
    return str(path)


def _check_ports(ports: Sequence[int]) -> None:
    if len(set(ports)) != len(ports) or len(ports) > MAX_PORTS:
        raise InvalidToolMeta(f"ports: at most {MAX_PORTS}, each once")
    if not all(1 <= port <= 65535 for port in ports):
        raise InvalidToolMeta("ports: each is 1 to 65535")


def _gpus(count: int) -> Any:
    from docker.types import DeviceRequest

    return DeviceRequest(count=count, capabilities=[["gpu"]])
