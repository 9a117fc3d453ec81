"""Task specs: the instructions of the router to the coding agent, as JSON.

A spec is derived from a request, so its content is not trusted. Names, ports and packages are
validated, and a package cannot be an option. A URL to clone must be `https` on a host that the
operator allows. Text for people (`description`) is limited in length only.

Source: internal_api.md 4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from arp.protocol.json_value import JsonObject
from arp.tools.errors import InvalidToolMeta, ToolRefused
from arp.tools.registry.models import check_tool_id, runtime_type_of
from arp.tools.registry.schemas import check_schema

MAX_SPEC_BYTES: Final = 256 << 10
"""Maximum size of a spec as JSON, in bytes."""
MAX_DESCRIPTION: Final = 20_000
"""Maximum length of a description or an error in a spec, in characters."""

PACKAGE: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?"  # PEP 508: the name
    r"(?:\[[A-Za-z0-9._-]+(?:,[A-Za-z0-9._-]+)*\])?"  # extras
    r"(?:(?:==|>=|<=|~=|!=|<|>)[A-Za-z0-9.*+!_-]{1,40}"  # versions
    r"(?:,(?:==|>=|<=|~=|!=|<|>)[A-Za-z0-9.*+!_-]{1,40}){0,4})?"
)
"""Package of an index: a name, extras and versions, but no URL, path or option."""
IMAGE: Final = re.compile(r"[a-z0-9](?:[a-z0-9._/:@-]{0,254}[A-Za-z0-9])?")
"""Reference of an image; it cannot begin with a dash, so it is never an option."""

Text: TypeAlias = Annotated[str, Meta(max_length=MAX_DESCRIPTION)]
ServicePort: TypeAlias = Annotated[int, Meta(ge=1, le=65535)]


class TaskRequirements(Struct, frozen=True):
    """Requirements of the tool."""

    gpu: bool | UnsetType = UNSET
    memory_mb: Annotated[int, Meta(ge=1, le=1 << 24)] | UnsetType = UNSET
    dependencies: Annotated[list[str], Meta(max_length=100)] | UnsetType = UNSET

    def __post_init__(self) -> None:
        for package in self.dependencies or ():
            check_package(package, "requirements.dependencies")


class ApiSpec(Struct, frozen=True):
    """API of the tool."""

    endpoint_path: Annotated[str, Meta(pattern=r"^/[A-Za-z0-9._~/-]*\Z", max_length=200)] = "/"
    http_method: Annotated[str, Meta(pattern=r"^(GET|POST|PUT|PATCH|DELETE)\Z")] = "POST"
    input_schema: JsonObject | UnsetType = UNSET
    output_schema: JsonObject | UnsetType = UNSET

    def __post_init__(self) -> None:
        try:
            for name, schema in self.schemas().items():
                check_schema(schema, f"api_spec.{name}")
        except InvalidToolMeta as error:
            raise ValueError(error.message) from None  # msgspec adds the path to a ValueError

    def schemas(self) -> dict[str, JsonObject]:
        """Return the schemas that are given, by their field names in a tool."""
        given = {"input_schema": self.input_schema, "output_schema": self.output_schema}
        return {name: schema for name, schema in given.items() if isinstance(schema, dict)}


class GithubDeploy(Struct, frozen=True, tag_field="type", tag="github_deploy"):
    """Turn a project in a git repository into a tool."""

    repo_url: Annotated[str, Meta(min_length=1, max_length=2_000)]
    tool_name: str
    runtime: str = "docker"
    image: str | UnsetType = UNSET
    ports: Annotated[list[ServicePort], Meta(max_length=32)] | UnsetType = UNSET
    description: Text = ""
    requirements: TaskRequirements = field(default_factory=TaskRequirements)
    api_spec: ApiSpec = field(default_factory=ApiSpec)

    def __post_init__(self) -> None:
        _check_names(self.tool_name, self.runtime)
        if isinstance(self.image, str) and not IMAGE.fullmatch(self.image):
            raise ValueError(f"image: {self.image!r:.80} is no reference of an image")


class BuildTool(Struct, frozen=True, tag_field="type", tag="build_tool"):
    """Write a tool."""

    tool_name: str
    runtime: str = "local"
    description: Text = ""
    requirements: TaskRequirements = field(default_factory=TaskRequirements)
    api_spec: ApiSpec = field(default_factory=ApiSpec)

    def __post_init__(self) -> None:
        _check_names(self.tool_name, self.runtime)


class RepairTool(Struct, frozen=True, tag_field="type", tag="repair_tool"):
    """Find out why a tool does not work, and repair it."""

    tool_id: str
    error: Text
    container_id: Annotated[str, Meta(max_length=128)] = ""
    description: Text = ""

    def __post_init__(self) -> None:
        _check_id(self.tool_id)


TaskSpec: TypeAlias = GithubDeploy | BuildTool | RepairTool


def task_spec_of(text: str | bytes) -> TaskSpec:
    """Return the spec in a JSON text.

    Raises:
        InvalidToolMeta: The text is not JSON, or not a spec; the message names the field.
    """
    if len(text) > MAX_SPEC_BYTES:
        raise InvalidToolMeta(f"task_spec: more than {MAX_SPEC_BYTES} bytes")
    try:
        spec: TaskSpec = msgspec.json.decode(text, type=TaskSpec)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidToolMeta(f"task_spec: {error}"[:500]) from None
    return spec


def task_spec_text(spec: TaskSpec) -> str:
    """Return a spec as JSON text, the format in a `tool_request`."""
    return msgspec.json.encode(spec).decode()


def name_of_spec(spec: TaskSpec) -> str:
    """Return the id of the tool in a spec."""
    return spec.tool_id if isinstance(spec, RepairTool) else spec.tool_name


def check_package(package: str, where: str) -> str:
    """Return a package if it consists of a name with optional extras and versions.

    Raises:
        ValueError: It is an option, a URL, a path, or not a package name.
    """
    if not PACKAGE.fullmatch(package):
        raise ValueError(
            f"{where}: {package!r:.80} is no package; write a name with versions, such as "
            "pillow or pillow>=11; addresses, paths and options are refused"
        )
    return package


def check_repo_url(url: str, hosts: Sequence[str], local_folders: Sequence[Path] = ()) -> str:
    """Return the URL of a repository that may be cloned.

    Args:
        url: URL from a task spec.
        hosts: Hosts from which repositories may be cloned.
        local_folders: Folders below which repositories of this machine may be cloned; empty means
            none.

    Raises:
        ToolRefused: The scheme is not https (but `ext::` or `ssh`, for example), the host or folder
            is not allowed, or the URL has a user name, a port, a query or a special character.
    """
    shown = f"repo_url {url!r:.80}"
    if local_folders and url.startswith("/"):
        path = Path(url).resolve()
        if any(path.is_relative_to(folder.resolve()) for folder in local_folders):
            return str(path)
        raise ToolRefused(f"{shown}: no folder from which repositories may be cloned")
    if not re.fullmatch(r"https://[A-Za-z0-9.-]+/[A-Za-z0-9._~/-]+", url) or "/../" in f"{url}/":
        raise ToolRefused(
            f"{shown}: write https://HOST/OWNER/NAME; other schemes, user names, ports, queries "
            "and special characters are refused"
        )
    host = (urlsplit(url).hostname or "").lower()
    if host not in {one.lower() for one in hosts}:
        allowed = ", ".join(hosts) or "none"
        raise ToolRefused(f"{shown}: host {host:.80} is not allowed; allowed: {allowed}")
    return url


def _check_names(tool_name: str, runtime: str) -> None:
    _check_id(tool_name)
    try:
        runtime_type_of(runtime)
    except InvalidToolMeta as error:
        raise ValueError(error.message) from None


def _check_id(tool_id: str) -> None:
    try:
        check_tool_id(tool_id)
    except InvalidToolMeta as error:
        raise ValueError(error.message) from None  # msgspec adds the path to a ValueError
