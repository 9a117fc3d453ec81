"""The settings of `arp serve`, which are read once: from a file, the environment and flags."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args, get_origin

import msgspec
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
"""Settings that the environment may have, as `ARP_HOST` and so on."""

SECRET = ("token", "oidc_client_secret", "transfer_key")
"""Settings that no error repeats."""

REACHED_BY_OTHERS = ("host", "hosts", "trusted_proxies")
"""Settings by which people elsewhere can reach the server."""

RendererAddress: TypeAlias = Annotated[
    str, Meta(pattern=r"^unix:[^\x00]+\Z", description="unix:PATH")
]
"""Where a renderer listens."""


class ServeSettings(Struct, frozen=True):
    """The settings of `arp serve`: from a file, the environment and flags.

    What a setting is called there is the name of its field, if that has one; what it takes is the
    description of its type.
    """

    runtime: Annotated[str, Meta(min_length=1, description="the name of a runtime")] | None = None
    """An agent that exists already, which is served in place of a target."""
    cwd: Annotated[str, Meta(min_length=1, description="a directory")] | None = None
    """The directory in which that agent works; `None`: the one of this process."""
    mode: Annotated[str, Meta(min_length=1, description="a mode")] | None = None
    """The mode in which it begins; `None`: a mode of the runtime that asks."""
    runtime_model: Annotated[str, Meta(min_length=1, description="a model")] | None = field(
        default=None, name="runtime-model"
    )
    """The model with which it begins; `None`: the runtime's own."""
    providers: list[str] = field(default_factory=list, name="provider")
    """Providers to which users may switch it."""
    passed: list[str] = field(default_factory=list, name="pass-env")
    """Variables of the environment that it gets besides its own."""
    model: Annotated[str, Meta(min_length=1, description="the name of a model")] | None = None
    """A model that is served in place of a target."""
    base_url: Annotated[str, Meta(min_length=1, description="an address")] | None = field(
        default=None, name="base-url"
    )
    """The address of the model; `None`: its provider's."""
    instructions: str = ""
    """The system prompt of the model."""
    host: Annotated[str, Meta(min_length=1, description="an address")] = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Meta(ge=0, le=65535, description="a number from 0 to 65535")] | None = None
    """`None`: the default port, or the next one that is free; 0: any that is free."""
    ledger: Annotated[str, Meta(min_length=1, description="memory: or sqlite:PATH")] | None = None
    """Where facts are stored; `None`: as the app says, or in a file of the target in `.arp`."""
    token: Token | None = None
    """The token that every client must send."""
    no_token: bool = field(default=False, name="no-token")
    """`True`: no token is made at the start, though agents run commands."""
    origins: list[Origin] = field(default_factory=list, name="origin")
    """Web origins whose pages may connect."""
    hosts: list[HostName] = field(default_factory=list, name="allow-host")
    """Names under which clients reach the server."""
    trusted_proxies: list[ProxyAddress] = field(default_factory=list, name="trust-proxy")
    """Proxies that are trusted to say where a request comes from."""
    oidc_issuer: ServerUrl | None = field(default=None, name="oidc-issuer")
    """The provider at which people sign in."""
    oidc_client_id: Named | None = field(default=None, name="oidc-client-id")
    """The id under which this server is registered there."""
    oidc_client_secret: Named | None = field(default=None, name="oidc-client-secret")
    """The secret of that registration."""
    oidc_user_claim: Named | None = field(default=None, name="oidc-user-claim")
    """The claim that names the user; `None`: as the app says, or `sub`."""
    oidc_admin: AdminClaim | None = field(default=None, name="oidc-admin")
    """A claim and its value that make an admin of a user."""
    public_url: ServerUrl | None = field(default=None, name="public-url")
    """Address of this server as browsers see it; `None`: as each request has it."""
    login_url: PageLink | None = field(default=None, name="login-url")
    """Where another application signs people in."""
    logout_url: PageLink | None = field(default=None, name="logout-url")
    """Where it signs them out."""
    sign_in_text: Named | None = field(default=None, name="sign-in-text")
    """What the page says to somebody who is not signed in."""
    stdio: bool = False
    """Serve one renderer over standard input and output."""
    unix: Annotated[str, Meta(min_length=1, description="the path of a socket")] | None = None
    """The Unix socket at which the app is served, too; `auto`: the usual one."""
    dial: list[RendererAddress] = field(default_factory=list)
    """Renderers that listen, which the server dials."""
    encoding: Annotated[str, Meta(pattern="^(msgpack|json)$", description="msgpack or json")] = (
        "msgpack"
    )
    """The encoding of Unix sockets."""
    dialect: Annotated[str, Meta(pattern="^(session|object)$", description="session or object")] = (
        "session"
    )
    """What renderers speak over Unix sockets, and over standard input and output."""
    grpc: Annotated[str, Meta(min_length=1, description="[HOST:]PORT")] | None = None
    """Where the app is served over gRPC, too."""
    grpc_cert: str = field(default="", name="grpc-cert")
    """The file with the certificate of gRPC; empty: it does not encrypt."""
    grpc_key: str = field(default="", name="grpc-key")
    """The file with its key."""
    redact: bool = True
    """`False`: secrets stay in facts and logs."""
    redaction: Redaction | None = None
    """What is taken out of facts; `None`: as the app says."""
    otel: bool = False
    """Export spans and metrics; the environment can switch it on too."""
    runtime_id: RuntimeId | None = field(default=None, name="runtime-id")
    """Names this runtime in every fact; `None`: as the app says, or as the ledger is called."""
    transfer_key: TransferKey | None = field(default=None, name="transfer-key")
    """The secret that servers share whose authors give surfaces to each other's sessions."""
    debug: bool = False
    """Show tracebacks to clients."""
    verbose: Annotated[int, Meta(ge=0, description="0, 1 or 2")] = 0
    """1: log connections; 2: every frame."""


