"""The settings of `arp serve`, which are read once: from a file, the environment and flags."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args, get_origin

import click
import msgspec
from click.core import ParameterSource
from msgspec import Meta, Struct, field
from msgspec.structs import fields

from arp.access.oidc import AdminClaim, Named, ServerUrl
from arp.access.settings import HostName, Origin, PageLink, ProxyAddress, Token
from arp.commands.output import fail
from arp.live.settings import RuntimeId, TransferKey
from arp.protocol.validate import bounds
from arp.redact.settings import Redaction

ENVIRONMENT = (
    *("host", "port", "ledger", "token", "runtime_id", "encoding"),
    *("oidc_issuer", "oidc_client_id", "oidc_client_secret", "public_url", "transfer_key"),
)
"""Settings that can be in the environment, as `ARP_HOST` and so on."""

SECRET = ("token", "oidc_client_secret", "transfer_key")
"""Settings with values that errors must not contain."""

REACHED_BY_OTHERS = ("host", "hosts", "trusted_proxies")
"""Settings that let other machines reach the server."""

PORTS = ("grpc", "dial", "unix")
"""Settings that open ports besides HTTP, in the order of opening.

The Unix socket is last, because its file would remain if another port failed.
"""

RendererAddress: TypeAlias = Annotated[
    str, Meta(pattern=r"^unix:[^\x00]+\Z", description="unix:PATH")
]
"""Address of a renderer that listens."""


class ServeSettings(Struct, frozen=True):
    """The settings of `arp serve`: from a file, the environment and flags.

    If a field has a `name`, the setting has that name in files and flags; otherwise it has the name
    of the attribute. Errors use the `description` of the type as the expected value.
    """

    runtime: Annotated[str, Meta(min_length=1, description="the name of a runtime")] | None = None
    """Runtime that is served instead of a target."""
    cwd: Annotated[str, Meta(min_length=1, description="a directory")] | None = None
    """Working directory of the runtime's agent; `None` means that of this process."""
    mode: Annotated[str, Meta(min_length=1, description="a mode")] | None = None
    """Mode of new sessions of the runtime; `None` means a mode that asks for permission."""
    runtime_model: Annotated[str, Meta(min_length=1, description="a model")] | None = field(
        default=None, name="runtime-model"
    )
    """Model of new sessions of the runtime; `None` means the runtime's default."""
    providers: list[str] = field(default_factory=list, name="provider")
    """Providers that users of the runtime can select."""
    passed: list[str] = field(default_factory=list, name="pass-env")
    """Additional environment variables for the runtime's agent."""
    model: Annotated[str, Meta(min_length=1, description="the name of a model")] | None = None
    """Model that is served instead of a target."""
    base_url: Annotated[str, Meta(min_length=1, description="an address")] | None = field(
        default=None, name="base-url"
    )
    """Address of the model; `None` means that of its provider."""
    instructions: str = ""
    """System prompt of the model."""
    host: Annotated[str, Meta(min_length=1, description="an address")] = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Meta(ge=0, le=65535, description="a number from 0 to 65535")] | None = None
    """Port to listen on; 0 means any free port, `None` the default port or the next free one."""
    ledger: (
        Annotated[str, Meta(min_length=1, description="memory:, sqlite:PATH or postgresql://…")]
        | None
    ) = None
    """Location of the ledger; `None` means that of the app, or a file for the target in `.arp`."""
    token: Token | None = None
    """Token that every client must send."""
    no_token: bool = field(default=False, name="no-token")
    """Whether to create no token at the start, even if agents run commands."""
    origins: list[Origin] = field(default_factory=list, name="origin")
    """Web origins that may connect."""
    hosts: list[HostName] = field(default_factory=list, name="allow-host")
    """Host names under which clients reach the server."""
    trusted_proxies: list[ProxyAddress] = field(default_factory=list, name="trust-proxy")
    """Proxies with forwarding headers that the server trusts."""
    oidc_issuer: ServerUrl | None = field(default=None, name="oidc-issuer")
    """OpenID provider of the users."""
    oidc_client_id: Named | None = field(default=None, name="oidc-client-id")
    """Client id of this server at the provider."""
    oidc_client_secret: Named | None = field(default=None, name="oidc-client-secret")
    """Client secret of this server at the provider."""
    oidc_user_claim: Named | None = field(default=None, name="oidc-user-claim")
    """Claim that names the user; `None` means that of the app, or `sub`."""
    oidc_admin: AdminClaim | None = field(default=None, name="oidc-admin")
    """Claim and value of users who are admins."""
    public_url: ServerUrl | None = field(default=None, name="public-url")
    """Address of this server in browsers; `None` means the address in each request."""
    login_url: PageLink | None = field(default=None, name="login-url")
    """Login page of another application."""
    logout_url: PageLink | None = field(default=None, name="logout-url")
    """Logout page of that application."""
    sign_in_text: Named | None = field(default=None, name="sign-in-text")
    """Text on the page for users who are not signed in."""
    stdio: bool = False
    """Whether to serve one renderer over standard input and output."""
    unix: Annotated[str, Meta(min_length=1, description="the path of a socket")] | None = None
    """Additional Unix socket to serve at; `auto` means the default path of clients."""
    dial: list[RendererAddress] = field(default_factory=list)
    """Addresses of listening renderers that the server connects to."""
    encoding: Annotated[str, Meta(pattern="^(msgpack|json)$", description="msgpack or json")] = (
        "msgpack"
    )
    """Encoding over Unix sockets."""
    dialect: Annotated[str, Meta(pattern="^(session|object)$", description="session or object")] = (
        "session"
    )
    """Protocol dialect over Unix sockets, and over standard input and output."""
    grpc: Annotated[str, Meta(min_length=1, description="[HOST:]PORT")] | None = None
    """Additional address to serve at over gRPC."""
    grpc_cert: str = field(default="", name="grpc-cert")
    """File with the TLS certificate of gRPC; empty means no encryption."""
    grpc_key: str = field(default="", name="grpc-key")
    """File with the key of the certificate."""
    redact: bool = True
    """Whether to remove secrets from facts and logs."""
    redaction: Redaction | None = None
    """Rules for removing secrets from facts; `None` means those of the app."""
    otel: bool = False
    """Whether to export spans and metrics; the environment can also switch it on."""
    runtime_id: RuntimeId | None = field(default=None, name="runtime-id")
    """Id of this runtime in every fact; `None` means that of the app, or of the ledger."""
    transfer_key: TransferKey | None = field(default=None, name="transfer-key")
    """Secret that is shared with servers that exchange surfaces with this one."""
    debug: bool = False
    """Whether to show tracebacks to clients."""
    verbose: Annotated[int, Meta(ge=0, description="0, 1 or 2")] = 0
    """Level of logging: 1 for connections, 2 for every frame."""

    def ports(self) -> list[str]:
        """Return the settings of `PORTS` that have a value."""
        return [name for name in PORTS if getattr(self, name) not in (None, [])]


