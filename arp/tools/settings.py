"""`ToolSettings` from the environment, and `LiveSettings` with the overrides of `config.json`.

Theory of operation. A value comes from the first source that has it: `config.json` in the data
directory, the environment (`TOOL_AGENT_…`), the default. Each access to the settings checks
`config.json` and reads it again if it has changed. An invalid file has no effect: the settings stay
as they were, `problem` describes the error, and the error is logged once.

This is the only module below the command line that reads the environment, because the interface
document defines these names.

`arp serve` reads its own settings with msgspec (`arp.commands.serve.serve_settings`). The two ways
cannot be unified: users of these settings rely on the conversions of pydantic (`yes` or `off` for a
bool, `7.0` for an int) and on its messages, and `arp serve` must start without the extra `tools`,
which installs pydantic-settings.

Source: internal_api.md 9.
"""

from __future__ import annotations

import json
import logging
import os
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from arp.protocol.json_value import JsonObject
from arp.tools.errors import InvalidToolMeta, extra_missing

try:
    from pydantic import Field, ValidationError
    from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError
except ImportError as error:
    raise extra_missing("pydantic-settings") from error

logger = logging.getLogger(__name__)

CONFIG_FILE: Final = "config.json"
MAX_CONFIG_BYTES: Final = 2**20
"""Maximum size of `config.json` in bytes, far above any file written by hand."""


PACKAGE_VARIABLES: Final = (
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "PIP_CERT",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_OFFLINE",
    "UV_SYSTEM_CERTS",
)
"""Variables that name package indexes for uv and pip, and the proxies and certificates for them."""
DOCKER_VARIABLES: Final = ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")
_HAS_PASSWORD: Final = re.compile(r"://[^/@\s]*@")


class ToolSettings(BaseSettings):
    """Settings of the Tool Agent; in the environment each name has the prefix `TOOL_AGENT_`."""

    model_config = SettingsConfigDict(
        env_prefix="TOOL_AGENT_", extra="forbid", frozen=True, allow_inf_nan=False
    )

    fastapi_port: Annotated[int, Field(ge=0, le=65535)] = 8001
    """Port of the HTTP interface."""
    mcp_port: Annotated[int, Field(ge=0, le=65535)] = 8001
    """Port of the MCP interface; if it equals `fastapi_port`, MCP is served there at `/mcp`."""
    docker_port_start: Annotated[int, Field(ge=1, le=65535)] = 9001
    """First port for containers and local tools."""
    docker_base_image: str = "agent-sandbox:latest"
    docker_mem_limit: str = "1g"
    docker_nano_cpus: Annotated[int, Field(ge=1)] = 1_000_000_000
    docker_ttl_seconds: Annotated[int, Field(ge=0)] = 1800
    """Idle time after which a container is destroyed, in seconds."""
    cold_tool_idle_timeout_s: Annotated[int, Field(ge=0)] = 300
    """Idle time after which a cold tool sleeps, in seconds, if its own `idle_timeout_s` is 0."""
    hot_tool_max_containers: Annotated[int, Field(ge=1)] = 5
    """Maximum number of hot tools that run at the same time, in containers or as processes."""
    eviction_policy: Literal["lru"] = "lru"
    monthly_limit_usd: Annotated[float, Field(ge=0)] = 100.0
    single_tx_limit_usd: Annotated[float, Field(ge=0)] = 20.0
    require_approval_above_usd: Annotated[float, Field(ge=0)] = 10.0
    health_check_interval_s: Annotated[int, Field(ge=1)] = 60

    # The settings below are our additions to the document.
    data_dir: Path = Path("data")
    """Directory of registry.json, containers.json, config.json, billing_log.json and projects."""
    call_timeout_s: Annotated[float, Field(gt=0)] = 120.0
    """Time limit of a call of a tool, in seconds."""
    calls_at_once: Annotated[int, Field(ge=1)] = 8
    """Maximum number of simultaneous calls of one tool; further calls wait."""
    spent_this_month_usd: Annotated[float, Field(ge=0)] = 0.0
    """US dollars that other programs have spent this month; `billing_log.json` omits them."""
    approve_builds: bool = True
    """Whether a person approves each build before generated code runs."""
    sandbox: Literal["auto", "require", "off"] = "auto"
    """Bubblewrap for local tools: `auto` (if possible), `require` (fail without it) or `off`."""
    network_tools: list[str] = []
    """Local tools without a port that have network access within bubblewrap; `*` means all."""
    project_disk_mb: Annotated[int, Field(ge=1)] = 10_240
    """Disk limit of a project in MiB, including `.venv` and caches; a command that exceeds it is
    ended."""
    project_files: Annotated[int, Field(ge=100)] = 200_000
    """Maximum number of files, links and directories in a project."""
    git_hosts: list[str] = ["github.com"]
    """Hosts that `repo_url` may name; a JSON list in the environment variable."""
    git_directories: list[Path] = []
    """Directories of this machine from which repositories may be cloned."""
    api_private_hosts: list[str] = []
    """Private hosts, addresses and networks that api tools and callbacks may reach, such as
    `127.0.0.1:8080`, `10.0.0.0/8` or `build.internal`."""
    volume_directories: list[Path] = []
    """Directories besides the data directory that may be mounted into containers."""
    coding_task_usd: Annotated[float, Field(ge=0)] = 5.0
    """Cost limit of the coding agent per task in US dollars, reserved before the task begins. With
    0 only an agent without costs may work."""
    coding_tasks_at_once: Annotated[int, Field(ge=1)] = 2
    """Maximum number of tasks that the coding agent carries out at the same time."""
    callback_attempts: Annotated[int, Field(ge=1, le=20)] = 5
    """Maximum number of attempts to deliver a callback."""
    callback_secret: Annotated[str, Field(repr=False)] = ""
    """Key that signs callbacks; never logged."""