SETTINGS = {one.name: one for one in fields(ServeSettings)}


def read_settings(config: Path | None, flags: dict[str, Any]) -> ServeSettings:
    """Return the settings of a file, the environment and flags, of which the later win.

    Each is checked with its own place, so that an error names the file and the key, the variable,
    or the flag. That is why click's `default_map` and `envvar` do not do it: their errors name the
    flag wherever the value is.
    """
    found: dict[str, Any] = {}
    if config is not None:
        found |= _from_file(config)
    for name in ENVIRONMENT:
        value = os.environ.get(f"ARP_{name.upper()}")
        if value:
            found[name] = checked(name, value, f"ARP_{name.upper()}")
    for name, value in flags.items():
        if _is_given(name, value):
            plain = list(value) if isinstance(value, tuple) else value
            found[name] = checked(name, plain, f"--{SETTINGS[name].encode_name}")
    _check_debug(found)
    return ServeSettings(**found)


def _is_given(name: str, value: Any) -> bool:
    """Return whether a flag is on the command line: `--port 0`, `--token ""`, `--no-redact` are."""
    return value is not None and (name in ("port", "redact", *SECRET) or bool(value))


def _check_debug(found: dict[str, Any]) -> None:
    """Refuse to show tracebacks where others than the author may be connected."""
    for name in REACHED_BY_OTHERS if found.get("debug") else ():
        if found.get(name):
            fail(
                "--debug shows tracebacks to whoever is connected, so it does not go with "
                f"--{SETTINGS[name].encode_name}; leave one of the two out"
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
        is_list = get_origin(SETTINGS[name].type) is list  # the file may have one text, or several
        several = [value] if is_list and not isinstance(value, list) else value
        found[name] = checked(name, several, where)
    return found


def checked(name: str, value: Any, where: str) -> Any:
    """Return a setting's value in its type, or end with what is wrong with it.

    Args:
        name: The name of its field.
        value: As it was written.
        where: Where it was written, for the error.
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