SETTINGS = {one.name: one for one in fields(ServeSettings)}


def read_settings(config: Path | None, flags: dict[str, Any]) -> ServeSettings:
    """Return the settings from a file, overridden by the environment, overridden by flags.

    An error names the place of the wrong value: the file and the key, the variable, or the flag.
    Click's `default_map` and `envvar` are not used, because their errors always name the flag.

    Args:
        config: The file; `None` means no file.
        flags: Values of the flags that were given, as `given_flags` returns them.
    """
    found: dict[str, Any] = {}
    if config is not None:
        found |= _from_file(config)
    for name in ENVIRONMENT:
        value = os.environ.get(f"ARP_{name.upper()}")
        if value:
            found[name] = parse_setting(name, value, f"ARP_{name.upper()}")
    for name, value in flags.items():
        plain = list(value) if isinstance(value, tuple) else value
        found[name] = parse_setting(name, plain, flag_of(name))
    _check_debug(found)
    return ServeSettings(**found)


def given_flags(flags: dict[str, Any]) -> dict[str, Any]:
    """Return the flags that are on the command line of the current command.

    Their values do not show this: `--port 0` and `--token ""` are given, while a count or a list
    without its flag has the value 0 or `()`.
    """
    source_of = click.get_current_context().get_parameter_source
    return {
        name: value
        for name, value in flags.items()
        if source_of(name) is ParameterSource.COMMANDLINE
    }


def flag_of(name: str) -> str:
    """Return the flag of a setting."""
    return f"--{SETTINGS[name].encode_name}"


def _check_debug(found: dict[str, Any]) -> None:
    """End with an error if tracebacks would be shown to others than the author."""
    for name in REACHED_BY_OTHERS if found.get("debug") else ():
        if found.get(name):
            fail(
                "--debug shows tracebacks to every client, so it cannot be combined with "
                f"{flag_of(name)}; leave one of the two out"
            )


def _from_file(config: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(config.read_text(encoding="utf-8"))
    except OSError as error:
        fail(f"{config}: {error.strerror}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fail(f"{config}: {error}")
    if document and "serve" not in document:
        fail(f"{config}: there is no [serve] table in it; write [serve] and the settings below it")
    table = document.get("serve", {})
    if not isinstance(table, dict):
        fail(f"{config}: serve: expected a table; write [serve] and the settings below it")
    names = {one.encode_name: name for name, one in SETTINGS.items()}
    found: dict[str, Any] = {}
    for key, value in table.items():
        name, where = names.get(key, key), f"{config}: [serve] {key}"
        if name not in SETTINGS:
            fail(f"{where}: there is no such setting; there are {', '.join(sorted(names))}")
        # The file may have a single text instead of a list.
        is_list = get_origin(SETTINGS[name].type) is list
        values = [value] if is_list and not isinstance(value, list) else value
        found[name] = parse_setting(name, values, where)
    return found


def parse_setting(name: str, value: Any, where: str) -> Any:
    """Convert the value of a setting to its type, or end with an error.

    Args:
        name: Name of the field.
        value: Value as it was written.
        where: Place of the value, for the error.
    """
    kind = SETTINGS[name].type
    try:
        return msgspec.convert(value, kind, strict=not isinstance(value, str))
    except msgspec.ValidationError as error:
        if name == "redaction":
            fail(f"{where}: {error}")
        one = get_args(kind)[0] if get_origin(kind) is list else kind
        expected = next((mark.description for mark in bounds(one)), "true or false")
        written = value[0] if isinstance(value, list) and len(value) == 1 else value
        got = "" if name in SECRET else f", got {written!r:.60}"
        fail(f"{where}: expected {expected}{got}")