class LiveSettings:
    """Settings of the Tool Agent with the overrides of `config.json`, read again when it changes.

    Args:
        defaults: Settings without overrides; `None` reads the environment.
    """

    def __init__(self, defaults: ToolSettings | None = None) -> None:
        self._defaults = _from_environment() if defaults is None else defaults
        self._current = self._defaults
        self._seen: tuple[int, int, int] | None = None
        self.problem: str | None = None
        """Reason why the present `config.json` is not used; `None` if it is used or does not
        exist."""

    @property
    def data_dir(self) -> Path:
        """Data directory; `config.json` cannot change it."""
        return self._defaults.data_dir

    @property
    def current(self) -> ToolSettings:
        """Current settings; never raises."""
        path = self.data_dir / CONFIG_FILE
        try:
            stat = path.stat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except OSError:
            seen = None
        if seen != self._seen:
            self._seen = seen
            self._reload(path)
        return self._current

    def check(self) -> None:
        """Check that `config.json` is valid; called before anything relies on its limits.

        Later, an invalid file only leaves the settings unchanged.

        Raises:
            InvalidToolMeta: The file is invalid; the message says why.
        """
        _ = self.current  # reads the file
        if self.problem is not None:
            raise InvalidToolMeta(f"{self.problem}; mend it, or move it away")

    def _reload(self, path: Path) -> None:
        try:
            self._current = self._with_overrides(_overrides(path)) if self._seen else self._defaults
        except InvalidToolMeta as error:
            self.problem = error.message
            logger.warning("%s; the settings stay as they were", error.message)
        else:
            self.problem = None

    def _with_overrides(self, overrides: JsonObject) -> ToolSettings:
        """Return the defaults with overrides, checked.

        Raises:
            InvalidToolMeta: An override is unknown or out of its range.
        """
        try:
            return ToolSettings(**{**self._defaults.model_dump(), **overrides})
        except ValidationError as error:
            raise InvalidToolMeta(f"{CONFIG_FILE}: {_first_of(error)}") from error


def package_environment() -> dict[str, str]:
    """Return the environment variables that say where packages come from.

    Programs of a project can read these variables, so one with a password in its URL is left out.
    """
    found = {name: os.environ[name] for name in PACKAGE_VARIABLES if os.environ.get(name)}
    for name in [name for name, value in found.items() if _HAS_PASSWORD.search(value)]:
        logger.warning("%s has a password in it, so the programs of projects do not get it", name)
        del found[name]
    return found


def docker_environment() -> dict[str, str]:
    """Return the environment variables that Docker's own programs use to find an engine."""
    return {name: os.environ[name] for name in DOCKER_VARIABLES if os.environ.get(name)}


def _from_environment() -> ToolSettings:
    """Return the settings of the environment.

    Raises:
        InvalidToolMeta: A variable is out of its range, or is not the JSON text of a list.
    """
    try:
        return ToolSettings()
    except ValidationError as error:
        raise InvalidToolMeta(f"TOOL_AGENT_…: {_first_of(error)}") from error
    except SettingsError as error:  # a list that is not JSON
        raise InvalidToolMeta(
            f'TOOL_AGENT_…: {error}; write a list as JSON text, such as ["a", "b"]'
        ) from error


def _overrides(path: Path) -> JsonObject:
    """Return the overrides of a config file, with the fields of `budget` moved to the top level.

    Raises:
        InvalidToolMeta: The file cannot be read, or is not a JSON object.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_CONFIG_BYTES + 1)
        if len(text) > MAX_CONFIG_BYTES:
            raise InvalidToolMeta(f"{path} has more than {MAX_CONFIG_BYTES} bytes")
        value: Any = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidToolMeta(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("budget", {}), dict):
        raise InvalidToolMeta(f"{path} is not a JSON object with settings")
    if "data_dir" in value:
        raise InvalidToolMeta(f"{path}: data_dir is set by TOOL_AGENT_DATA_DIR only")
    budget = value.pop("budget", {})
    return {**value, **budget}


def _first_of(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
