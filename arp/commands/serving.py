"""`arp serve` and `arp app-server`: read the settings, load the app, serve it.

Settings are read once, here: a file, then the environment, then flags.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import tomllib
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_origin

import click
import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import fields, replace

from arp.access.oidc import AdminClaim, Named, Oidc, ServerUrl
from arp.access.settings import HostName, Origin, PageLink, ProxyAddress, Token
from arp.app import App
from arp.commands.output import fail
from arp.commands.runtime_option import runtime_of
from arp.commands.target import TargetError, find
from arp.hub.settings import RuntimeId
from arp.protocol.envelope import Dialect
from arp.protocol.validate import bounds
from arp.redact.settings import Redaction
from arp.server.application import Application
from arp.server.ending import leave
from arp.server.own_secrets import redact_logs
from arp.server.pipes import serve_pipes, take_stdout
from arp.store.errors import StoreError, StoreLocked
from arp.store.location import SHARED, default_ledger, ledger_of
from arp.telemetry import settings as telemetry

if TYPE_CHECKING:
    import socket

    from arp.access.settings import Access

DEFAULT_PORT = 8080
PORTS_TRIED = 20
"""Ports after the default one that `serve` tries when that is taken and none was named."""

EVERYWHERE = ("0.0.0.0", "::")

ENVIRONMENT = (
    *("host", "port", "ledger", "token", "runtime_id", "encoding"),
    *("oidc_issuer", "oidc_client_id", "oidc_client_secret", "public_url"),
)
"""Settings that the environment may have, as `ARP_HOST` and so on."""

SECRET = ("token", "oidc_client_secret")
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
    """Serves an agent that exists already, in place of a target."""
    cwd: Annotated[str, Meta(min_length=1, description="a directory")] | None = None
    """Where that agent works; `None`: in the directory of this process."""
    mode: Annotated[str, Meta(min_length=1, description="a mode")] | None = None
    """In which it begins; `None`: the one of the runtime that asks."""
    runtime_model: Annotated[str, Meta(min_length=1, description="a model")] | None = field(
        default=None, name="runtime-model"
    )
    """With which it begins; `None`: the runtime's own."""
    providers: list[str] = field(default_factory=list, name="provider")
    """To which users may switch it."""
    passed: list[str] = field(default_factory=list, name="pass-env")
    """Variables of the environment that it gets besides its own."""
    model: Annotated[str, Meta(min_length=1, description="the name of a model")] | None = None
    """Serves a model, in place of a target."""
    base_url: Annotated[str, Meta(min_length=1, description="an address")] | None = field(
        default=None, name="base-url"
    )
    """Where the model is; `None`: at its provider's."""
    instructions: str = ""
    """What the model is told first."""
    host: Annotated[str, Meta(min_length=1, description="an address")] = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Meta(ge=0, le=65535, description="a number from 0 to 65535")] | None = None
    """`None`: the default port, or the next one that is free; 0: any that is free."""
    ledger: Annotated[str, Meta(min_length=1, description="memory: or sqlite:PATH")] | None = None
    """Where facts are stored; `None`: as the app says, or in a file of the target in `.arp`."""
    token: Token | None = None
    """Clients must have it."""
    origins: list[Origin] = field(default_factory=list, name="origin")
    """Web origins whose pages may connect."""
    hosts: list[HostName] = field(default_factory=list, name="allow-host")
    """Names under which it is reached."""
    trusted_proxies: list[ProxyAddress] = field(default_factory=list, name="trust-proxy")
    """Proxies that are trusted to say where a request comes from."""
    oidc_issuer: ServerUrl | None = field(default=None, name="oidc-issuer")
    """Provider at which people sign in."""
    oidc_client_id: Named | None = field(default=None, name="oidc-client-id")
    """As this server is registered there."""
    oidc_client_secret: Named | None = field(default=None, name="oidc-client-secret")
    """Of that registration."""
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
    """Over standard input and output, to one renderer."""
    unix: Annotated[str, Meta(min_length=1, description="the path of a socket")] | None = None
    """Unix socket at which it is served, too; `auto`: the usual one."""
    dial: list[RendererAddress] = field(default_factory=list)
    """Renderers that listen, and are dialled."""
    encoding: Annotated[str, Meta(pattern="^(msgpack|json)$", description="msgpack or json")] = (
        "msgpack"
    )
    """Of Unix sockets."""
    dialect: Annotated[str, Meta(pattern="^(session|object)$", description="session or object")] = (
        "session"
    )
    """Of Unix sockets, and over standard input and output."""
    grpc: Annotated[str, Meta(min_length=1, description="[HOST:]PORT")] | None = None
    """Where it is served over gRPC, too."""
    grpc_cert: str = field(default="", name="grpc-cert")
    """Certificate that gRPC shows; empty: it does not encrypt."""
    grpc_key: str = field(default="", name="grpc-key")
    """Its key."""
    redact: bool = True
    """False: secrets stay in facts and logs."""
    redaction: Redaction | None = None
    """What is taken out of facts; `None`: as the app says."""
    otel: bool = False
    """Export spans and metrics; the environment can switch it on too."""
    runtime_id: RuntimeId | None = field(default=None, name="runtime-id")
    """Names this runtime in every fact; `None`: as the app says, or as the ledger is called."""
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
            found[name] = _checked(name, value, f"ARP_{name.upper()}")
    for name, value in flags.items():
        if _is_given(name, value):
            plain = list(value) if isinstance(value, tuple) else value
            found[name] = _checked(name, plain, f"--{SETTINGS[name].encode_name}")
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
        whole = tomllib.loads(config.read_text(encoding="utf-8"))
    except OSError as error:
        fail(f"{config}: {error.strerror}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fail(f"{config}: {error}")
    if whole and "serve" not in whole:
        fail(f"{config}: there is no [serve] table in it; write [serve] and the settings below it")
    table = whole.get("serve", {})
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
        found[name] = _checked(name, several, where)
    return found


def _checked(name: str, value: Any, where: str) -> Any:
    """Return a setting's value in its type, or print what is wrong with it and end."""
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


def _configure_logging(verbose: int) -> None:
    """Log connections, or frames too; not the debug lines of libraries: they may hold secrets."""
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("arp").setLevel(logging.DEBUG if verbose > 1 else level)


def _application(target: str | None, serving: ServeSettings) -> Application:
    if target is None:
        app = _runtime_app(serving) if serving.runtime is not None else _model_app(serving)
        return application_of(app, str(serving.runtime or serving.model).partition(":")[0], serving)
    return application_of(_load(target), target, serving)


def application_of(app: App, target: str, serving: ServeSettings) -> Application:
    """Return the application of an app, with what the command line says instead.

    Args:
        app: What is served.
        target: What its ledger is named after, if nothing else says where it is.
        serving: The settings.
    """
    host = serving.host
    names = [] if host in EVERYWHERE else [f"[{host}]" if ":" in host else host]
    try:
        access = replace(
            app.access,
            token=serving.token or app.access.token,
            hosts=(*app.access.hosts, *names, *serving.hosts),
            origins=(*app.access.origins, *serving.origins),
            trusted_proxies=(*app.access.trusted_proxies, *serving.trusted_proxies),
            oidc=_oidc(serving, app.access.oidc),
            login_url=serving.login_url or app.access.login_url,
            logout_url=serving.logout_url or app.access.logout_url,
            sign_in_text=serving.sign_in_text or app.access.sign_in_text,
        )
    except ValueError as error:
        fail(f"{_flag_behind(error, host)}: {error}")
    if serving.stdio:  # it is not reached by a name
        access = replace(access, hosts=())
    ledger = serving.ledger or app.ledger
    if ledger == "memory:" and serving.ledger is None and not serving.stdio:
        ledger = f"sqlite:{default_ledger(target, app.handlers)}"
    redaction = serving.redaction or app.settings.redaction
    if not serving.redact:
        redaction = replace(redaction, enabled=False)
    settings = replace(
        app.settings,
        redaction=redaction,
        telemetry=app.settings.telemetry or _telemetry(serving),
        runtime_id=serving.runtime_id or app.settings.runtime_id,
    )
    if serving.debug and app.access.hosts:
        fail(
            "--debug shows tracebacks to whoever is connected, so it does not go with "
            "App(access=Access(hosts=…)). Leave one of the two out."
        )
    try:
        served = app.served(ledger=ledger, access=access, settings=settings, debug=serving.debug)
        application = Application(served)
    except ValueError as error:
        fail(str(error))
    redact_logs(application.state.redaction())
    return application


def _flag_behind(error: ValueError, host: str) -> str:
    """Return the flag with the value that `Access` refuses."""
    if "oidc" in str(error).lower():
        return "--oidc-issuer"
    return "--trust-proxy" if "trusted_proxies" in str(error) else f"--host {host}"


def _oidc(serving: ServeSettings, of_app: Oidc | None) -> Oidc | None:
    """Return the login at a provider: that of the app, with what the settings say of it.

    Raises:
        ValueError: It cannot work.
    """
    given = {
        "issuer": serving.oidc_issuer,
        "client_id": serving.oidc_client_id,
        "client_secret": serving.oidc_client_secret,
        "user_claim": serving.oidc_user_claim,
        "admin": serving.oidc_admin,
        "public_url": serving.public_url,
    }
    said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if of_app is not None:
        return replace(of_app, **said)
    if not said.keys() - {"public_url"}:
        return None
    if serving.oidc_issuer is None or serving.oidc_client_id is None:
        fail("a login at a provider needs both --oidc-issuer and --oidc-client-id")
    return Oidc(**said)


def _telemetry(serving: ServeSettings) -> bool:
    """Return whether telemetry is on; end if it was asked for and is not installed."""
    if serving.otel and not telemetry.is_installed():
        fail(f'--otel needs OpenTelemetry; install it: pip install "{telemetry.EXTRA}"')
    return serving.otel or (telemetry.is_configured(os.environ) and telemetry.is_installed())


def _load(target: str) -> App:
    try:
        app = find(target, App)
    except TargetError as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # The author's own file may raise anything, SystemExit included.
        logging.getLogger("arp.cli").debug("loading %s", target, exc_info=True)
        fail(f"{target} cannot be loaded: {_last_line(error)}")
    if not app.handlers:
        fail(f"the App in {target} has no agent; write @app.agent above an async function")
    return app


def _runtime_app(serving: ServeSettings) -> App:
    """Return an app whose only agent is the runtime that the settings name."""
    from arp.runtime.session_commands import RuntimeOffers
    from arp.runtime.types import CreateSessionRequest

    assert serving.runtime is not None
    runtime = runtime_of(serving.runtime, serving.cwd or ".", serving.passed)
    name = serving.runtime.partition(":")[0]
    app = App(title=name, description=f"{name} in {Path(serving.cwd or '.').resolve().name}")
    session = CreateSessionRequest(mode=serving.mode or "", model=serving.runtime_model or "")
    app.runtime(runtime, session=session, offers=RuntimeOffers(providers=tuple(serving.providers)))
    return app


def _model_app(serving: ServeSettings) -> App:
    """Return an app whose only agent is the model that the settings name."""
    from arp.runtime.errors import AriError

    model = str(serving.model)
    app = App(title=model.rpartition(":")[2], description=f"The model {model}")
    try:
        app.model_agent(model, base_url=serving.base_url, instructions=serving.instructions)
    except AriError as error:
        fail(f"--model {error.message}")
    return app


def _last_line(error: BaseException) -> str:
    """Return what was raised and where, in one line."""
    text = str(error).strip().partition("\n")[0]
    raised = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    return f"{raised} ({frames[-1].filename}:{frames[-1].lineno})" if frames else raised


def serve_target(target: str | None, serving: ServeSettings) -> None:
    """Serve the app of a target, or a runtime, over HTTP, or to one renderer over pipes."""
    if [target, serving.runtime, serving.model].count(None) != 2:
        fail(
            "give exactly one of TARGET, --runtime and --model: arp serve app.py, "
            "--runtime claude-code, or --model openai:gpt-5"
        )
    _configure_logging(serving.verbose)
    if serving.stdio:
        if serving.unix or serving.dial or serving.grpc:
            fail("--stdio serves one renderer; leave --unix, --dial and --grpc out")
        _serve_stdio(target, serving)
    else:
        _serve_http(target, serving)


def serve_control_plane(target: str, ledger: str | None, verbose: int) -> None:
    """Serve the control plane of a target's app to one program, over standard input and output."""
    _configure_logging(verbose)
    place = _checked("ledger", ledger, "--ledger") if ledger is not None else None
    _serve_stdio(target, ServeSettings(ledger=place, stdio=True), is_control=True)


def _serve_stdio(target: str | None, serving: ServeSettings, *, is_control: bool = False) -> None:
    output = take_stdout()
    application = _application(target, serving)
    try:
        dialect = msgspec.convert(serving.dialect, Dialect)
        serve_pipes(
            application.state, sys.stdin.buffer, output, is_control=is_control, dialect=dialect
        )
    except StoreError as error:
        fail(str(error))
    leave(0)


def _serve_http(target: str | None, serving: ServeSettings) -> None:
    application = _application(target, serving)
    serve_application(application, target or str(serving.runtime), serving)


def check_reachable(application: Application, host: str) -> None:
    """End with an error where others can reach an address, and nothing keeps them out."""
    from arp.server.serve import is_private

    tokens = application.state.guard.tokens
    is_open = application.state.served.access.is_open and not tokens.are_used()
    if not is_private(host) and is_open:
        fail(
            f"{host} can be reached by others: set --token (or ARP_TOKEN), create tokens (arp "
            "token create), let people sign in (--oidc-issuer), or give App an Access with an "
            "authenticate hook, or stay on 127.0.0.1"
        )


def serve_application(application: Application, target: str, serving: ServeSettings) -> None:
    """Serve an application over HTTP until a signal comes, and end the process."""
    # Here, so that --stdio starts without an HTTP server.
    from arp.commands.serving_ports import PortSettings, lines_of, open_ports
    from arp.server.serve import serve as run

    place = application.state.served.ledger if serving.ledger is None else ""
    host = serving.host
    access = application.state.served.access
    tokens = application.state.guard.tokens
    check_reachable(application, host)
    listener = bind_to(host, serving.port)
    wanted = {name: getattr(serving, name) for name in PortSettings.__struct_fields__}
    try:
        ports = open_ports(application.state, PortSettings(**wanted))
    except BaseException:
        listener.close()
        raise
    port = listener.getsockname()[1]

    def ready() -> None:
        redact_logs(application.state.redaction())  # the HTTP server has its own handlers by now
        if serving.port is None and port != DEFAULT_PORT:
            click.echo(f"arp: Port {DEFAULT_PORT} is taken, so this is port {port}.", err=True)
        click.echo(f"ARP on http://{_in_address(host)}:{port}")
        for line in lines_of(ports):
            click.echo(line)
        sys.stdout.flush()
        if place.startswith("sqlite:"):
            click.echo(f"arp: Sessions are kept in {place.removeprefix('sqlite:')}.", err=True)
        for line in _hints(host, port, access, has_tokens=tokens.are_used()):
            click.echo(f"arp: {line}", err=True)

    try:
        served = run(application, listener, ready, ports)
    except StoreLocked as error:
        if place != f"sqlite:{SHARED}":
            fail(str(error))
        own = ledger_of(target)
        fail(  # once that file exists, it is the default of this target
            f"another server uses {SHARED}, where this app has sessions too; stop that one, or "
            f"give this one a ledger of its own, now and later: --ledger sqlite:{own}"
        )
    except StoreError as error:
        fail(str(error))
    leave(0 if served else 1)


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _hints(host: str, port: int, access: Access, *, has_tokens: bool) -> Iterator[str]:
    """Yield what one must know to get in; never the token itself."""
    if host in EVERYWHERE and not access.hosts:
        yield "From other machines it answers only to names that you give with --allow-host NAME."
    here = "127.0.0.1" if host in EVERYWHERE else _in_address(host)
    page = f"http://{here}:{port}/#token=…"
    if access.oidc is not None:
        yield f"People sign in at {access.oidc.issuer}."
    if access.token is not None:
        yield f"It wants the token: open {page} with the token in place of the dots."
    elif has_tokens and access.authenticate is None and access.oidc is None:
        yield f"It wants a token of arp token create: open {page} with it in place of the dots."


def bind_to(host: str, port: int | None) -> socket.socket:
    """Return a listening socket; `None`: on the default port, or the next one that is free."""
    from arp.server.serve import bind

    ports = [port] if port is not None else range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED)
    for candidate in ports:
        try:
            listener = bind(host, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                fail(f"cannot listen on {host}:{candidate}: {error.strerror}")
            continue
        return listener
    return fail(
        f"Port {ports[0]} is taken. Name another with --port, or take any free one with --port 0."
    )
